import { isJsonObject, type Json, type JsonObject } from './json.ts'
import { linearTestOf } from './linear-pattern.ts'

export const MAX_DEPTH = 256

type Test = (text: string) => boolean

/** Keywords whose values are data, not schemas. */
const data = new Set(['enum', 'const', 'default', 'examples'])

/** The patterns of a schema, compiled, and what its references refer to. */
export class SchemaIndex {
  readonly root: JsonObject
  readonly patterns = new Map<string, Test>()
  hasUnevaluated = false
  readonly #named = new Map<string, Json>()

  constructor(root: JsonObject) {
    this.root = root
    this.#add(root, 0)
  }

  #add(schema: Json, depth: number): void {
    if (typeof schema !== 'object' || schema === null) return
    if (depth > MAX_DEPTH) throw new TypeError(`the schema is nested more than ${MAX_DEPTH} levels deep`)
    for (const [key, value] of Object.entries(schema)) {
      if (key.startsWith('unevaluated')) this.hasUnevaluated = true
      if (key === 'pattern' && typeof value === 'string') this.#compile(value)
      if (key === 'patternProperties' && isJsonObject(value)) for (const name of Object.keys(value)) this.#compile(name)
      if ((key === '$id' || key === '$anchor' || key === '$dynamicAnchor') && typeof value === 'string') {
        this.#named.set(key === '$id' ? value : `#${value}`, schema)
      }
      if (!data.has(key)) this.#add(value, depth + 1)
    }
  }

  #compile(pattern: string): void {
    if (!this.patterns.has(pattern)) this.patterns.set(pattern, linearTestOf(pattern))
  }

  /** What a reference refers to. */
  find(reference: string): Json {
    const named = this.#named.get(reference)
    if (named !== undefined) return named
    const hash = reference.indexOf('#')
    const [base, pointer] = hash === -1 ? [reference, ''] : [reference.slice(0, hash), reference.slice(hash + 1)]
    let at: Json | undefined = base === '' || base === this.root['$id'] ? this.root : this.#named.get(base)
    for (const key of pointer === '' ? [] : pointer.slice(1).split('/')) {
      const name = decodeURIComponent(key).replaceAll('~1', '/').replaceAll('~0', '~')
      at = typeof at === 'object' && at !== null && Object.hasOwn(at, name) ? (at as JsonObject)[name] : undefined
    }
    if (at === undefined) throw new Error(`Unresolved $ref "${reference}".`)
    return at
  }
}

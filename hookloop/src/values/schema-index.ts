import { canonicalText, isJsonObject, type Json, type JsonObject } from './json.ts'
import { linearTestOf } from './linear-pattern.ts'

export const MAX_DEPTH = 256

type Test = (text: string) => boolean

/** Keywords whose values are data, not schemas. */
const data = new Set(['enum', 'const', 'default', 'examples'])

/** Keywords whose values have schemas by name. A name is not a keyword, even if it is called like one. */
const named = new Set([
  'properties',
  'patternProperties',
  'dependentSchemas',
  'dependentRequired',
  'dependencies',
  '$defs',
  'definitions',
])

/** The patterns of a schema, compiled, and what its references refer to. The patterns of an untrusted schema are not compiled. */
export class SchemaIndex {
  readonly root: JsonObject
  readonly isUntrusted: boolean
  readonly patterns = new Map<string, Test>()
  hasUnevaluated = false
  readonly #named = new Map<string, Json>()
  readonly #found = new Map<string, Json | undefined>()
  readonly #allowed = new Map<readonly Json[], ReadonlySet<string>>()
  readonly #texts = new Map<Json, string>()
  readonly #shown = new Map<Json, string>()

  constructor(root: JsonObject, isUntrusted = false) {
    this.root = root
    this.isUntrusted = isUntrusted
    this.#add(root, 0)
  }

  #add(schema: Json, depth: number): void {
    if (typeof schema !== 'object' || schema === null) return
    if (depth > MAX_DEPTH) throw new TypeError(`the schema is nested more than ${MAX_DEPTH} levels deep`)
    for (const [key, value] of Object.entries(schema)) {
      if (named.has(key) && isJsonObject(value)) {
        if (key === 'patternProperties') for (const name of Object.keys(value)) this.#compile(name)
        for (const inner of Object.values(value)) this.#add(inner, depth + 2)
        continue
      }
      if (key.startsWith('unevaluated')) this.hasUnevaluated = true
      if (key === 'pattern' && typeof value === 'string') this.#compile(value)
      if ((key === '$id' || key === '$anchor' || key === '$dynamicAnchor') && typeof value === 'string') {
        this.#named.set(key === '$id' ? value : `#${value}`, schema)
      }
      if (!data.has(key)) this.#add(value, depth + 1)
    }
  }

  /** A part of the schema, as a text for comparison. */
  textOf(part: Json): string {
    const known = this.#texts.get(part) ?? canonicalText(part)
    this.#texts.set(part, known)
    return known
  }

  /** The values of an `enum`, as texts for comparison. */
  textsIn(allowed: readonly Json[]): ReadonlySet<string> {
    const known = this.#allowed.get(allowed) ?? new Set(allowed.map(canonicalText))
    this.#allowed.set(allowed, known)
    return known
  }

  /** A part of the schema for a message. */
  shortText(part: Json): string {
    const known = this.#shown.get(part)
    if (known !== undefined) return known
    const text = JSON.stringify(part)
    const short = text.length <= 200 ? text : `${text.slice(0, 200).toWellFormed()}…`
    this.#shown.set(part, short)
    return short
  }

  #compile(pattern: string): void {
    if (!this.isUntrusted && !this.patterns.has(pattern)) this.patterns.set(pattern, linearTestOf(pattern))
  }

  /** What a reference refers to. Undefined if it is nothing, in an untrusted schema. */
  find(reference: string): Json | undefined {
    if (!this.#found.has(reference)) this.#found.set(reference, this.#lookUp(reference))
    const found = this.#found.get(reference)
    if (found === undefined && !this.isUntrusted) throw new Error(`Unresolved $ref "${reference}".`)
    return found
  }

  #lookUp(reference: string): Json | undefined {
    const named = this.#named.get(reference)
    if (named !== undefined) return named
    const hash = reference.indexOf('#')
    const [base, pointer] = hash === -1 ? [reference, ''] : [reference.slice(0, hash), reference.slice(hash + 1)]
    let at: Json | undefined = base === '' || base === this.root['$id'] ? this.root : this.#named.get(base)
    for (const key of pointer === '' ? [] : pointer.slice(1).split('/')) {
      const name = decodeURIComponent(key).replaceAll('~1', '/').replaceAll('~0', '~')
      at = typeof at === 'object' && at !== null && Object.hasOwn(at, name) ? (at as JsonObject)[name] : undefined
    }
    return at
  }
}

import type { Node } from 'yaml'
import { loadYaml } from './yaml.ts'
import type { Json } from '../../values/json.ts'

export type Path = readonly (string | number)[]

/** The value of a text, and the line of each value in it. */
export type ReadText = { readonly value: Json; readonly lineOf: (path: Path) => number }

/** What is wrong with a text, and in which line. */
export class InvalidText extends Error {
  readonly line: number | undefined

  constructor(message: string, line?: number) {
    super(message)
    this.line = line
  }
}

export const MAX_DEPTH = 32

/** Reads YAML as plain values, in linear time. Repeated keys, aliases, tags and values that JSON does not have are errors. */
export function readYaml(text: string): ReadText {
  const { isAlias, isCollection, isMap, isScalar, isSeq, LineCounter, parseDocument } = loadYaml()
  const lineCounter = new LineCounter()
  const lineAt = (node: unknown): number => lineCounter.linePos((node as Node | undefined)?.range?.[0] ?? 0).line
  const toValue = (node: unknown, depth: number): Json => {
    if (depth > MAX_DEPTH) throw new InvalidText(tooDeep, lineAt(node))
    if (node === null || node === undefined) return null
    if (isAlias(node)) throw new InvalidText('aliases are not supported', lineAt(node))
    if (isScalar(node)) return plainScalar(node.value, lineAt(node))
    if (isSeq(node)) return node.items.map((item) => toValue(item, depth + 1))
    if (!isMap(node)) throw new InvalidText('it is not a plain value', lineAt(node))
    const object: { [key: string]: Json } = {}
    for (const { key, value } of node.items) {
      const name = isScalar(key) ? String(key.value) : ''
      if (name === '' || name === '__proto__') throw new InvalidText('it is not a valid key', lineAt(key))
      if (Object.hasOwn(object, name)) throw new InvalidText(`the key "${name}" is duplicated`, lineAt(key))
      object[name] = toValue(value, depth + 1)
    }
    return object
  }
  try {
    const document = parseDocument(text, {
      version: '1.2',
      schema: 'core',
      strict: true,
      uniqueKeys: false, // this check takes quadratic time
      prettyErrors: false,
      merge: false,
      lineCounter,
    })
    const [first] = [...document.errors, ...document.warnings]
    if (first !== undefined)
      throw new InvalidText(first.message.split('\n')[0]!, lineCounter.linePos(first.pos[0]).line)
    const at = (path: Path): unknown => (isCollection(document.contents) ? document.getIn(path, true) : undefined)
    return { value: toValue(document.contents, 0), lineOf: (path) => lineAt(nearest(path, at)) }
  } catch (error) {
    throw error instanceof RangeError ? new InvalidText(tooDeep) : error
  }
}

export const tooDeep = `it is more than ${MAX_DEPTH} levels deep`

function plainScalar(value: unknown, line: number): Json {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number' && Number.isFinite(value)) return value
  throw new InvalidText(`a ${typeof value} is not a plain value`, line)
}

/** What is at a path, or at the longest part of it that exists. */
export function nearest<T>(path: Path, at: (path: Path) => T | undefined): T | undefined {
  for (let length = path.length; length > 0; length--) {
    const found = at(path.slice(0, length))
    if (found !== undefined) return found
  }
  return undefined
}

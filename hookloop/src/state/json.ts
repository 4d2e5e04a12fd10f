import { AgentError } from '../errors.ts'

/** A JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject
/** A JSON object. */
export type JsonObject = { readonly [key: string]: Json }

const MAX_DEPTH = 400
/** What is kept around values that were let in adds some levels. */
const MAX_STORED_DEPTH = 500
const MAX_CHARACTERS = 64 * 1024 * 1024

/**
 * A frozen plain copy of any value, with the losses that `JSON.stringify` has (`undefined` vanishes, a Date becomes a
 * string). Throws JSON_INVALID for what JSON cannot hold at all: cycles, bigints, more than 64 Mi characters.
 */
export function toJson(value: unknown): Json {
  return new Copy(false).copy(value, 0) ?? null
}

/** The same, with the number of characters its text has, more or less. */
export function toSizedJson(value: unknown): { readonly json: Json; readonly size: number } {
  const copy = new Copy(false)
  return { json: copy.copy(value, 0) ?? null, size: copy.characters }
}

/** A frozen copy of a value that is JSON already; throws JSON_INVALID where a copy would lose anything. */
export function exactJson(value: unknown, what: string): Json {
  return required(new Copy(true, what), value, what)
}

/** The same for what was kept as a whole: it may be as large as a run is long. */
export function storedJson(value: unknown, what: string): Json {
  return required(new Copy(true, what, { depth: MAX_STORED_DEPTH, characters: Infinity }), value, what)
}

function required(copy: Copy, value: unknown, what: string): Json {
  const result = copy.copy(value, 0)
  if (result === undefined) throw notJson(what, `${typeof value} is not JSON`)
  return result
}

/** The JSON text of a value with its keys sorted, so that equal values have equal texts. */
export function canonicalText(value: Json): string {
  return JSON.stringify(value, (_key, inner: Json) =>
    isJsonObject(inner) ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1))) : inner,
  )
}

/** A short fingerprint that two JSON values share only if they are equal. */
export function hashJson(value: Json): string {
  return hashText(canonicalText(value))
}

/** A short fingerprint of texts, taken together. */
export function hashText(...texts: readonly string[]): string {
  // Not imported, because most runs never need it and it takes a fifth of the time of loading this library.
  crypto ??= process.getBuiltinModule('node:crypto')
  return crypto.hash('sha256', texts.length === 1 ? texts[0]! : texts.join('')).slice(0, 32)
}

let crypto: typeof import('node:crypto') | undefined

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether two JSON values are equal; the order of keys does not matter. */
export function sameJson(a: Json, b: Json): boolean {
  return a === b || canonicalText(a) === canonicalText(b)
}

class Copy {
  characters = 0
  readonly #exact: boolean
  readonly #what: string
  readonly #limits: { readonly depth: number; readonly characters: number }

  constructor(exact: boolean, what = 'value', limits = { depth: MAX_DEPTH, characters: MAX_CHARACTERS }) {
    this.#exact = exact
    this.#what = what
    this.#limits = limits
  }

  copy(value: unknown, depth: number): Json | undefined {
    switch (typeof value) {
      case 'string':
        this.#spend(value.length + 3)
        return value
      case 'boolean':
        this.#spend(4)
        return value
      case 'number':
        this.#spend(4)
        if (Number.isFinite(value)) return value + 0 // -0 has no JSON text of its own
        return this.#lossy(null, `${value} is not JSON`)
      case 'bigint':
        throw notJson(this.#what, 'a bigint is not JSON; make it a string')
      case 'object':
        if (value !== null) return this.#copyObject(value, depth)
        this.#spend(4)
        return null
      default:
        return this.#lossy(undefined, `${typeof value} is not JSON`)
    }
  }

  #copyObject(value: object, depth: number): Json | undefined {
    if (depth > this.#limits.depth) {
      throw notJson(this.#what, `it is circular or nested more than ${this.#limits.depth} levels deep`)
    }
    this.#spend(2)
    if (Array.isArray(value)) {
      const items = value.slice() as Json[] // of the right size at once; growing it would waste most of it
      for (let i = 0; i < items.length; i++) items[i] = this.copy(value[i], depth + 1) ?? null
      return Object.freeze(items)
    }
    const { toJSON } = value as { readonly toJSON?: unknown }
    if (typeof toJSON === 'function') {
      return this.#lossy(this.copy(toJSON.call(value), depth + 1), `${nameOf(value)} is not plain JSON`)
    }
    if (this.#exact && !isPlain(value)) throw notJson(this.#what, `${nameOf(value)} is not plain JSON`)
    // Key by key: a clone would bring symbols along, and looking for them takes longer than all the rest.
    const result: Record<string, Json> = {}
    for (const key in value) {
      if (!Object.hasOwn(value, key)) continue
      this.#spend(key.length + 4)
      if (key === '__proto__') continue // it would become the prototype of whatever copies it next
      const copy = this.copy((value as Record<string, unknown>)[key], depth + 1)
      if (copy !== undefined) result[key] = copy
    }
    if (this.#exact && hasSymbol(value)) throw notJson(this.#what, 'a symbol is not JSON')
    return Object.freeze(result)
  }

  #lossy<T>(result: T, why: string): T {
    if (this.#exact) throw notJson(this.#what, why)
    return result
  }

  #spend(characters: number): void {
    this.characters += characters
    if (this.characters > this.#limits.characters) throw notJson(this.#what, 'it is larger than 64 Mi characters')
  }
}

function notJson(what: string, why: string): AgentError {
  return new AgentError('JSON_INVALID', `The ${what} cannot be kept: ${why}.`)
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

function hasSymbol(value: object): boolean {
  const isSeen = (symbol: symbol): boolean => Object.prototype.propertyIsEnumerable.call(value, symbol)
  return Object.getOwnPropertySymbols(value).some(isSeen)
}

function nameOf(value: object): string {
  return value.constructor?.name || 'an object'
}

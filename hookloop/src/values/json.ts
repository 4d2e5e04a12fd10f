import { AgentError, clause } from '../errors.ts'

/** A JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject
/** A JSON object. */
export type JsonObject = { readonly [key: string]: Json }

const MAX_DEPTH = 400
/** Stored records nest accepted values in a few more levels. */
const MAX_STORED_DEPTH = 500
const MAX_CHARACTERS = 64 * 1024 * 1024
/** Lists and objects count more than their brackets: a value that contains another one many times is copied as often. */
const MAX_VALUES = 4 * 1024 * 1024
const acceptedLimits = { depth: MAX_DEPTH, characters: MAX_CHARACTERS, values: MAX_VALUES }

/**
 * A frozen copy of any value as plain JSON, with the losses of `JSON.stringify` (`undefined` is dropped, a Date becomes a
 * string). An Error becomes its name and message. Throws JSON_INVALID for cycles, bigints, more than 64 Mi characters or 4 Mi
 * values, and for objects that JSON would show as empty, such as a Map, a Response or an object with private fields only.
 */
export function toJson(value: unknown): Json {
  return new Copy(false).copy(value, 0) ?? null
}

/** The same, with the approximate length of its JSON text. */
export function toSizedJson(value: unknown): { readonly json: Json; readonly size: number } {
  const copy = new Copy(false)
  return { json: copy.copy(value, 0) ?? null, size: copy.characters }
}

/** A frozen copy of a value that is JSON. Throws JSON_INVALID if the copy would lose anything. */
export function exactJson(value: unknown, what: string): Json {
  return required(new Copy(true, what), value, what)
}

/** The same for stored data, without a limit of size. */
export function storedJson(value: unknown, what: string): Json {
  return required(
    new Copy(true, what, { depth: MAX_STORED_DEPTH, characters: Infinity, values: Infinity }),
    value,
    what,
  )
}

/** The same for the result of `JSON.parse`, which is not used otherwise: it is frozen, not copied. */
export function parsedJson(value: unknown, what: string, depth = 0): Json {
  if (typeof value !== 'object' || value === null) return (value === 0 ? 0 : value) as Json // JSON has no -0
  if (depth > MAX_STORED_DEPTH) throw notJson(what, `it is nested more than ${MAX_STORED_DEPTH} levels deep`)
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) if (isUnfinished(value[i])) value[i] = parsedJson(value[i], what, depth + 1)
  } else {
    const fields = value as { [key: string]: Json }
    for (const key in fields) if (isUnfinished(fields[key])) fields[key] = parsedJson(fields[key], what, depth + 1)
  }
  return Object.freeze(value) as Json
}

/** Whether a parsed value is to be frozen, or may be -0. */
function isUnfinished(value: unknown): boolean {
  return typeof value === 'object' ? value !== null : value === 0
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

/** A string as it is, and any other value as JSON. */
export function textOfJson(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** A short hash. Equal JSON values have equal hashes. */
export function hashJson(value: Json): string {
  return hashText(canonicalText(value))
}

/** A short hash of a string. */
export function hashText(text: string): string {
  // Loaded when needed: most runs do not need it, and it is a fifth of the load time of this library.
  crypto ??= process.getBuiltinModule('node:crypto')
  return crypto.hash('sha256', text).slice(0, 32)
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
  #values = 0
  readonly #exact: boolean
  readonly #what: string
  readonly #limits: { readonly depth: number; readonly characters: number; readonly values: number }

  constructor(exact: boolean, what = 'value', limits = acceptedLimits) {
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
        if (Number.isFinite(value)) return value + 0 // JSON has no -0
        return this.#lossy(null, `${value} is not JSON`)
      case 'bigint':
        throw notJson(this.#what, 'a bigint is not JSON; convert it to a string')
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
    this.#count(1)
    if (Array.isArray(value)) {
      this.#spend(value.length) // before it is copied: a hole counts like a value
      this.#count(value.length)
      const items = value.slice() as Json[] // allocates the right size at once
      for (let i = 0; i < items.length; i++) {
        const item = this.copy(value[i], depth + 1)
        if (item === undefined) this.#spend(4)
        items[i] = item ?? null
      }
      return Object.freeze(items)
    }
    if (ArrayBuffer.isView(value) && !('toJSON' in value)) throw notJson(this.#what, noJsonForm(value))
    const { toJSON } = value as { readonly toJSON?: unknown }
    if (typeof toJSON === 'function') {
      return this.#lossy(this.copy(toJSON.call(value), depth + 1), `${nameOf(value)} is not plain JSON`)
    }
    if (this.#exact && !isPlain(value)) throw notJson(this.#what, `${nameOf(value)} is not plain JSON`)
    // Key by key: a clone would copy symbols, and looking for them takes longer than all the rest.
    const result: Record<string, Json> = {}
    for (const key in value) {
      if (!Object.hasOwn(value, key)) continue
      this.#count(1)
      this.#spend(key.length + 4)
      if (key === '__proto__') continue // it would become the prototype of the next copy
      const copy = this.copy((value as Record<string, unknown>)[key], depth + 1)
      if (copy !== undefined) result[key] = copy
    }
    if (this.#exact && hasSymbol(value)) throw notJson(this.#what, 'a symbol is not JSON')
    if (!isPlain(value)) this.#copyBuiltIn(value, result)
    return Object.freeze(result)
  }

  /** Objects of built-in classes have their content elsewhere than in enumerable properties. */
  #copyBuiltIn(value: object, result: Record<string, Json>): void {
    if (value instanceof Error) {
      for (const key of ['name', 'message'] as const) result[key] = this.copy(value[key], 0) ?? ''
    } else if (Object.keys(result).length === 0 && value.constructor?.name !== 'Object') {
      throw notJson(this.#what, noJsonForm(value))
    }
  }

  #lossy<T>(result: T, why: string): T {
    if (this.#exact) throw notJson(this.#what, why)
    return result
  }

  #count(values: number): void {
    this.#values += values
    if (this.#values > this.#limits.values) throw notJson(this.#what, 'it has more than 4 Mi values')
  }

  #spend(characters: number): void {
    this.characters += characters
    if (this.characters > this.#limits.characters) throw notJson(this.#what, 'it is larger than 64 Mi characters')
  }
}

function notJson(what: string, why: string): AgentError {
  return new AgentError('JSON_INVALID', `The ${what} cannot be stored: ${clause(why)}.`)
}

function noJsonForm(value: object): string {
  return `${nameOf(value)} is not JSON; convert it to a list, an object or a string`
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

const MANY_DIGITS = /\d{16}|\d[eE]/

/**
 * Parses JSON. A whole number beyond 2^53, and one that is too large, becomes a string: JavaScript would round it, or the
 * program that wrote the text already has.
 */
export function parseExactly(text: string): unknown {
  if (!MANY_DIGITS.test(text)) return JSON.parse(text)
  return JSON.parse(text, (_key, value: unknown, { source = '' }: { readonly source?: string } = {}) =>
    typeof value === 'number' && isInexact(value, source) ? source : value,
  )
}

/** The first number in a JSON text that `parseExactly` does not parse as a number. */
export function inexactNumber(text: string): string | undefined {
  if (!MANY_DIGITS.test(text)) return undefined
  let found: string | undefined
  try {
    JSON.parse(text, (_key, value: unknown, { source = '' }: { readonly source?: string } = {}) => {
      if (typeof value === 'number' && isInexact(value, source)) found ??= source
    })
  } catch {
    return undefined // not JSON
  }
  return found
}

/** A number with an exponent and few digits is meant as it is written. */
function isInexact(value: number, source: string): boolean {
  if (!Number.isInteger(value)) return !Number.isFinite(value)
  return !Number.isSafeInteger(value) && /\d{16}/.test(source.replace('.', ''))
}

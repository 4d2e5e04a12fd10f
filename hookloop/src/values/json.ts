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

/** Whether two JSON values are equal and have the same text: the order of keys matters. */
export function identicalJson(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false
    for (let i = 0; i < a.length; i++) if (!identicalJson(a[i] as Json, b[i] as Json)) return false
    return true
  }
  if (Array.isArray(b)) return false
  return haveSameEntries(a as JsonObject, b as JsonObject)
}

function haveSameEntries(a: JsonObject, b: JsonObject): boolean {
  const keys = Object.keys(b)
  let i = 0
  for (const key in a) if (key !== keys[i++] || !identicalJson(a[key], b[key])) return false
  return i === keys.length
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

const MAY_BE_INEXACT = /\d{16}|\d[eE]/
const NUMBER = /-?\d[\d.eE+-]*/y

/** The first number in a JSON text that JavaScript cannot represent: an integer that it would write differently, or one that is too large. */
export function inexactNumber(text: string): string | undefined {
  return MAY_BE_INEXACT.test(text) ? inexactNumbersIn(text).next().value?.token : undefined
}

/**
 * The first integer beyond 2^53 in a JSON text that `JSON.stringify` wrote: the parser before it may have rounded the integer.
 * Some providers parse the arguments of a call, and write them again.
 */
export function roundedInteger(text: string): string | undefined {
  if (!MAY_BE_INEXACT.test(text) || !isWrittenByJavaScript(text)) return undefined
  for (const { token } of numbersIn(text)) if (mayBeRounded(token)) return token
  return undefined
}

function isWrittenByJavaScript(text: string): boolean {
  try {
    return JSON.stringify(JSON.parse(text)) === text
  } catch {
    return false
  }
}

/** With an exponent, a short number is one that was meant as written. */
function mayBeRounded(token: string): boolean {
  const number = Number(token)
  if (!Number.isInteger(number) || Number.isSafeInteger(number)) return false
  return !token.includes('e') || decimalOf(token).digits.length >= 16
}

/** The JSON text with inexact numbers as strings, so that parsing it loses nothing. The same text if there are none. */
export function quoteInexactNumbers(text: string): string {
  if (!MAY_BE_INEXACT.test(text)) return text
  const parts: string[] = []
  let from = 0
  for (const { at, token } of inexactNumbersIn(text)) {
    parts.push(text.slice(from, at), `"${token}"`)
    from = at + token.length
  }
  return from === 0 ? text : [...parts, text.slice(from)].join('')
}

type NumberToken = { readonly at: number; readonly token: string }

function* inexactNumbersIn(text: string): Generator<NumberToken, undefined> {
  for (const number of numbersIn(text)) if (isInexact(number.token)) yield number
}

function* numbersIn(text: string): Generator<NumberToken, undefined> {
  // Without a regular expression for strings: one of several megabytes exceeds its stack.
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = endOfString(text, at)
    if (code !== MINUS && (code < DIGIT_0 || code > DIGIT_9)) continue
    NUMBER.lastIndex = at
    const token = NUMBER.exec(text)?.[0]
    if (token === undefined) continue
    yield { at, token }
    at += token.length - 1
  }
}

const [QUOTE, BACKSLASH, MINUS, DIGIT_0, DIGIT_9] = [34, 92, 45, 48, 57]
/** No number that JavaScript writes is longer. */
const MAX_NUMBER_CHARS = 1_100

function isInexact(token: string): boolean {
  if (token.length > MAX_NUMBER_CHARS) return true
  const number = Number(token)
  if (Number.isNaN(number)) return false // not JSON at all
  if (!Number.isFinite(number)) return true
  if (token.length < 16) return false
  const { digits, zeros } = decimalOf(token)
  if (digits.length < 16 || zeros < 0) return false // short, or no integer
  const written = decimalOf(String(number))
  return written.digits !== digits || written.zeros !== zeros
}

/** The digits of a number without zeros at its ends, and how many zeros follow them. */
function decimalOf(token: string): { readonly digits: string; readonly zeros: number } {
  const [, whole = '', fraction = '', exponent = '0'] = /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(token) ?? []
  const digits = (whole + fraction).replace(/0+$/, '')
  return { digits: digits.replace(/^0+/, ''), zeros: Number(exponent) + whole.length - digits.length }
}

/** The index of the closing quote of a string that starts here. */
export function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let before = at
    while (text.charCodeAt(before - 1) === BACKSLASH) before--
    if ((at - before) % 2 === 0) return at
  }
  return text.length
}

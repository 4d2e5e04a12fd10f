import { isPlainObject } from './describe-value.ts'

/** Which values an option may have. `expected` continues the sentence: `must be a string`. */
export type OptionType = readonly [isValid: (value: unknown) => boolean, expected: string]
export type OptionTypes = { readonly [option: string]: OptionType }

/** The types that options of several functions have. An option that is undefined has its default and is not checked. */
export const optionTypes = {
  any: [() => true, ''],
  text: [(value) => typeof value === 'string' && value.trim() !== '', 'a non-empty string'],
  string: [(value) => typeof value === 'string', 'a string'],
  strings: [isStringList, 'a list of strings'],
  stringMap: [(value) => isRecord(value) && isStringList(Object.values(value)), 'an object whose values are strings'],
  object: [isPlainObject, 'an object'],
  flag: [(value) => typeof value === 'boolean', 'true or false'],
  count: [(value) => Number.isSafeInteger(value) && (value as number) >= 1, 'a whole number, 1 or more'],
  whole: [(value) => Number.isSafeInteger(value) && (value as number) >= 0, 'a whole number, 0 or more'],
  positive: [(value) => typeof value === 'number' && value > 0, 'a positive number'],
  amount: [(value) => typeof value === 'number' && value >= 0, 'a number, 0 or more'],
  finite: [(value) => Number.isFinite(value), 'a number'],
  function: [(value) => typeof value === 'function', 'a function'],
  signal: [isSignal, 'an AbortSignal'],
  patterns: [(value) => Array.isArray(value) && value.every(isPattern), 'a list of names, wildcards and RegExps'],
  secrets: [(value) => Array.isArray(value) && value.every(isSecret), 'a list of regular expressions and strings'],
  model: [isModel, 'the name of a model, or a model'],
  modelMap: [
    (value) => isRecord(value) && Object.values(value).every(isModel),
    'an object whose values are models or names of models',
  ],
  list: [Array.isArray, 'a list'],
} as const satisfies OptionTypes

/** One of these values. */
export function choiceOf(...values: readonly string[]): OptionType {
  const listed = values.map((each) => `'${each}'`)
  const expected = `${listed.slice(0, -1).join(', ')} or ${listed.at(-1)}`
  return [(value) => values.includes(value as string), expected]
}

/** An object with these methods. */
export function having(what: string, ...methods: readonly string[]): OptionType {
  const hasAll = (value: unknown): boolean =>
    typeof value === 'object' &&
    value !== null &&
    methods.every((name) => typeof Reflect.get(value, name) === 'function')
  return [hasAll, `${what} with ${methods.map((name) => `${name}()`).join(' and ')}`]
}

/** Whether a value is a list of strings. */
export function isStringList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string')
}

function isRecord(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isPattern(value: unknown): boolean {
  return typeof value === 'string' || value instanceof RegExp
}

/** A variable of the environment that is not set is no secret. */
function isSecret(value: unknown): boolean {
  return value === undefined || isPattern(value)
}

/** Which models there are is checked where one is made. */
function isModel(value: unknown): boolean {
  return typeof value === 'object' ? value !== null && !Array.isArray(value) : typeof value === 'string' && value !== ''
}

function isSignal(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return (
    typeof Reflect.get(value, 'aborted') === 'boolean' && typeof Reflect.get(value, 'addEventListener') === 'function'
  )
}

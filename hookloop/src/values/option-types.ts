/** Which values an option may have. `expected` continues the sentence: `must be a number`. */
export type OptionType = readonly [isValid: (value: unknown) => boolean, expected: string]
export type OptionTypes = { readonly [option: string]: OptionType }

/** Values that would weaken a guard if they were wrong, and `any` for all others, which TypeScript checks. */
export const optionTypes = {
  any: [() => true, ''],
  positive: [(value) => typeof value === 'number' && value > 0, 'a positive number'],
  amount: [(value) => typeof value === 'number' && value >= 0, 'a number, 0 or more'],
  finite: [(value) => Number.isFinite(value), 'a number'],
  patterns: [(value) => Array.isArray(value) && value.every(isPattern), 'a list of names, wildcards and RegExps'],
  secrets: [
    // A variable of the environment that is not set is no secret.
    (value) => Array.isArray(value) && value.every((each) => each === undefined || isPattern(each)),
    'a list of regular expressions and strings',
  ],
} as const satisfies OptionTypes

function isPattern(value: unknown): boolean {
  return typeof value === 'string' || value instanceof RegExp
}

/** One of these values. */
export function choiceOf(...values: readonly string[]): OptionType {
  const listed = values.map((each) => `'${each}'`)
  const expected = `${listed.slice(0, -1).join(', ')} or ${listed.at(-1)}`
  return [(value) => values.includes(value as string), expected]
}

/** Whether a value is a list of strings. */
export function isStringList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string')
}

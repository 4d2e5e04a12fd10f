import { checkOptions, invalidOption, isStringList } from '../state/check-options.ts'
import { isJsonObject } from '../state/json.ts'

type OptionType = readonly [isValid: (value: unknown) => boolean, expected: string]

/** The types of options that actions have. */
export const optionTypes = {
  text: [(value) => typeof value === 'string' && value.trim() !== '', 'a non-empty string'],
  string: [(value) => typeof value === 'string', 'a string'],
  strings: [isStringList, 'a list of strings'],
  stringMap: [
    (value) => isJsonObject(value) && isStringList(Object.values(value)),
    'an object whose values are strings',
  ],
  object: [isJsonObject, 'an object'],
  flag: [(value) => typeof value === 'boolean', 'true or false'],
  count: [(value) => Number.isSafeInteger(value) && (value as number) >= 1, 'a whole number, 1 or more'],
  any: [() => true, ''],
} as const satisfies { readonly [name: string]: OptionType }

/** Throws for an unknown option, a value of the wrong type and a missing option that is required. */
export function checkActionOptions(
  action: string,
  options: object,
  {
    types,
    required = [],
  }: { readonly types: { readonly [option: string]: OptionType }; readonly required?: readonly string[] },
): void {
  checkOptions(action, options, Object.keys(types))
  for (const [name, [isValid, expected]] of Object.entries(types)) {
    const value = (options as { readonly [name: string]: unknown })[name]
    if ((value !== undefined || required.includes(name)) && !isValid(value)) {
      throw invalidOption(action, `"${name}" must be ${expected}`, value)
    }
  }
}

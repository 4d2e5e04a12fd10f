import { checkOptions, invalidOption } from '../state/check-options.ts'
import type { OptionTypes } from '../state/option-types.ts'

/** Throws for an unknown option, a value of the wrong type and a missing option that is required. */
export function checkActionOptions(
  action: string,
  options: object,
  { types, required = [] }: { readonly types: OptionTypes; readonly required?: readonly string[] },
): void {
  checkOptions(action, options, types)
  const given = options as { readonly [name: string]: unknown }
  const missing = required.find((name) => given[name] === undefined)
  if (missing !== undefined) throw invalidOption(action, `"${missing}" must be ${types[missing]![1]}`, undefined)
}

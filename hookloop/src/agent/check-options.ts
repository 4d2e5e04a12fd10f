import { AgentError, errorCodes } from '../errors.ts'

/** An option that cannot be used: where it was given, why, and the value at fault. */
export function invalidOption(where: string, why: string, value: unknown): AgentError {
  return new AgentError('AGENT_INVALID_OPTION', `${where}: ${why}.`, { value })
}

/** A misspelt option would be one that silently does not apply. */
export function checkKnown(where: string, options: object, known: readonly string[]): void {
  const unknown = Object.keys(options).find((name) => !known.includes(name))
  if (unknown !== undefined)
    throw invalidOption(where, `there is no option "${unknown}". Known: ${known.join(', ')}`, unknown)
}

/** What was given, without what is undefined: an option that got lost on its way must not take a default away. */
export function definedOptions<T extends object>(options: T): T {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T
}

/** A list of error codes, every one of which there is. */
export function checkCodes(where: string, codes: readonly string[]): void {
  const unknown = Array.isArray(codes) ? codes.find((code) => !Object.hasOwn(errorCodes, code)) : codes
  if (unknown !== undefined)
    throw invalidOption(where, `"on" must be a list of error codes, and ${JSON.stringify(unknown)} is none`, codes)
}

/** Whole numbers from 1 up, or the option is refused by name. */
export function checkWhole<T extends object>(where: string, options: T, names: readonly (keyof T & string)[]): void {
  for (const name of names) {
    const value = options[name]
    if (Number.isSafeInteger(value) && (value as number) >= 1) continue
    throw invalidOption(where, `"${name}" must be a whole number from 1 up`, value)
  }
}

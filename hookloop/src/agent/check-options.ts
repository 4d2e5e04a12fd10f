import { AgentError, errorCodes, type ErrorCode } from '../errors.ts'

/** An option that cannot be used: where it was given, why, and the value at fault. */
export function invalidOption(where: string, why: string, value: unknown): AgentError {
  return new AgentError('AGENT_INVALID_OPTION', `${where}: ${why}.`, { value })
}

/** Throws for a name that is not an option: a typo would otherwise be an option that silently does not apply. */
export function checkOptions(
  where: string,
  options: object,
  known: readonly string[],
  code: ErrorCode = 'AGENT_INVALID_OPTION',
): void {
  const unknown = Object.keys(options).find((name) => !known.includes(name))
  if (unknown === undefined) return
  const other = Object.hasOwn(otherNames, unknown) ? otherNames[unknown] : undefined
  const isKnown = other !== undefined && known.includes(/^\w+/.exec(other)![0])
  const hint = isKnown ? `Use ${other}` : `Known options: ${known.join(', ')}`
  throw new AgentError(code, `${where}: unknown option "${unknown}". ${hint}.`, { value: unknown })
}

/** Names from other libraries and earlier versions, and what to write here. */
const otherNames: { readonly [name: string]: string | undefined } = {
  abortSignal: 'signal',
  attempts: 'maxRetries',
  hooks: 'use',
  inputSchema: 'input',
  max: 'maxEntries',
  maxCommandOutput: 'maxCommandOutputBytes',
  maxEventCharacters: 'maxEventChars',
  maxItems: 'maxTasks',
  maxChars: 'maxTaskChars',
  maxKeyLength: 'maxKeyChars',
  maxLoaded: 'maxLoadedTools',
  maxSteps: 'use: [guards({ maxSteps })]',
  middleware: 'use',
  needsApproval: 'ask',
  parameters: 'input',
  retries: 'maxRetries',
  rounds: 'maxRounds',
  searchLimit: 'maxSearchResults',
  system: 'instructions',
  systemPrompt: 'instructions',
  temperature: 'settings: { temperature }',
  timeout: 'timeoutMs',
  tools: 'use',
  tries: 'maxRetries',
}

/** Options with their defaults. An optional one may be undefined only if its default is. */
export type Filled<O, D> = {
  readonly [K in keyof O]-?:
    | Exclude<O[K], undefined>
    | (object extends Pick<O, K> ? (K extends keyof D ? Extract<D[K], undefined> : never) : never)
}

/**
 * Adds defaults to options. Throws for unknown names, and checks what a name promises: `maxRetries` and `maxRounds` are
 * whole numbers, 0 or more; every other `max…`, unless it is a time or an amount of money, and every timeout, 1 or more.
 */
export function readOptions<O extends object, D extends { readonly [K in keyof O]-?: unknown }>(
  where: string,
  options: O,
  defaults: D,
): Filled<O, D> {
  checkOptions(where, options, Object.keys(defaults))
  const filled = { ...defaults, ...definedOptions(options) } as Filled<O, D>
  for (const [name, value] of Object.entries(filled)) {
    if (!/^max(?!.*(?:Ms|Cost)$)|[tT]imeoutMs$/.test(name)) continue
    const min = /^max(?:Retries|Rounds)$/.test(name) ? 0 : 1
    if (!Number.isSafeInteger(value) || (value as number) < min)
      throw invalidOption(where, `"${name}" must be a whole number, ${min} or more`, value)
  }
  return filled
}

/** Throws unless an option is one of these values. */
export function checkChoice<T extends string>(
  where: string,
  name: string,
  value: unknown,
  choices: readonly T[],
): void {
  if (choices.includes(value as T)) return
  const listed = choices.map((each) => `'${each}'`)
  throw invalidOption(where, `"${name}" must be ${listed.slice(0, -1).join(', ')} or ${listed.at(-1)}`, value)
}

/** Whether a value is a list of strings. */
export function isStringList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string')
}

/** The options without those that are undefined, so that they do not override a default. */
export function definedOptions<T extends object>(options: T): T {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T
}

/** Throws unless `codes` is a list of known error codes. */
export function checkCodes(where: string, codes: readonly string[]): void {
  const unknown = Array.isArray(codes) ? codes.find((code) => !Object.hasOwn(errorCodes, code)) : codes
  if (unknown !== undefined)
    throw invalidOption(where, `"on" must be a list of error codes; ${JSON.stringify(unknown)} is not one`, codes)
}

/** Throws unless each of these options is a whole number, 1 or more. */
export function checkPositiveIntegers<T extends object>(
  where: string,
  options: T,
  names: readonly (keyof T & string)[],
): void {
  for (const name of names) {
    const value = options[name]
    if (Number.isSafeInteger(value) && (value as number) >= 1) continue
    throw invalidOption(where, `"${name}" must be a whole number, 1 or more`, value)
  }
}

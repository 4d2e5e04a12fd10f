import { AgentError, errorCodes, type ErrorCode, clause } from '../errors.ts'
import { describeValue, isPlainObject } from './describe-value.ts'
import { nearestName } from './nearest-name.ts'
import { optionTypes, type OptionType, type OptionTypes } from './option-types.ts'

/** An option that cannot be used: where it was given, why, and the value at fault. */
export function invalidOption(where: string, why: string, value: unknown): AgentError {
  return new AgentError('AGENT_INVALID_OPTION', `${where}: ${clause(why)}.`, { value })
}

/**
 * Throws for options that are not an object, and for a name that is not an option: a typo would otherwise be an option that
 * silently does not apply. The message has the right name, also for names of other libraries. With types, it also throws for a
 * value of the wrong type.
 */
export function checkOptions(
  where: string,
  options: unknown,
  known: readonly string[] | OptionTypes,
  code: ErrorCode = 'AGENT_INVALID_OPTION',
): asserts options is object {
  const types: OptionTypes | undefined = isNames(known) ? undefined : known
  const names = isNames(known) ? known : Object.keys(known)
  const unknown = isObject(options) ? enumerableNames(options).find((name) => !names.includes(name)) : undefined
  if (unknown !== undefined) {
    throw new AgentError(code, `${where}: unknown option "${unknown}". ${hintFor(unknown, names)}`, { value: unknown })
  }
  if (!isOptions(options, names)) {
    const message = `${where}: the options must be an object, not ${describeValue(options)}.`
    throw new AgentError(code, message, { value: options })
  }
  if (types === undefined) return
  for (const [name, [isValid, expected]] of Object.entries(types)) {
    const value = options[name]
    if (value === undefined || isValid(value)) continue
    throw new AgentError(code, `${where}: "${name}" must be ${expected}, not ${describeValue(value)}.`, { value })
  }
}

/** Throws for options after the last argument: a function that does not take them would silently ignore them. */
export function checkNoOptions(where: string, more: readonly unknown[], code?: ErrorCode): void {
  for (const each of more) if (isPlainObject(each)) checkOptions(where, each, [], code)
}

function isNames(known: readonly string[] | OptionTypes): known is readonly string[] {
  return Array.isArray(known)
}

/** An object, but not a `Map`, a `Date` or a promise, none of whose properties is an option. */
function isOptions(options: unknown, known: readonly string[]): options is { readonly [name: string]: unknown } {
  return isPlainObject(options) || (isObject(options) && known.some((name) => name in options))
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Also names that are inherited: their values are read like others. */
function enumerableNames(options: object): readonly string[] {
  const names: string[] = []
  for (const name in options) names.push(name) // oxlint-disable-line guard-for-in
  const symbols = isPlainObject(options) ? Object.getOwnPropertySymbols(options) : []
  return [...names, ...symbols.map(String)]
}

function hintFor(unknown: string, known: readonly string[]): string {
  const others = Object.hasOwn(otherNames, unknown) ? otherNames[unknown]!.split(' | ') : []
  const other = others.find((each) => known.includes(/^\w+/.exec(each)![0]))
  if (other !== undefined) return known.includes(other) ? `It is called "${other}" here.` : `Write ${other} here.`
  const nearest = nearestName(unknown, known)
  if (nearest !== undefined) return `Did you mean "${nearest}"?`
  return known.length === 0 ? 'There are no options.' : `Known options: ${known.join(', ')}.`
}

/**
 * Names from other libraries and earlier versions, and what to write here. Of several, the first one applies that starts
 * with an option of the function.
 */
const otherNames: { readonly [name: string]: string } = {
  abortController: 'signal',
  abortSignal: 'signal',
  agents: 'use: [subagents({ agents })]',
  allowed_tools: 'tools',
  answer: 'answers',
  approvals: 'answers',
  args: 'input',
  argsSchema: 'input',
  arguments: 'args | input',
  attempts: 'maxRetries',
  backoff: 'backoffMs | delayMs',
  budget: 'maxCost',
  cached: 'cachedInput',
  cached_tokens: 'cachedInputTokens',
  cachedTokens: 'cachedInputTokens',
  callback: 'execute | answer',
  canUseTool: 'use: [approval(handler)]',
  chatId: 'session',
  checkpointer: 'store',
  cmd: 'command',
  completion_tokens: 'outputTokens',
  completionTokens: 'outputTokens',
  condition: 'when',
  configurable: 'metadata',
  context: 'metadata',
  conversationId: 'session',
  cost: 'costUsd | maxCost',
  cursor: 'after',
  db: 'store',
  disallowed_tools: 'disallowedTools',
  enabled: 'when',
  env_vars: 'env',
  environment: 'env',
  experimental_context: 'metadata',
  fallbackModel: 'use: [fallback([model])]',
  filter: 'when',
  fn: 'execute | perform',
  frequency_penalty: 'frequencyPenalty',
  func: 'execute | perform',
  guardrails: 'use',
  handler: 'execute | answer | perform',
  handoffs: 'use: [subagents({ agents })]',
  history: 'from',
  hooks: 'use',
  id: 'name | approval',
  idempotencyKey: 'turn',
  if: 'when',
  input_tokens: 'inputTokens',
  inputGuardrails: 'use',
  inputSchema: 'input',
  instruction: 'instructions',
  invoke: 'execute',
  isEnabled: 'when',
  llm: 'model',
  matcher: 'tool | when',
  max: 'maxEntries',
  max_output_tokens: 'maxOutputTokens',
  max_tokens: 'maxOutputTokens',
  maxAttempts: 'maxRetries',
  maxBudgetUsd: 'maxCost',
  maxChars: 'maxTaskChars',
  maxCommandOutput: 'maxCommandOutputBytes',
  maxCostUsd: 'maxCost',
  maxEventCharacters: 'maxEventChars',
  maxFailures: 'maxRetries',
  maxItems: 'maxTasks',
  maxIterations: 'maxSteps | use: [guards({ maxSteps })]',
  maxKeyLength: 'maxKeyChars',
  maxLoaded: 'maxLoadedTools',
  maxRetries: 'use: [retry({ maxRetries })]',
  maxRounds: 'maxRetries',
  maxSteps: 'use: [guards({ maxSteps })]',
  maxTime: 'maxTimeMs',
  maxTokens: 'maxOutputTokens | use: [guards({ maxTokens })]',
  maxTurns: 'maxSteps | use: [guards({ maxSteps })]',
  mcpServers: 'use: [mcp({ servers })]',
  memory: 'store',
  messages: 'from',
  middleware: 'use',
  modelSettings: 'settings',
  needsApproval: 'ask',
  onFail: 'onFailure',
  order: 'priority',
  output: 'outputs',
  output_tokens: 'outputTokens',
  outputGuardrails: 'use',
  outputSchema: 'output',
  outputType: 'output',
  parameters: 'input',
  plugins: 'use',
  predicate: 'when',
  presence_penalty: 'presencePenalty',
  prompt: 'instructions',
  prompt_tokens: 'inputTokens',
  promptTokens: 'inputTokens',
  reasoningEffort: 'reasoning',
  recursionLimit: 'maxSteps | use: [guards({ maxSteps })]',
  requestContext: 'metadata',
  requestId: 'turn',
  requireApproval: 'ask',
  requiresApproval: 'ask',
  resourceId: 'metadata: { user }',
  response_format: 'output',
  responseFormat: 'output',
  retries: 'maxRetries',
  rounds: 'maxRetries',
  run: 'execute',
  runId: 'turn',
  runtimeContext: 'metadata',
  schema: 'input | output',
  searchLimit: 'maxSearchResults',
  sessionId: 'session',
  stop: 'stopSequences',
  stop_sequences: 'stopSequences',
  stopWhen: 'use: [guards({ maxSteps })]',
  storage: 'store',
  subagents: 'use: [subagents({ agents })]',
  system: 'instructions',
  systemPrompt: 'instructions',
  temperature: 'settings: { temperature }',
  thinking: 'reasoning',
  thread: 'session',
  thread_id: 'session',
  threadId: 'session',
  timeout: 'timeoutMs | maxTimeMs',
  timeoutSeconds: 'timeoutMs',
  toolName: 'tool | name',
  toolNames: 'tool',
  tools: 'tool | use',
  top_k: 'topK',
  top_p: 'topP',
  totalCost: 'costUsd',
  tries: 'maxRetries',
  url: 'connectionString',
  user: 'metadata: { user }',
  userId: 'user | metadata: { user }',
}

/** Throws unless an argument is valid. `expected` continues the sentence: `must be a string`. */
export function checkArgument(
  where: string,
  [name, value]: readonly [name: string, value: unknown],
  isValid: boolean,
  expected: string,
): void {
  if (isValid) return
  throw invalidOption(where, `"${name}" must be ${expected}, not ${describeValue(value)}`, value)
}

/** The names of the options of a function. Each option of the type must be listed. */
export function optionNames<O extends object>(names: { readonly [K in keyof Required<O>]: true }): readonly string[] {
  return Object.freeze(Object.keys(names))
}

/** Options with their defaults. An optional one may be undefined only if its default is. */
export type Filled<O, D> = {
  readonly [K in keyof O]-?:
    | Exclude<O[K], undefined>
    | (object extends Pick<O, K> ? (K extends keyof D ? Extract<D[K], undefined> : never) : never)
}

/**
 * Adds defaults to options. Throws for unknown names and wrong types, and checks what a name promises: `maxRetries` is a
 * whole number, 0 or more; every other `max…`, unless it is a time or an amount of money, and every timeout, 1 or more.
 */
export function readOptions<O extends object, D extends { readonly [K in keyof O]-?: unknown }>(
  where: string,
  options: O,
  defaults: D,
  types: { readonly [K in keyof O]?: OptionType } = {},
): Filled<O, D> {
  const names = Object.keys(defaults)
  checkOptions(where, options, { ...Object.fromEntries(names.map((name) => [name, optionTypes.any])), ...types })
  const filled = { ...defaults, ...definedOptions(options, names) } as Filled<O, D>
  for (const [name, value] of Object.entries(filled)) {
    if (!/^max(?!.*(?:Ms|Cost)$)|[tT]imeoutMs$/.test(name)) continue
    const min = name === 'maxRetries' ? 0 : 1
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

/** The options without those that are undefined, so that they do not override a default. Names find inherited ones, too. */
export function definedOptions<T extends object>(options: T, names: readonly string[] = Object.keys(options)): T {
  const given = names.map((name) => [name, options[name as keyof T]] as const)
  return Object.fromEntries(given.filter(([, value]) => value !== undefined)) as T
}

/** Throws unless `codes` is a list of known error codes. */
export function checkCodes(where: string, codes: readonly string[]): void {
  const unknown = Array.isArray(codes) ? codes.find((code) => !Object.hasOwn(errorCodes, code)) : codes
  if (unknown !== undefined)
    throw invalidOption(where, `"on" must be a list of error codes; ${describeValue(unknown)} is not one`, codes)
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

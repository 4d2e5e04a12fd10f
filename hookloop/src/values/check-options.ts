import { AgentError, errorCodes, type ErrorCode, clause } from '../errors.ts'
import { describeValue } from './describe-value.ts'
import { nearestName } from './nearest-name.ts'
import { optionTypes, type OptionType, type OptionTypes } from './option-types.ts'

// Names of options are checked, because an unknown one would silently not apply. Values are checked only where a wrong one
// would weaken a guard, such as a limit that is a text: everything else is left to TypeScript.

/** An option that cannot be used: where it was given, why, and the value at fault. */
export function invalidOption(where: string, why: string, value: unknown): AgentError {
  return new AgentError('AGENT_INVALID_OPTION', `${where}: ${clause(why)}.`, { value })
}

/**
 * Throws for a name that is not an option. The message has the right name, also for names of other libraries. With types, it
 * also throws for a value of the wrong type.
 */
export function checkOptions(
  where: string,
  options: unknown,
  known: readonly string[] | OptionTypes,
  code: ErrorCode = 'AGENT_INVALID_OPTION',
): asserts options is object {
  const names = isNames(known) ? known : Object.keys(known)
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    const message = `${where}: the options must be an object, not ${describeValue(options)}.`
    throw new AgentError(code, message, { value: options })
  }
  const unknown = Object.keys(options).find((name) => !names.includes(name))
  if (unknown !== undefined) {
    throw new AgentError(code, `${where}: unknown option "${unknown}". ${hintFor(unknown, names)}`, { value: unknown })
  }
  if (isNames(known)) return
  for (const [name, [isValid, expected]] of Object.entries(known)) {
    const value: unknown = Reflect.get(options, name)
    if (value === undefined || isValid(value)) continue
    throw new AgentError(code, `${where}: "${name}" must be ${expected}, not ${describeValue(value)}.`, { value })
  }
}

function isNames(known: readonly string[] | OptionTypes): known is readonly string[] {
  return Array.isArray(known)
}

function hintFor(unknown: string, known: readonly string[]): string {
  for (const [write, others] of Object.entries(otherNames)) {
    if (!others.split(' ').includes(unknown) || !known.includes(/^\w+/.exec(write)![0])) continue
    return known.includes(write) ? `It is called "${write}" here.` : `Write ${write} here.`
  }
  const nearest = nearestName(unknown, known)
  if (nearest !== undefined) return `Did you mean "${nearest}"?`
  return known.length === 0 ? 'There are no options.' : `Known options: ${known.join(', ')}.`
}

/** What to write here, and the names from other libraries for it. Of several rows, the first one with a known option applies. */
const otherNames: { readonly [write: string]: string } = {
  after: 'cursor',
  answers: 'answer approvals',
  args: 'arguments',
  ask: 'needsApproval requireApproval requiresApproval',
  backoffMs: 'backoff',
  block: 'deny disallow',
  cachedInput: 'cached',
  cachedInputTokens: 'cached_tokens cachedTokens',
  command: 'cmd',
  connectionString: 'url',
  costUsd: 'cost totalCost',
  delayMs: 'backoff',
  disallowedTools: 'disallowed_tools',
  env: 'env_vars environment',
  execute: 'callback fn func handler invoke run',
  answer: 'callback handler',
  frequencyPenalty: 'frequency_penalty',
  from: 'history messages',
  input: 'args argsSchema arguments inputSchema parameters schema',
  inputTokens: 'input_tokens prompt_tokens promptTokens',
  instructions: 'instruction prompt system systemPrompt',
  maxCommandOutputBytes: 'maxCommandOutput',
  maxCost: 'budget cost maxBudgetUsd maxCostUsd',
  maxEntries: 'max',
  maxEventChars: 'maxEventCharacters',
  maxKeyChars: 'maxKeyLength',
  maxLoadedTools: 'maxLoaded',
  maxOutputTokens: 'max_output_tokens max_tokens maxTokens',
  maxRetries: 'attempts maxAttempts maxFailures maxRounds retries rounds tries',
  maxSearchResults: 'searchLimit',
  maxSteps: 'maxIterations maxTurns recursionLimit',
  maxTaskChars: 'maxChars',
  maxTasks: 'maxItems',
  metadata: 'configurable context experimental_context requestContext runtimeContext',
  model: 'llm',
  onFailure: 'onFail',
  output: 'outputSchema outputType response_format responseFormat schema',
  outputs: 'output',
  outputTokens: 'completion_tokens completionTokens output_tokens',
  perform: 'fn func handler',
  presencePenalty: 'presence_penalty',
  priority: 'order',
  reasoning: 'reasoningEffort thinking',
  session: 'chatId conversationId sessionId thread thread_id threadId',
  settings: 'modelSettings',
  'settings: { temperature }': 'temperature',
  signal: 'abortController abortSignal',
  stopSequences: 'stop stop_sequences',
  store: 'checkpointer db memory storage',
  timeoutMs: 'timeout timeoutSeconds',
  maxTimeMs: 'maxTime timeout',
  tool: 'matcher toolName toolNames tools',
  name: 'id toolName',
  approval: 'id',
  tools: 'allowed_tools',
  topK: 'top_k',
  topP: 'top_p',
  turn: 'idempotencyKey requestId runId',
  use: 'guardrails hooks inputGuardrails middleware outputGuardrails plugins tools',
  'use: [approval(handler)]': 'canUseTool',
  'use: [fallback([model])]': 'fallbackModel',
  'use: [guards({ maxSteps })]': 'maxIterations maxSteps maxTurns recursionLimit stopWhen',
  'use: [guards({ maxTokens })]': 'maxTokens',
  'use: [mcp({ servers })]': 'mcpServers',
  'use: [retry({ maxRetries })]': 'maxRetries',
  'use: [subagents({ agents })]': 'agents handoffs subagents',
  user: 'userId',
  'metadata: { user }': 'resourceId user userId',
  when: 'condition enabled filter if isEnabled matcher predicate',
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
  const filled = { ...defaults, ...definedOptions(options) } as Filled<O, D>
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

/** The options without those that are undefined, so that they do not override a default. */
export function definedOptions<T extends object>(options: T): T {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T
}

/** Throws unless all are error codes. */
export function checkCodes(where: string, codes: readonly string[]): void {
  const unknown = codes.find((code) => !Object.hasOwn(errorCodes, code))
  if (unknown !== undefined)
    throw invalidOption(where, `"on" must be a list of error codes; "${unknown}" is not one`, codes)
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

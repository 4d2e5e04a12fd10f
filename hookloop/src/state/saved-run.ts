import { AgentError, errorCodes } from '../errors.ts'
import { AgentState, metadataOf, STATE_VERSION, type StateFields } from './agent-state.ts'
import { stopReasons } from './continuation.ts'
import type { Execution, Step } from './execution.ts'
import { isFinishReason } from './inference.ts'
import { isJsonObject, storedJson, type Json, type JsonObject } from './json.ts'
import type { TimedLedgerEntry } from './ledger.ts'
import { List } from './list.ts'
import { isMessage, type Message } from './message.ts'
import type { Approval } from './tool-call.ts'

export const SAVED_VERSION = 1

/** A run as plain JSON: what `JSON.stringify(run)` writes. */
export type SavedRun = {
  readonly version: number
  readonly status: string
  /** The questions it waits for, for whoever is to answer them. */
  readonly pending: readonly Approval[]
  readonly state: JsonObject
  readonly ledger?: readonly JsonObject[]
}

/** Reads a saved run, or throws STATE_INVALID with the place at fault, or STATE_VERSION when it comes from the future. */
export function fromSavedRun(saved: unknown): { state: AgentState; ledger: readonly TimedLedgerEntry[] } {
  const json = plain(saved)
  check(json, 'saved run', object)
  checkVersion(json['version'], SAVED_VERSION, 'saved run')
  const ledger = json['ledger'] ?? []
  check(ledger, 'ledger', listOf(ledgerEntry))
  return { state: fromStateJson(json['state']), ledger: ledger as unknown as readonly TimedLedgerEntry[] }
}

/** Reads the JSON of a state. */
export function fromStateJson(value: unknown): AgentState {
  const json = plain(value)
  check(json, 'state', object)
  checkVersion(json['version'], STATE_VERSION, 'state')
  check(json, 'state', stateShape)
  const { version: _version, messages, metadata, execution, ...rest } = json
  const fields = {
    ...rest,
    messages: List.from(messages as unknown as Message[]),
    metadata: metadataOf(metadata as JsonObject),
    execution: execution && toExecution(execution as JsonObject),
  }
  return AgentState.create(fields as unknown as StateFields)
}

function toExecution(json: JsonObject): Execution {
  return Object.freeze({ ...json, steps: List.from(json['steps'] as unknown as Step[]) }) as unknown as Execution
}

function plain(value: unknown): Json {
  try {
    return storedJson(value, 'state')
  } catch (error) {
    throw invalid('it', (error as Error).message)
  }
}

function checkVersion(version: Json | undefined, known: number, what: string): void {
  if (!Number.isInteger(version) || (version as number) < 1)
    throw invalid(`${what}.version`, `${what}.version must be a whole number from 1 up`)
  if ((version as number) <= known) return
  throw new AgentError(
    'STATE_VERSION',
    `The ${what} has version ${version as number}; this Hookloop reads up to ${known}. Use a newer one.`,
    { value: version },
  )
}

// ── a very small language for shapes: a test says what is wrong with a value at a path, or nothing

type Test = (value: Json | undefined, path: string) => string | undefined

const text: Test = (value, path) => (typeof value === 'string' ? undefined : `${path} must be a text`)
const number: Test = (value, path) =>
  typeof value === 'number' && value >= 0 ? undefined : `${path} must be a number from 0 up`
const object: Test = (value, path) => (isJsonObject(value) ? undefined : `${path} must be an object`)
const anything: Test = (value, path) => (value === undefined ? `${path} is missing` : undefined)
const message: Test = (value, path) => (isMessage(value) ? undefined : `${path} is not a message`)

function optional(test: Test): Test {
  return (value, path) => (value === undefined ? undefined : test(value, path))
}

function oneOf(...values: readonly string[]): Test {
  return (value, path) => (values.includes(value as string) ? undefined : `${path} must be one of ${values.join(', ')}`)
}

function listOf(test: Test): Test {
  return (value, path) => {
    if (!Array.isArray(value)) return `${path} must be a list`
    for (const [i, item] of value.entries()) {
      const problem = test(item as Json, `${path}[${i}]`)
      if (problem !== undefined) return problem
    }
    return undefined
  }
}

function shape(tests: { readonly [key: string]: Test }): Test {
  return (value, path) => {
    if (!isJsonObject(value)) return `${path} must be an object`
    for (const [key, test] of Object.entries(tests)) {
      const problem = test(Object.hasOwn(value, key) ? value[key] : undefined, `${path}.${key}`)
      if (problem !== undefined) return problem
    }
    return undefined
  }
}

const tokens = {
  inputTokens: number,
  outputTokens: number,
  cachedInputTokens: number,
  cacheWriteTokens: number,
  reasoningTokens: number,
  costUsd: number,
}
const usage = shape({ ...tokens, steps: number, toolCalls: number })
const votes = listOf(
  shape({
    decision: oneOf('forbidContinuation', 'requestContinuation', 'allowStop', 'allowContinuation'),
    reason: oneOf(...stopReasons),
    message: text,
    source: text,
  }),
)
const boolean: Test = (value, path) => (typeof value === 'boolean' ? undefined : `${path} must be true or false`)
const outcome = shape({
  shouldContinue: boolean,
  stopReason: optional(oneOf(...stopReasons)),
  resolvedBy: optional(text),
  evaluations: votes,
})
const answer: Test = (value, path) => {
  if (value === 'allow') return undefined
  if (isJsonObject(value) && (isJsonObject(value['allow']) || typeof value['block'] === 'string')) return undefined
  return `${path} is no answer`
}
const toolExecution = shape({ status: oneOf('ok', 'failed', 'blocked', 'outcomeUnknown'), output: anything })
const toolCall = shape({ id: text, name: text, args: anything })
const errors = listOf(shape({ code: oneOf(...Object.keys(errorCodes)), message: text, during: text }))
const finishReason: Test = (value, path) => (isFinishReason(value) ? undefined : `${path} is no finish reason`)
const stepShape = shape({
  index: number,
  type: oneOf('toolExecution', 'finalResponse', 'error'),
  text,
  toolCalls: listOf(toolCall),
  toolExecutions: listOf(toolExecution),
  errors,
  finishReason,
  usage: shape(tokens),
  messageCount: number,
  outcome: optional(outcome),
})
const step: Test = (value, path) => {
  const problem = stepShape(value, path)
  if (problem !== undefined) return problem
  const { toolCalls, toolExecutions } = value as { toolCalls: Json[]; toolExecutions: Json[] }
  return toolCalls.length === toolExecutions.length ? undefined : `${path} must have as many executions as calls`
}
const agentPath = listOf(shape({ agent: text, step: number, call: text }))
const approval = shape({
  id: text,
  hash: text,
  message: text,
  by: text,
  toolCall,
  asks: listOf(shape({ by: text, message: text })),
  expiresAt: optional(number),
  path: optional(agentPath),
  interruptions: optional(number),
})
const openCall = shape({
  id: text,
  name: text,
  originalArgs: anything,
  args: anything,
  approval: optional(approval),
  answer: optional(answer),
  result: optional(toolExecution),
  child: optional((value, path) => openChild(value, path)),
  interruptions: optional(number),
})
const openStep = shape({
  text,
  finishReason,
  usage: shape(tokens),
  messageCount: number,
  asked: message,
  resultsAt: number,
  calls: listOf(openCall),
  errors,
})
const cursor: Test = (value, path) =>
  isJsonObject(value) && value['phase'] === 'tools'
    ? shape({ waitingSince: number, step: openStep })(value, path)
    : shape({ phase: oneOf('beforeStep', 'tools'), waitingSince: number })(value, path)

const execution = shape({
  id: text,
  status: oneOf('running', 'suspended', 'completed', 'stopped', 'failed', 'cancelled'),
  startedAt: number,
  waitedMs: number,
  steps: listOf(step),
  votes,
  usage,
  failures: number,
  continuations: shape({ inRow: number, total: number }),
  hooks: listOf(shape({ name: text, mode: oneOf('transform', 'guard', 'observe') })),
  cursor: optional(cursor),
  final: optional(
    shape({
      status: oneOf('completed', 'stopped', 'failed', 'cancelled'),
      reason: oneOf(...stopReasons),
      by: text,
      message: text,
      votes,
      at: number,
    }),
  ),
})

const ledgerEntry = shape({
  hook: text,
  trigger: text,
  mode: text,
  step: number,
  durationMs: number,
  call: optional(text),
  decision: optional(text),
  message: optional(text),
  error: optional(text),
  changes: optional(listOf(shape({ path: text }))),
  shadow: optional(boolean),
  path: optional(agentPath),
  tool: optional(text),
})

const stateShape = shape({
  agentId: text,
  parentId: optional(text),
  messages: listOf(message),
  systemPrompt: text,
  responseFormat: optional(object),
  metadata: object,
  spentBefore: usage,
  executionCount: number,
  execution: optional(execution),
})

/** A state inside a state is one like any other, and must be of a version that can be read. */
const childState: Test = (value, path) => {
  if (isJsonObject(value)) checkVersion(value['version'], STATE_VERSION, path)
  return stateShape(value, path)
}
const openChild = shape({
  agent: text,
  above: listOf(shape({ usage, workedMs: number })),
  state: childState,
})

function check(value: Json | undefined, path: string, test: Test): asserts value is JsonObject {
  const problem = test(value, path)
  if (problem !== undefined) throw invalid(path, problem)
}

function invalid(path: string, why: string): AgentError {
  return new AgentError('STATE_INVALID', `The saved state cannot be read: ${why}.`, { value: path })
}

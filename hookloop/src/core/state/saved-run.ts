import { AgentError, errorCodes, clause } from '../../errors.ts'
import { AgentState, metadataOf, SAVED_VERSION, STATE_VERSION, type StateFields } from './agent-state.ts'
import { continuationDecisions, stopReasons } from './continuation.ts'
import type { ExecutionFields, Step } from './execution.ts'
import { finishReasons } from './inference.ts'
import { isJsonObject, storedJson, type Json, type JsonObject } from '../../values/json.ts'
import type { TimedLedgerEntry } from './ledger.ts'
import { List } from './list.ts'
import { isMessage, type Message } from './message.ts'
import {
  amount,
  boolean,
  changedShapeOf,
  listOf,
  must,
  object,
  oneOf,
  optional,
  present,
  shapeOf,
  string,
  type Shape,
} from '../../values/shape.ts'
import type { Approval } from './tool-call.ts'
import { noTokens, noUsage } from './usage.ts'

/** A run as plain JSON: what `JSON.stringify(run)` writes. */
export type SavedRun = {
  readonly version: number
  readonly status: string
  /** The approvals that the run waits for. */
  readonly pending: readonly Approval[]
  readonly state: JsonObject
  readonly ledger?: readonly JsonObject[]
  /** Of a suspended run: its input, and what has happened since its last checkpoint. */
  readonly run?: JsonObject
  /** A checksum of the state and of `run`. */
  readonly sum?: string
}

/** Reads a saved run. Throws STATE_INVALID with the path of what is wrong, or STATE_VERSION if it is of a newer version. */
export function fromSavedRun(saved: unknown): { state: AgentState; ledger: readonly TimedLedgerEntry[] } {
  const json = versioned(jsonOf(saved), 'saved run', SAVED_VERSION)
  const ledger = json['ledger'] ?? []
  check(listOf(ledgerEntry)(ledger, 'ledger'))
  return { state: fromStateJson(json['state']), ledger: ledger as unknown as readonly TimedLedgerEntry[] }
}

/** Reads the JSON of a state: a value that `storedJson` or `parsedJson` has returned. */
export function fromStateJson(value: Json | undefined): AgentState {
  const json = versioned(value, 'state', STATE_VERSION)
  check(state(json, ''))
  const { version: _version, messages, metadata, execution: run, ...rest } = json
  const fields = {
    ...rest,
    messages: List.from(messages as unknown as Message[]),
    metadata: metadataOf(metadata as JsonObject),
    execution: run && toExecution(run as JsonObject),
  }
  return AgentState.create(fields as unknown as StateFields)
}

/** A state from parts that were changed since it was last checked, and lists whose items are checked. */
export function checkedState({
  plain,
  metadata,
  messages,
  execution: run,
  steps,
  before,
}: {
  readonly plain: JsonObject
  readonly metadata: JsonObject
  readonly messages: List<Message>
  /** Undefined if it has not changed. Its steps are in `steps`. */
  readonly execution: JsonObject | undefined
  readonly steps: List<Step>
  readonly before: StateFields | undefined
}): AgentState {
  checkVersion(plain['version'], STATE_VERSION, 'state')
  check(stateWithoutLists(plain, '', before))
  if (run !== undefined) check(executionWithoutSteps(run, 'execution', before?.execution))
  const { version: _version, ...rest } = plain
  const fields = {
    ...rest,
    messages,
    metadata: metadata === before?.metadata ? metadata : metadataOf(metadata),
    execution: run === undefined ? before?.execution : Object.freeze({ ...run, steps }),
  }
  return AgentState.create(fields as unknown as StateFields)
}

/** Throws STATE_INVALID unless all values are messages. */
export function checkMessages(messages: readonly unknown[]): void {
  check(listOf(message)(messages as Json, 'messages'))
}

/** Throws STATE_INVALID unless all values are steps. */
export function checkSteps(steps: readonly unknown[]): void {
  check(listOf(step)(steps as Json, 'execution.steps'))
}

function toExecution(json: JsonObject): ExecutionFields {
  return Object.freeze({ ...json, steps: List.from(json['steps'] as unknown as Step[]) }) as unknown as ExecutionFields
}

function jsonOf(value: unknown): Json {
  try {
    return storedJson(value, 'state')
  } catch (error) {
    throw invalid((error as Error).message)
  }
}

/** An object whose version can be read; the version is checked before anything else. */
function versioned(json: Json | undefined, what: string, known: number): JsonObject {
  if (!isJsonObject(json)) throw invalid(`the ${what} must be an object`)
  checkVersion(json['version'], known, what)
  return json
}

function checkVersion(version: Json | undefined, known: number, what: string): void {
  if (!Number.isInteger(version) || (version as number) < 1)
    throw invalid(`the version of the ${what} must be an integer from 1 up`)
  if ((version as number) <= known) return
  throw new AgentError(
    'STATE_VERSION',
    `The ${what} has version ${version as number}; this Hookloop reads up to ${known}. Use a newer one.`,
    { value: version },
  )
}

function check(problem: string | undefined): void {
  if (problem !== undefined) throw invalid(problem)
}

function invalid(why: string): AgentError {
  return new AgentError('STATE_INVALID', `The saved state cannot be read: ${clause(why)}.`, { value: why })
}

function amounts(example: object): Shape {
  return shapeOf(Object.fromEntries(Object.keys(example).map((key) => [key, amount])))
}

const tokens = amounts(noTokens)
const usage = amounts(noUsage)
const message = must(isMessage, 'must be a message')
const stopReason = oneOf(...stopReasons)
const finishReason = oneOf(...finishReasons)
const finalStatuses = ['completed', 'stopped', 'failed', 'cancelled']
const votes = listOf(
  shapeOf({ decision: oneOf(...continuationDecisions), reason: stopReason, message: string, source: string }),
)
const outcome = shapeOf({
  shouldContinue: boolean,
  stopReason: optional(stopReason),
  resolvedBy: optional(string),
  evaluations: votes,
})
const toolExecution = shapeOf({
  name: optional(string),
  status: oneOf('ok', 'failed', 'blocked', 'outcomeUnknown'),
  output: present,
})
const toolCall = shapeOf({ id: string, name: string, args: present })
const errors = listOf(shapeOf({ code: oneOf(...Object.keys(errorCodes)), message: string, during: string }))
const stepFields = shapeOf({
  index: amount,
  type: oneOf('toolExecution', 'finalResponse', 'error'),
  text: string,
  toolCalls: listOf(toolCall),
  toolExecutions: listOf(toolExecution),
  errors,
  finishReason,
  usage: tokens,
  messageCount: amount,
  outcome: optional(outcome),
})
const step: Shape = (value, path) => {
  const problem = stepFields(value, path)
  if (problem !== undefined) return problem
  const { toolCalls, toolExecutions } = value as { toolCalls: Json[]; toolExecutions: Json[] }
  return toolCalls.length === toolExecutions.length ? undefined : `"${path}" must have as many executions as calls`
}
const agentPath = listOf(shapeOf({ agent: string, step: amount, call: string }))
const final = shapeOf({
  status: oneOf(...finalStatuses),
  reason: stopReason,
  by: string,
  message: string,
  votes,
  at: amount,
})
const executionFields = {
  id: string,
  status: oneOf('running', 'suspended', ...finalStatuses),
  startedAt: amount,
  waitedMs: amount,
  votes,
  usage,
  failures: amount,
  continuations: shapeOf({ inRow: amount, total: amount }),
  requested: optional(votes),
  hooks: listOf(
    shapeOf({
      name: string,
      mode: oneOf('transform', 'guard', 'observe'),
      on: optional(listOf(string)),
      code: optional(string),
      tools: optional(listOf(string)),
    }),
  ),
  final: optional(final),
}
const executionWithoutSteps = changedShapeOf(executionFields)
const execution = shapeOf({ ...executionFields, steps: listOf(step) })
const stateFields = {
  agentId: string,
  parentId: optional(string),
  systemPrompt: string,
  responseFormat: optional(object),
  spentBefore: usage,
  executionCount: amount,
}
const stateWithoutLists = changedShapeOf(stateFields)
const state = shapeOf({ ...stateFields, messages: listOf(message), metadata: object, execution: optional(execution) })
const ledgerEntry = shapeOf({
  hook: string,
  trigger: string,
  mode: string,
  step: amount,
  durationMs: amount,
  call: optional(string),
  decision: optional(string),
  message: optional(string),
  error: optional(string),
  changes: optional(listOf(shapeOf({ path: string }))),
  shadow: optional(boolean),
  path: optional(agentPath),
  tool: optional(string),
})

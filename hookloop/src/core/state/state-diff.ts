import { AgentError } from '../../errors.ts'
import { AgentState, STATE_VERSION, type StateFields } from './agent-state.ts'
import type { ExecutionFields, Step } from './execution.ts'
import { isJsonObject, type Json, type JsonObject } from '../../values/json.ts'
import type { Change } from './ledger.ts'
import { List } from './list.ts'
import type { Message } from './message.ts'
import { checkedState, checkMessages, checkSteps } from './saved-run.ts'
import type { Usage } from './usage.ts'

// Every difference between two states is computed here, in three forms: a StateChange (the part that hooks can write,
// applicable to another state), a StateDiff (the complete state, compact, for session logs) and Changes (paths and values
// for people to read).

/** What a hook changed in a state, as JSON. */
export type StateChange = {
  /** Metadata that was set, and the keys that were removed. */
  readonly metadata?: JsonObject
  readonly removed?: readonly string[]
  /** Messages added at the end, or the complete conversation if it was changed in another way. */
  readonly appended?: readonly Message[]
  readonly messages?: readonly Message[]
  readonly systemPrompt?: string
  /** `null`: it was removed. */
  readonly responseFormat?: JsonObject | null
}

/** How a list changed: its first `keep` items stay and `add` follows. */
export type ListDiff<T> = { readonly keep: number; readonly add: readonly T[] }

type ObjectDiff = { readonly unset?: readonly string[]; readonly set?: JsonObject }

/**
 * How a complete state changed, as JSON. A session log stores diffs instead of states, so that it grows with what
 * happens and not with its square. The first diff of a log starts from nothing.
 */
export type StateDiff = Omit<StateChange, 'appended' | 'messages'> & {
  readonly version?: number
  readonly agentId?: string
  readonly parentId?: string
  readonly spentBefore?: Usage
  readonly executionCount?: number
  readonly messages?: ListDiff<Message>
  readonly execution?: ObjectDiff & { readonly steps?: ListDiff<Step> }
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }
type Same = (a: Json, b: Json) => boolean

/** What changed from one state to another in the part that hooks can write. */
export function stateChange(before: AgentState, after: AgentState, same: Same = Object.is): StateChange {
  const change: Mutable<StateChange> = {}
  const metadata = diffObject(before.metadata, after.metadata, same)
  if (metadata?.set !== undefined) change.metadata = metadata.set
  if (metadata?.unset !== undefined) change.removed = metadata.unset
  const [earlier, later] = [AgentState.fieldsOf(before).messages, AgentState.fieldsOf(after).messages]
  const messages = diffList(earlier, later, same)
  if (messages?.keep === earlier.length) change.appended = messages.add
  else if (messages !== undefined) change.messages = later.items
  if (before.systemPrompt !== after.systemPrompt) change.systemPrompt = after.systemPrompt
  if (!same(before.responseFormat ?? null, after.responseFormat ?? null))
    change.responseFormat = after.responseFormat ?? null
  return change
}

/** Makes the same change to another state. An empty change returns the state itself. */
export function applyChange(state: AgentState, change: StateChange): AgentState {
  let next = state
  for (const key of change.removed ?? []) next = next.withoutMetadata(key)
  for (const [key, value] of Object.entries(change.metadata ?? {})) next = next.withMetadata(key, value)
  if (change.messages !== undefined) next = next.withMessages(change.messages)
  for (const message of change.appended ?? []) next = next.withMessage(message)
  if (change.systemPrompt !== undefined) next = next.withSystemPrompt(change.systemPrompt)
  if (change.responseFormat !== undefined) next = next.withResponseFormat(change.responseFormat ?? undefined)
  return next
}

/** Where two JSON values differ, one change per path. Objects are compared key by key; lists and other values are not. */
export function* jsonChanges(path: string, before: Json | undefined, after: Json | undefined): Generator<Change> {
  if (before === after) return
  if (isJsonObject(before) && isJsonObject(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)]))
      yield* jsonChanges(path === '' ? key : `${path}.${key}`, own(before, key), own(after, key))
  } else if (JSON.stringify(before) !== JSON.stringify(after)) {
    yield { path, ...(before !== undefined && { before }), ...(after !== undefined && { after }) }
  }
}

function own(object: JsonObject, key: string): Json | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined
}

const plainFields = ['agentId', 'parentId', 'systemPrompt', 'responseFormat', 'spentBefore', 'executionCount'] as const

/** What changed from one complete state to another. Parts that both share by identity are not looked into. */
export function diffState(before: AgentState | undefined, after: AgentState): StateDiff {
  const [earlier, later] = [before && AgentState.fieldsOf(before), AgentState.fieldsOf(after)]
  const diff: Mutable<StateDiff> = earlier === undefined ? { version: STATE_VERSION } : {}
  for (const field of plainFields)
    if (earlier?.[field] !== later[field]) Object.assign(diff, { [field]: later[field] ?? null })
  const messages = diffList(earlier?.messages ?? List.from<Message>([]), later.messages)
  if (messages !== undefined) diff.messages = messages
  const metadata = diffObject(earlier?.metadata ?? {}, later.metadata)
  if (metadata?.set !== undefined) diff.metadata = metadata.set
  if (metadata?.unset !== undefined) diff.removed = metadata.unset
  const execution = diffExecution(earlier?.execution, later.execution)
  if (execution !== undefined) diff.execution = execution
  return diff
}

function diffExecution(
  before: ExecutionFields | undefined,
  after: ExecutionFields | undefined,
): StateDiff['execution'] {
  if (after === undefined || before === after) return undefined
  const { steps: earlier = List.from<Step>([]), ...old } = before ?? ({} as Partial<ExecutionFields>)
  const { steps: later, ...now } = after
  const steps = diffList(earlier, later)
  return { ...diffObject(old, now), ...(steps !== undefined && { steps }) }
}

function diffList<T extends Json>(before: List<T>, after: List<T>, same: Same = Object.is): ListDiff<T> | undefined {
  if (before === after) return undefined
  const keep = after.extends(before) ? before.length : sharedLength(before, after, same)
  return keep === before.length && keep === after.length ? undefined : { keep, add: after.slice(keep) }
}

function sharedLength<T extends Json>(before: List<T>, after: List<T>, same: Same): number {
  let length = 0
  while (length < before.length && length < after.length && same(before.at(length)!, after.at(length)!)) length++
  return length
}

function diffObject(before: JsonObject, after: JsonObject, same: Same = Object.is): ObjectDiff | undefined {
  if (before === after) return undefined
  const set: { [key: string]: Json } = {}
  for (const key of Object.keys(after))
    if (!Object.hasOwn(before, key) || !same(before[key]!, after[key]!)) set[key] = after[key]!
  const unset = Object.keys(before).filter((key) => !Object.hasOwn(after, key))
  return {
    ...(unset.length > 0 && { unset }),
    ...(Object.keys(set).length > 0 && { set }),
  }
}

/** The state that a diff leads to. Throws STATE_INVALID if the result is not one. Only what changed is checked. */
export function applyDiff(before: AgentState | undefined, diff: StateDiff): AgentState {
  const earlier = before && AgentState.fieldsOf(before)
  const { messages, metadata, removed, execution, ...plain } = diff
  if (execution !== undefined && !isJsonObject(execution))
    throw malformed('the change of an execution is not an object')
  const run = execution && applyObject((earlier?.execution ?? {}) as JsonObject, execution)
  return checkedState({
    plain: plainParts(earlier, plain),
    metadata: applyObject(earlier?.metadata ?? {}, { set: metadata, unset: removed }),
    messages: applyList(earlier?.messages ?? List.from<Message>([]), messages, checkMessages),
    execution: run,
    steps: applyList(earlier?.execution?.steps ?? List.from<Step>([]), execution?.steps, checkSteps),
    before: earlier,
  })
}

function plainParts(earlier: StateFields | undefined, changed: JsonObject): JsonObject {
  const known = earlier === undefined ? 0 : STATE_VERSION
  const parts: { [key: string]: Json } = { version: Object.hasOwn(changed, 'version') ? changed['version']! : known }
  for (const field of plainFields) {
    const value = Object.hasOwn(changed, field) ? changed[field] : earlier?.[field]
    if (value !== null && value !== undefined) parts[field] = value
  }
  return parts
}

export function applyObject(
  before: JsonObject,
  { unset = [], set = {} }: { readonly [K in keyof ObjectDiff]: ObjectDiff[K] | undefined },
): JsonObject {
  if (!Array.isArray(unset) || !isJsonObject(set)) throw malformed('a change does not say what it sets and removes')
  if (unset.length === 0 && Object.keys(set).length === 0) return before
  if (unset.length === 0) return { ...before, ...set }
  const after: { [key: string]: Json } = { ...before }
  for (const key of unset as readonly string[]) delete after[key]
  return { ...after, ...set }
}

function applyList<T>(list: List<T>, diff: ListDiff<T> | undefined, check: (added: readonly T[]) => void): List<T> {
  if (diff === undefined) return list
  const { keep, add } = isJsonObject(diff) ? diff : ({} as Partial<ListDiff<T>>)
  if (!Number.isInteger(keep) || keep! < 0 || keep! > list.length || !Array.isArray(add))
    throw malformed(`a list of ${list.length} items cannot keep ${String(keep)}`)
  check(add as T[])
  return list.take(keep!).concat(add as T[])
}

function malformed(why: string): AgentError {
  return new AgentError('STATE_INVALID', `The stored changes do not make a state: ${why}.`)
}

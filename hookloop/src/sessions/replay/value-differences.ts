import { fingerprintRequest } from '../../agent/model/fingerprint-request.ts'
import { usedFacts } from '../../agent/loop/fire-trigger.ts'
import type { AgentState } from '../../state/agent-state.ts'
import type { InferenceRequest } from '../../state/inference.ts'
import { sameJson, toJson, type Json, type JsonObject } from '../../state/json.ts'
import type { Change } from '../../state/ledger.ts'
import { jsonChanges, stateChange, type StateChange } from '../../state/state-diff.ts'
import { changesBetween, shortChange } from '../../hooks/changes.ts'
import type { FactValues } from '../../hooks/base-context.ts'
import type { Judged } from './event-recorder.ts'

/** The values that hooks can change. */
const values = ['input', 'request', 'response', 'toolCall', 'toolExecution', 'output', 'messages']

/** How the used value would have differed, as paths and short values. */
export function valueDifferences(was: Judged, would: Judged): readonly Change[] {
  const [before, after] = [usedValues(was), usedValues(would)]
  const used = Object.keys(before).map((name) => [name, differs(name, before, after) ? after[name] : before[name]])
  const facts = Object.fromEntries(used) as { [name: string]: unknown }
  if (facts['request'] !== before['request']) facts['request'] = sharing(before['request'], facts['request'])
  const empty = { state: was.state, votes: [], verdict: undefined, recovery: undefined }
  return changesBetween({ ...empty, facts: before }, { ...empty, facts }, true) // the used value has passed the guards, so it may be shown
}

/** Whether a different value would have been used. */
export function isUsedDifferently(name: string, was: Judged, would: Judged): boolean {
  return differs(name, usedValues(was), usedValues(would))
}

/** The values as they are used: withheld values are withheld, and arguments are those before parsing, as recorded. */
function usedValues(judged: Judged): FactValues {
  const used = Object.entries(usedFacts(judged)).filter(([name]) => values.includes(name))
  const facts: FactValues = Object.fromEntries(used)
  if (judged.args === undefined) return facts
  return { ...facts, toolCall: { ...(facts['toolCall'] as object), args: judged.args } }
}

function differs(name: string, was: FactValues, would: FactValues): boolean {
  const [before, after] = [was[name], would[name]]
  if (before === after) return false
  const plain = name === 'request' ? fingerprintOf : toJson
  return !sameJson(plain(before), plain(after))
}

function fingerprintOf(request: unknown): Json {
  return fingerprintRequest(request as InferenceRequest)
}

/** A request with an equal conversation is shown with the same one. */
function sharing(was: unknown, would: unknown): InferenceRequest {
  const [before, after] = [was as InferenceRequest, would as InferenceRequest]
  return sameJson(before.messages.toJSON(), after.messages.toJSON()) ? { ...after, messages: before.messages } : after
}

type StatePair = readonly [before: AgentState, after: AgentState]

/** What the changed hooks would have put into the state at this event, where that differs. */
export function stateDifferences(was: StatePair, would: StatePair): readonly Change[] {
  const [a, b] = [stateChange(...was), stateChange(...would)]
  const removed = [a, b].map((each) => each.removed ?? [])
  const changes = [...jsonChanges('state', shown(a), shown(b))]
  const keys = [...new Set(removed.flat())].filter((key) => removed[0]!.includes(key) !== removed[1]!.includes(key))
  const unset = keys.map((key) => ({ path: `state.metadata.${key}` }))
  return [...changes.map(shortChange), ...unset.filter(({ path }) => changes.every((each) => each.path !== path))]
}

function shown({ metadata = {}, appended, messages, systemPrompt, responseFormat }: StateChange): JsonObject {
  const conversation = messages ?? (appended && { added: appended })
  return toJson({ metadata, messages: conversation, systemPrompt, responseFormat }) as JsonObject
}

import { fingerprintRequest } from '../../agent/model/fingerprint-request.ts'
import { usedFacts } from '../../agent/loop/redact-withheld.ts'
import type { AgentState } from '../../state/agent-state.ts'
import type { InferenceRequest } from '../../state/inference.ts'
import { sameJson, toJson, type Json } from '../../state/json.ts'
import type { Change } from '../../state/ledger.ts'
import { changesBetween, short } from '../../hooks/changes.ts'
import type { FactValues } from '../../hooks/base-context.ts'
import { stateChange, type StateChange } from '../../hooks/outcome.ts'
import { sameMessages } from './state-overlay.ts'
import type { Judged } from './watched-run.ts'

/** What flows, and hooks may change. */
const values = ['input', 'request', 'response', 'toolCall', 'toolExecution', 'output', 'messages']

/** How the value would have been used otherwise, as places and short values. */
export function valueDifferences(was: Judged, would: Judged): readonly Change[] {
  const [before, after] = [usedValues(was), usedValues(would)]
  const kept = Object.keys(before).map((name) => [name, differs(name, before, after) ? after[name] : before[name]])
  const facts = Object.fromEntries(kept) as { [name: string]: unknown }
  if (facts['request'] !== before['request']) facts['request'] = sharing(before['request'], facts['request'])
  const empty = { state: was.state, votes: [], verdict: undefined, recovery: undefined }
  return changesBetween({ ...empty, facts: before }, { ...empty, facts }, true) // used, so guards let it through
}

/** Whether a value would have been used otherwise. */
export function isUsedOtherwise(name: string, was: Judged, would: Judged): boolean {
  return differs(name, usedValues(was), usedValues(would))
}

/** The values as they are used: what was withheld is withheld, and arguments are those that are kept and recorded. */
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

/** A request that has the same conversation shows it as the same. */
function sharing(was: unknown, would: unknown): InferenceRequest {
  const [before, after] = [was as InferenceRequest, would as InferenceRequest]
  return sameMessages(before.messages, after.messages) ? { ...after, messages: before.messages } : after
}

type Before = AgentState
type After = AgentState

/** What would have been put into the state otherwise, at this event. */
export function stateDifferences(was: readonly [Before, After], would: readonly [Before, After]): readonly Change[] {
  const [a, b] = [stateChange(...was), stateChange(...would)]
  if (sameJson(toJson(a), toJson(b))) return []
  return [
    ...metadataDifferences(a, b),
    ...differing('state.messages', messagesOf(a), messagesOf(b)),
    ...differing('state.systemPrompt', a.systemPrompt, b.systemPrompt),
    ...differing('state.responseFormat', a.responseFormat, b.responseFormat),
  ]
}

function* metadataDifferences(a: StateChange, b: StateChange): Generator<Change> {
  const keys = [a.metadata, b.metadata].flatMap((each) => Object.keys(each ?? {}))
  for (const key of new Set([...keys, ...(a.removed ?? []), ...(b.removed ?? [])])) {
    const isSame = (a.removed ?? []).includes(key) === (b.removed ?? []).includes(key)
    const changes = differing(`state.metadata.${key}`, a.metadata?.[key], b.metadata?.[key])
    yield* changes.length > 0 || isSame ? changes : [{ path: `state.metadata.${key}` }]
  }
}

function messagesOf({ messages, appended }: StateChange): Json | undefined {
  return messages === undefined ? appended && { added: toJson(appended) } : toJson(messages)
}

function differing(path: string, before: Json | undefined, after: Json | undefined): readonly Change[] {
  if (sameJson(before ?? null, after ?? null)) return []
  return [
    {
      path,
      ...(before !== undefined && { before: short(before) }),
      ...(after !== undefined && { after: short(after) }),
    },
  ]
}

import { shorten } from '../../values/text.ts'
import { AgentState } from '../state/agent-state.ts'
import { messagesOf, type InferenceRequest, type InferenceResponse } from '../state/inference.ts'
import { textOfJson, type Json } from '../../values/json.ts'
import type { Change } from '../state/ledger.ts'
import type { List } from '../state/list.ts'
import { textOf, type Message } from '../state/message.ts'
import { jsonChanges } from '../state/state-diff.ts'
import type { ToolCall, ToolExecution } from '../state/tool-call.ts'
import type { Draft } from './base-context.ts'

const MAX_CHANGES = 20
const MAX_TEXT = 200

/**
 * What a hook changed, as places and short values, for the ledger. Of inputs, outputs and answers only the new value is
 * kept, and only if it is the last: what a hook took out of them, and what a guard refuses, must not be found again here.
 */
export function changesBetween(before: Draft, after: Draft, isLast: boolean): readonly Change[] {
  const changes = [...factChanges(before, after, isLast), ...stateChanges(before.state, after.state)]
  const shown = changes.slice(0, MAX_CHANGES).map((change) => Object.freeze(change))
  if (changes.length > MAX_CHANGES) shown.push(Object.freeze({ path: `… and ${changes.length - MAX_CHANGES} more` }))
  return Object.freeze(shown)
}

function* factChanges(before: Draft, after: Draft, isLast: boolean): Generator<Change> {
  if (before.facts === after.facts) return
  const told = (value: Json): Partial<Change> => (isLast ? { after: short(value) } : {})
  for (const name of Object.keys(after.facts)) {
    const [a, b] = [before.facts[name], after.facts[name]]
    if (a === b) continue
    switch (name) {
      case 'toolCall':
        yield* shortChanges('args', (a as ToolCall).args, (b as ToolCall).args)
        break
      case 'toolExecution':
        yield { path: 'output', ...told((b as ToolExecution).output) }
        break
      case 'response':
        yield { path: 'response', ...told((b as InferenceResponse).text) }
        break
      case 'request':
        yield* requestChanges(a as InferenceRequest, b as InferenceRequest)
        break
      case 'messages':
        yield { path: 'messages', before: (a as Message[]).length, after: (b as Message[]).length }
        break
      case 'input':
        yield { path: 'input', ...told((b as Message).content) }
        break
      default:
        yield { path: name, ...told(b as Json) }
    }
  }
}

function* requestChanges(before: InferenceRequest, after: InferenceRequest): Generator<Change> {
  if (before.model !== after.model) {
    const name = (request: InferenceRequest): string => `${request.model.provider}/${request.model.modelId}`
    yield { path: 'request.model', before: name(before), after: name(after) }
  }
  const [earlier, later] = [messagesOf(before), messagesOf(after)]
  if (earlier !== later) yield messagesChange('request.messages', earlier, later)
  for (const key of ['system', 'tools', 'toolChoice', 'responseFormat', 'settings'] as const) {
    if (before[key] !== after[key]) yield { path: `request.${key}`, after: short(after[key] ?? null) }
  }
}

function* stateChanges(before: AgentState, after: AgentState): Generator<Change> {
  if (before === after) return
  const [earlier, later] = [AgentState.fieldsOf(before).messages, AgentState.fieldsOf(after).messages]
  if (earlier !== later) yield messagesChange('state.messages', earlier, later)
  if (before.systemPrompt !== after.systemPrompt) yield { path: 'state.systemPrompt', after: short(after.systemPrompt) }
  if (before.responseFormat !== after.responseFormat) yield { path: 'state.responseFormat' }
  if (before.metadata !== after.metadata) yield* shortChanges('state.metadata', before.metadata, after.metadata)
}

/** How many messages there are, and the text of those that were added at the end. */
function messagesChange(path: string, before: List<Message>, after: List<Message>): Change {
  const counts = { path, before: before.length, after: after.length }
  const isLonger =
    after.length > before.length && (before.length === 0 || after.at(before.length - 1) === before.at(-1))
  if (!isLonger) return counts
  const added = after.slice(before.length).map(({ content }) => textOf(content))
  return { ...counts, added: shorten(added.join('\n'), MAX_TEXT) }
}

function* shortChanges(path: string, before: Json, after: Json): Generator<Change> {
  for (const change of jsonChanges(path, before, after)) yield shortChange(change)
}

/** A change with long values cut. */
function shortChange({ path, before, after }: Change): Change {
  return {
    path,
    ...(before !== undefined && { before: short(before) }),
    ...(after !== undefined && { after: short(after) }),
  }
}

/** A value, or the beginning of its text if that is long. */
function short(value: Json): Json {
  const text = textOfJson(value)
  return text.length <= MAX_TEXT ? value : shorten(text, MAX_TEXT)
}

import type { InferenceRequest, InferenceResponse } from '../state/inference.ts'
import { toJson, type Json, type JsonObject } from '../../values/json.ts'
import type { EntryWarning } from '../state/ledger.ts'
import { List } from '../state/list.ts'
import { toMessages, type Message } from '../state/message.ts'
import { applyChange, stateChange, type StateChange } from '../state/state-diff.ts'
import type { ToolCall, ToolExecution } from '../state/tool-call.ts'
import { toTokens, type TokenUsage } from '../state/usage.ts'
import { AgentError } from '../../errors.ts'
import { changeRequest } from './context-methods.ts'
import type { Draft, FactValues, Vote } from './base-context.ts'

/**
 * Everything one hook decided and changed in one firing, as JSON. It is what `fire` shows, what is recorded of a hook
 * that performs an effect, and what hooks in other processes will answer with.
 */
export type HookOutcome = {
  readonly decision?: 'block' | 'ask' | 'allow'
  readonly message?: string
  readonly votes?: readonly Vote[]
  readonly recovery?: { readonly decision: 'retry' | 'ignore'; readonly afterMs: number }
  readonly input?: Message
  readonly request?: JsonObject
  readonly response?: InferenceResponse
  readonly args?: Json
  readonly output?: Json
  readonly messages?: readonly Message[]
  readonly state?: StateChange
  /** What the hook itself has spent on models. */
  readonly spent?: Partial<TokenUsage>
  /** How long the call may take. */
  readonly within?: number
  /** The conversation is to be made shorter, down to so many messages and a summary. */
  readonly compact?: { readonly keep: number }
  /** Problems that stopped nothing, for `run.warnings`. */
  readonly warnings?: readonly EntryWarning[]
  /** Which file or script decided, if the hook runs several. It is stored in the ledger; the model does not receive it. */
  readonly decidedAt?: string
}

export function toOutcome(before: Draft, after: Draft): HookOutcome {
  const { verdict, votes, recovery, spent, within, compact, warnings } = after
  return {
    ...(verdict !== undefined && { decision: verdict.decision }),
    ...(verdict?.message !== undefined && { message: verdict.message }),
    ...(votes.length > 0 && { votes }),
    ...(recovery !== undefined && { recovery }),
    ...(spent !== undefined && { spent }),
    ...(within !== undefined && { within }),
    ...(compact !== undefined && { compact: { keep: compact.keep } }),
    ...(warnings !== undefined && { warnings }),
    ...factOutcome(before.facts, after.facts),
    ...(before.state !== after.state && { state: stateChange(before.state, after.state) }),
  }
}

export function applyOutcome(before: Draft, outcome: HookOutcome): Draft {
  if (outcome.compact !== undefined) {
    throw new AgentError(
      'HOOK_INVALID_OPTION',
      'A hook with effect: true cannot compact, because what writes the summary cannot be recorded. Make it two hooks.',
    )
  }
  return {
    state: outcome.state === undefined ? before.state : applyChange(before.state, outcome.state),
    facts: changeFacts(before.facts, outcome),
    votes: outcome.votes ?? [],
    verdict: outcome.decision && { decision: outcome.decision, message: outcome.message },
    recovery: outcome.recovery,
    spent: outcome.spent && toTokens(outcome.spent),
    within: outcome.within,
    warnings: outcome.warnings,
    decidedAt: outcome.decidedAt,
  }
}

function factOutcome(before: FactValues, after: FactValues): HookOutcome {
  const changed = <T>(name: string): T | undefined => (before[name] === after[name] ? undefined : (after[name] as T))
  const [input, response, messages] = [
    changed<Message>('input'),
    changed<InferenceResponse>('response'),
    changed<readonly Message[]>('messages'),
  ]
  const request = changed<InferenceRequest>('request')
  const call = changed<ToolCall>('toolCall')
  const execution = changed<ToolExecution>('toolExecution')
  const output = execution === undefined ? changed<Json>('output') : execution.output
  return {
    ...(input && { input }),
    ...(response && { response }),
    ...(messages && { messages }),
    ...(request && { request: requestChange(before['request'] as InferenceRequest, request) }),
    ...(call && { args: call.args }),
    ...(output !== undefined && { output }),
  }
}

function requestChange(before: InferenceRequest, after: InferenceRequest): JsonObject {
  if (before.model !== after.model) {
    throw new AgentError(
      'HOOK_INVALID_OPTION',
      'A hook with effect: true cannot choose a model, because a model cannot be recorded. Choose it in a second hook.',
    )
  }
  const changed = Object.entries(after).filter(([key, value]) => before[key as keyof InferenceRequest] !== value)
  return toJson(Object.fromEntries(changed)) as JsonObject
}

function changeFacts(facts: FactValues, outcome: HookOutcome): FactValues {
  const { input, response, messages, request, args, output } = outcome
  const call = facts['toolCall'] as ToolCall
  const execution = facts['toolExecution'] as ToolExecution | undefined
  const changes = {
    ...(input && { input }),
    ...(response && { response }),
    ...(messages && { messages: toMessages(messages, List.from<Message>([])).items }),
    ...(request && { request: changeRequest(facts['request'] as InferenceRequest, request, noModel) }),
    ...(args !== undefined && { toolCall: Object.freeze({ ...call, args }) }),
    ...(output !== undefined && (execution ? { toolExecution: Object.freeze({ ...execution, output }) } : { output })),
  }
  return Object.keys(changes).length === 0 ? facts : { ...facts, ...changes }
}

/** A recorded change names no model: a hook with an effect cannot choose one. */
function noModel(): never {
  throw new AgentError('HOOK_INVALID_OPTION', 'A recorded change of a request cannot name a model.')
}

import { contextMessage } from '../../../actions/outcome.ts'
import { ENVIRONMENT_KEY, TITLE_KEY } from '../../../core/state/agent-state.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../values/json.ts'
import type { Message } from '../../../core/state/message.ts'
import { textMessage, textOf } from '../../../core/state/message.ts'
import type { ToolCall } from '../../../core/state/tool-call.ts'
import { BaseContext, type Vote } from '../../../core/hooks/base-context.ts'
import type { HookOutcome } from '../../../core/hooks/outcome.ts'
import type { StateChange } from '../../../core/state/state-diff.ts'
import { setSessionVariables, getSessionVariables } from '../../../system/processes/session-variables.ts'
import type { ClaudeEvent } from '../events/claude-events.ts'
import { addTokens, toTokens } from '../../../core/state/usage.ts'
import type { EventResult } from '../run/run-event.ts'
import type { MergedAnswer } from './merge-answers.ts'
import type { Payload } from '../events/common-payload.ts'
import { fromClaudeInput } from '../events/tool-names.ts'
import { fromClaudeOutput } from '../events/tool-outputs.ts'

type ToOutcome = {
  readonly merged: MergedAnswer
  /** The arguments of the call, if another event has changed them. */
  readonly args?: Json | undefined
}

type Decided = { readonly decision: MergedAnswer['decision'] | undefined; readonly reason: string }

/** Turns the merged answers of an event into a hook outcome. */
export function toHookOutcome(ctx: BaseContext, payload: Payload, { merged, args }: ToOutcome): HookOutcome {
  const stops = merged.decision === 'stop'
  const decided: Decided = stops ? (merged.alsoDecided ?? { decision: undefined, reason: '' }) : merged
  const votes = stops ? { votes: [stopVote(merged, payload.event)] } : {}
  const context = merged.additionalContext
  switch (payload.event) {
    case 'UserPromptExpansion':
    case 'UserPromptSubmit':
      if (!stops && decided.decision !== 'block') return withTitle(withMessages(payload, { context }), merged)
      return { decision: 'block', message: reasonOr(stops ? merged.reason : decided.reason, payload) }
    case 'PreToolUse':
      return {
        ...permission(decided, payload),
        ...(merged.updatedInput !== undefined &&
          decided.decision !== 'deny' && { args: fromClaudeInput(callOf(ctx).name, merged.updatedInput) }),
        ...votes,
        ...withMessages(payload, { context }),
      }
    case 'PostToolUse':
    case 'PostToolUseFailure':
      return { ...votes, ...changedOutput(ctx, merged), ...feedback(payload, merged) }
    case 'PostToolBatch': {
      const ends = stops || decided.decision === 'block'
      return { ...(ends && { votes: [stopVote(merged, payload.event)] }), ...withMessages(payload, { context }) }
    }
    case 'Stop':
    case 'SubagentStop':
      return stops ? {} : continuation(merged, payload)
    case 'PreCompact':
      return decided.decision === 'block' ? { decision: 'block', message: reasonOr(decided.reason, payload) } : {}
    case 'Setup':
    case 'SessionStart':
      return sessionStart(ctx, payload, merged)
    case 'SubagentStart':
      return context === undefined ? {} : withContext(args ?? callOf(ctx).args, payload, context)
    case 'TaskCreated':
    case 'TaskCompleted':
      return decided.decision === 'block' ? permission(decided, payload) : {}
    case 'PermissionDenied': {
      if (merged.other?.['retry'] !== true) return {}
      const text = `${placeOf(payload)} hook: the call was denied automatically. You may try it again once.`
      return { state: { appended: [textMessage('user', text)] } }
    }
    default:
      return {}
  }
}

function permission({ decision, reason }: Decided, payload: Payload): HookOutcome {
  switch (decision) {
    case 'deny':
    case 'block':
      return { decision: 'block', message: `${placeOf(payload)} hook error: ${reasonOr(reason, payload)}` }
    case 'ask':
    case 'defer':
      return { decision: 'ask', message: reasonOr(reason, payload, 'asked for approval') }
    case 'allow':
      return { decision: 'allow', message: reasonOr(reason, payload, 'allowed it') }
    default:
      return {}
  }
}

function changedOutput(ctx: BaseContext, { updatedOutput }: MergedAnswer): HookOutcome {
  if (updatedOutput === undefined) return {}
  const output = fromClaudeOutput(callOf(ctx).name, updatedOutput)
  return output === undefined ? {} : { output }
}

function feedback(payload: Payload, { decision, alsoDecided, reason, additionalContext }: MergedAnswer): HookOutcome {
  const text = decision === 'block' ? reason : alsoDecided?.decision === 'block' ? alsoDecided.reason : undefined
  return withMessages(payload, { context: additionalContext, feedback: text })
}

/** A block, or context, prevents a turn from ending. The model receives its text. */
function continuation({ decision, reason, additionalContext }: MergedAnswer, { event }: Payload): HookOutcome {
  const isBlocked = decision === 'block'
  const texts = [isBlocked ? reason : '', additionalContext ?? ''].filter((each) => each !== '')
  if (!isBlocked && texts.length === 0) return {}
  const message = `${event} hook feedback:\n${texts.join('\n') || 'The task is not finished.'}`
  return { votes: [{ decision: 'requestContinuation', reason: 'completed', message }] }
}

/** A vote that ends the run. */
export function stopVote(
  { reason, alsoDecided }: Pick<MergedAnswer, 'reason' | 'alsoDecided'>,
  event: ClaudeEvent,
): Vote {
  const reasons = new Set([reason, alsoDecided?.reason ?? ''].filter((each) => each !== ''))
  const message = reasons.size === 0 ? `A hook at ${event} ended the run.` : [...reasons].join('\n')
  return { decision: 'forbidContinuation', reason: 'stopRequested', message }
}

function withMessages(
  payload: Payload,
  { context, feedback: text }: { context: string | undefined; feedback?: string | undefined },
): HookOutcome {
  const appended: Message[] = []
  if (text !== undefined) {
    appended.push(textMessage('user', `${placeOf(payload)} hook feedback:\n${reasonOr(text, payload)}`))
  }
  if (context !== undefined) appended.push(contextMessage(context, placeOf(payload)))
  return appended.length === 0 ? {} : { state: { appended } }
}

/** A session starts, or continues after a compaction. */
function sessionStart(ctx: BaseContext, payload: Payload, merged: MergedAnswer): HookOutcome {
  const { source } = payload.input
  const { initialUserMessage: first, environment } = merged.other ?? {}
  const added = withMessages(payload, { context: merged.additionalContext })
  if (ctx.trigger === 'afterCompaction') {
    const { messages } = BaseContext.draftOf(ctx).facts as { readonly messages: readonly Message[] }
    return added.state?.appended === undefined ? {} : { messages: [...messages, ...added.state.appended] }
  }
  const isNew = source === 'startup' && typeof first === 'string' && first !== ''
  const appended = [...(added.state?.appended ?? []), ...(isNew ? [textMessage('user', first)] : [])]
  const variables = isJsonObject(environment) ? withVariables(ctx, environment) : {}
  const state = { ...(appended.length > 0 && { appended }), ...variables }
  const outcome = Object.keys(state).length === 0 ? {} : { state }
  return source === 'clear' ? outcome : withTitle(outcome, merged)
}

/** Sets variables for later commands. */
function withVariables({ state }: BaseContext, set: JsonObject): StateChange {
  const before = getSessionVariables(state.metadata[ENVIRONMENT_KEY])
  const texts = Object.entries(set).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  return { metadata: { [ENVIRONMENT_KEY]: setSessionVariables({ ...before, ...Object.fromEntries(texts) }) } }
}

function withTitle(outcome: HookOutcome, { other }: MergedAnswer): HookOutcome {
  const title = other?.['sessionTitle']
  if (typeof title !== 'string' || title.trim() === '') return outcome
  return { ...outcome, state: { ...outcome.state, metadata: { ...outcome.state?.metadata, [TITLE_KEY]: title } } }
}

/** Context for a subagent is added to its prompt. */
function withContext(args: Json, payload: Payload, context: string): HookOutcome {
  if (!isJsonObject(args)) return {}
  const { prompt } = args
  if (typeof prompt !== 'string') return {}
  return { args: { ...args, prompt: `${prompt}\n\n${textOf(contextMessage(context, placeOf(payload)).content)}` } }
}

/** The event and its tool. */
function placeOf({ event, input }: Payload): string {
  const tool = input['tool_name']
  return typeof tool === 'string' ? `${event}:${tool}` : event
}

function reasonOr(reason: string, { event }: Payload, what = 'blocked it'): string {
  return reason === '' ? `A hook at ${event} ${what} without a reason.` : reason
}

function callOf(ctx: BaseContext): ToolCall {
  return BaseContext.draftOf(ctx).facts['toolCall'] as ToolCall
}

/** Merges the outcomes of two events of one trigger. Later events can only block. */
export function mergeOutcomes(first: HookOutcome, second: HookOutcome): HookOutcome {
  const appended = [...(first.state?.appended ?? []), ...(second.state?.appended ?? [])]
  const votes = [...(first.votes ?? []), ...(second.votes ?? [])]
  const warnings = [...(first.warnings ?? []), ...(second.warnings ?? [])]
  const spent = [first.spent, second.spent].filter((each) => each !== undefined)
  const metadata = { ...first.state?.metadata, ...second.state?.metadata, ...mergedVariables(first, second) }
  const state = {
    ...first.state,
    ...second.state,
    ...(appended.length > 0 && { appended }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
  }
  return {
    ...first,
    ...second,
    ...(Object.keys(state).length > 0 && { state }),
    ...(votes.length > 0 && { votes }),
    ...(warnings.length > 0 && { warnings }),
    ...(spent.length > 0 && { spent: spent.map(toTokens).reduce(addTokens) }),
  }
}

/** Each outcome has stored its variables under its own id. */
function mergedVariables(...both: readonly [HookOutcome, HookOutcome]): JsonObject {
  const names = both.flatMap(({ state }) => state?.metadata?.[ENVIRONMENT_KEY] ?? [])
  if (names.length < 2) return {}
  return { [ENVIRONMENT_KEY]: setSessionVariables(Object.assign({}, ...names.map(getSessionVariables))) }
}

export function spentOn(ran: EventResult['ran']): Pick<HookOutcome, 'spent'> {
  const spent = ran.flatMap(({ answer }) => answer.spent ?? [])
  return spent.length === 0 ? {} : { spent: spent.map(toTokens).reduce(addTokens) }
}

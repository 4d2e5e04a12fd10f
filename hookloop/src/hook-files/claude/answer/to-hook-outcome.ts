import { contextMessage } from '../../../actions/outcome.ts'
import { ENVIRONMENT_KEY, TITLE_KEY } from '../../../state/agent-state.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../state/json.ts'
import type { List } from '../../../state/list.ts'
import type { Message } from '../../../state/message.ts'
import { textMessage, textOf } from '../../../state/message.ts'
import type { ToolCall } from '../../../state/tool-call.ts'
import { BaseContext, type Mode, type Vote } from '../../../hooks/base-context.ts'
import type { HookOutcome } from '../../../hooks/outcome.ts'
import type { StateChange } from '../../../state/state-diff.ts'
import { setSessionVariables, getSessionVariables } from '../../../system/processes/session-variables.ts'
import type { ClaudeEvent } from '../events/claude-events.ts'
import type { MergedAnswer } from './merge-answers.ts'
import type { Payload } from '../events/payload.ts'
import { fromClaudeInput } from '../events/tool-names.ts'
import { fromClaudeOutput } from '../events/tool-outputs.ts'

type ToOutcome = {
  readonly merged: MergedAnswer
  readonly mode?: Mode
  /** The arguments of the call, if another event has changed them already. */
  readonly args?: Json | undefined
}

type Decided = { readonly decision: MergedAnswer['decision'] | undefined; readonly reason: string }

/** What the answers of a group mean for a run of ours. */
export function toHookOutcome(
  ctx: BaseContext,
  payload: Payload,
  { merged, mode = 'transform', args }: ToOutcome,
): HookOutcome {
  const stops = merged.decision === 'stop'
  const decided: Decided = stops ? (merged.beside ?? { decision: undefined, reason: '' }) : merged
  const votes = stops ? { votes: [stopVote(merged.reason, payload.event)] } : {}
  const context = merged.additionalContext
  switch (payload.event) {
    case 'UserPromptExpansion':
    case 'UserPromptSubmit':
      if (!stops && decided.decision !== 'block') return titled(told(payload, { context }), merged)
      return { decision: 'block', message: orWords(stops ? merged.reason : decided.reason, payload) }
    case 'PreToolUse':
      if (mode === 'guard') return guarded(payload, { merged, decided, votes })
      return {
        ...permission(decided, payload),
        ...(merged.updatedInput !== undefined && { args: fromClaudeInput(callOf(ctx).name, merged.updatedInput) }),
        ...votes,
        ...told(payload, { context }),
      }
    case 'PostToolUse':
    case 'PostToolUseFailure':
      return { ...votes, ...changedOutput(ctx, merged, mode), ...(mode !== 'guard' && feedback(payload, merged)) }
    case 'PostToolBatch': {
      const ends = stops || decided.decision === 'block'
      return { ...(ends && { votes: [stopVote(merged.reason, payload.event)] }), ...told(payload, { context }) }
    }
    case 'Stop':
    case 'SubagentStop':
      return stops ? {} : goingOn(merged, payload)
    case 'PreCompact':
      return decided.decision === 'block' ? { decision: 'block', message: orWords(decided.reason, payload) } : {}
    case 'Setup':
    case 'SessionStart':
      return begun(ctx, payload, merged)
    case 'SubagentStart':
      return mode === 'guard' || context === undefined ? {} : withContext(args ?? callOf(ctx).args, payload, context)
    case 'TaskCreated':
    case 'TaskCompleted':
      return decided.decision === 'block' ? permission(decided, payload) : {}
    case 'PermissionDenied':
      return mode === 'guard' || merged.other?.['retry'] !== true ? {} : { state: { appended: [mayRetry(payload)] } }
    default:
      return {}
  }
}

function permission({ decision, reason }: Decided, payload: Payload): HookOutcome {
  switch (decision) {
    case 'deny':
    case 'block':
      return { decision: 'block', message: `${placeOf(payload)} hook error: ${orWords(reason, payload)}` }
    case 'ask':
    case 'defer':
      return { decision: 'ask', message: orWords(reason, payload, 'asks') }
    case 'allow':
      return { decision: 'allow', message: orWords(reason, payload, 'allows it') }
    default:
      return {}
  }
}

/** Inside a subagent the group judges and changes nothing. What it would have changed does not run as it is. */
function guarded(
  payload: Payload,
  { merged, decided, votes }: { merged: MergedAnswer; decided: Decided; votes: HookOutcome },
): HookOutcome {
  if (merged.updatedInput === undefined || decided.decision === 'deny')
    return { ...permission(decided, payload), ...votes }
  const reason = 'a hook would run it with other arguments, which it cannot inside a subagent'
  return { ...permission({ decision: 'deny', reason }, payload), ...votes }
}

function changedOutput(ctx: BaseContext, { updatedOutput }: MergedAnswer, mode: Mode): HookOutcome {
  if (updatedOutput === undefined) return {}
  if (mode === 'guard') {
    return { decision: 'block', message: 'a hook would show another output, which it cannot inside a subagent' }
  }
  const output = fromClaudeOutput(callOf(ctx).name, updatedOutput)
  return output === undefined ? {} : { output }
}

function feedback(payload: Payload, { decision, beside, reason, additionalContext }: MergedAnswer): HookOutcome {
  const words = decision === 'block' ? reason : beside?.decision === 'block' ? beside.reason : undefined
  return told(payload, { context: additionalContext, feedback: words })
}

/** A block keeps a turn from ending, and so does context, which is then what the model is told. */
function goingOn({ decision, reason, additionalContext }: MergedAnswer, { event }: Payload): HookOutcome {
  const isBlocked = decision === 'block'
  const words = [isBlocked ? reason : '', additionalContext ?? ''].filter((each) => each !== '')
  if (!isBlocked && words.length === 0) return {}
  const message = `${event} hook feedback:\n${words.join('\n') || 'It is not finished.'}`
  return { votes: [{ decision: 'requestContinuation', reason: 'completed', message }] }
}

/** Ends the run. */
export function stopVote(reason: string, event: ClaudeEvent): Vote {
  const message = reason === '' ? `A hook at ${event} ended the run.` : reason
  return { decision: 'forbidContinuation', reason: 'stopRequested', message }
}

function told(
  payload: Payload,
  { context, feedback: words }: { context: string | undefined; feedback?: string | undefined },
): HookOutcome {
  const appended: Message[] = []
  if (words !== undefined) {
    appended.push(textMessage('user', `${placeOf(payload)} hook feedback:\n${orWords(words, payload)}`))
  }
  if (context !== undefined) appended.push(contextMessage(context, placeOf(payload)))
  return appended.length === 0 ? {} : { state: { appended } }
}

/** A conversation begins, or goes on with a summary. */
function begun(ctx: BaseContext, payload: Payload, merged: MergedAnswer): HookOutcome {
  const { source } = payload.input
  const { initialUserMessage: first, environment } = merged.other ?? {}
  const said = told(payload, { context: merged.additionalContext })
  if (ctx.trigger === 'afterCompaction') {
    const { messages } = BaseContext.draftOf(ctx).facts as { readonly messages: List<Message> }
    return said.state?.appended === undefined ? {} : { messages: [...messages, ...said.state.appended] }
  }
  const isNew = source === 'startup' && typeof first === 'string' && first !== ''
  const appended = [...(said.state?.appended ?? []), ...(isNew ? [textMessage('user', first)] : [])]
  const variables = isJsonObject(environment) ? withVariables(ctx, environment) : {}
  const state = { ...(appended.length > 0 && { appended }), ...variables }
  const outcome = Object.keys(state).length === 0 ? {} : { state }
  return source === 'clear' ? outcome : titled(outcome, merged)
}

/** Commands see them from now on. */
function withVariables({ state }: BaseContext, set: JsonObject): StateChange {
  const before = getSessionVariables(state.metadata[ENVIRONMENT_KEY])
  const texts = Object.entries(set).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  return { metadata: { [ENVIRONMENT_KEY]: setSessionVariables({ ...before, ...Object.fromEntries(texts) }) } }
}

function titled(outcome: HookOutcome, { other }: MergedAnswer): HookOutcome {
  const title = other?.['sessionTitle']
  if (typeof title !== 'string' || title.trim() === '') return outcome
  return { ...outcome, state: { ...outcome.state, metadata: { ...outcome.state?.metadata, [TITLE_KEY]: title } } }
}

/** A subagent is told in what it is asked to do. */
function withContext(args: Json, payload: Payload, context: string): HookOutcome {
  if (!isJsonObject(args)) return {}
  const { prompt } = args
  if (typeof prompt !== 'string') return {}
  return { args: { ...args, prompt: `${prompt}\n\n${textOf(contextMessage(context, placeOf(payload)).content)}` } }
}

function mayRetry(payload: Payload): Message {
  return textMessage('user', `${placeOf(payload)} hook: the call was denied automatically. You may try it once more.`)
}

/** Words of a hook that nobody waited for, as the model reads them later. */
export function lateMessages(texts: readonly string[]): readonly Message[] {
  return texts.map((text) => contextMessage(text, 'a hook in the background'))
}

/** The event, and the tool it is about. */
function placeOf({ event, input }: Payload): string {
  const tool = input['tool_name']
  return typeof tool === 'string' ? `${event}:${tool}` : event
}

function orWords(reason: string, { event }: Payload, says = 'says no'): string {
  return reason === '' ? `A hook at ${event} ${says}, without a reason.` : reason
}

function callOf(ctx: BaseContext): ToolCall {
  return BaseContext.draftOf(ctx).facts['toolCall'] as ToolCall
}

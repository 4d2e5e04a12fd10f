import { contextMessage } from '../../actions/outcome.ts'
import type { Message } from '../../data/message.ts'
import { textMessage } from '../../data/message.ts'
import type { Vote } from '../../hooks/draft.ts'
import type { HookOutcome } from '../../hooks/outcome.ts'
import type { ToolCall } from '../../data/tool-call.ts'
import { Context } from '../../hooks/draft.ts'
import type { Merged } from './merge.ts'
import type { Payload } from './payload.ts'
import { fromClaudeInput } from './tool-names.ts'

/** What the answers of a group mean for a run of ours. */
export function toHookOutcome(ctx: Context, { event }: Payload, merged: Merged): HookOutcome {
  const decision = merged.decision === 'stop' ? merged.beside : merged.decision
  const stops = merged.decision === 'stop'
  const context = merged.additionalContext
  switch (event) {
    case 'UserPromptSubmit':
      if (stops || decision === 'block') return { decision: 'block', message: reasonOf(merged, event) }
      return told(context, event)
    case 'PreToolUse':
      return {
        ...permission(decision, reasonOf(merged, event)),
        ...(merged.updatedInput !== undefined && {
          args: fromClaudeInput(callOf(ctx).name, merged.updatedInput),
        }),
        ...(stops && { votes: [stop(merged.reason, event)] }),
        ...told(context, event),
      }
    case 'PostToolUse':
    case 'PostToolUseFailure':
      return {
        ...(merged.updatedOutput !== undefined && { output: merged.updatedOutput }),
        ...(stops && { votes: [stop(merged.reason, event)] }),
        ...told(context, event, decision === 'block' ? merged.reason : undefined),
      }
    case 'PostToolBatch':
      return {
        ...((stops || decision === 'block') && { votes: [stop(merged.reason, event)] }),
        ...told(context, event),
      }
    case 'Stop':
    case 'SubagentStop':
      return goingOn(merged, decision)
    case 'PreCompact':
      return decision === 'block' ? { decision: 'block', message: reasonOf(merged, event) } : {}
    case 'SessionStart':
      return told(context, event)
    default:
      return {}
  }
}

function permission(decision: Merged['decision'] | undefined, message: string): HookOutcome {
  switch (decision) {
    case 'deny':
    case 'block':
      return { decision: 'block', message }
    case 'ask':
    case 'defer':
      return { decision: 'ask', message }
    case 'allow':
      return { decision: 'allow', message }
    default:
      return {}
  }
}

/** A block keeps a turn from ending, and so does context, which is then what the model is told. */
function goingOn(merged: Merged, decision: Merged['decision'] | undefined): HookOutcome {
  if (merged.decision === 'stop') return {}
  const words = [decision === 'block' ? merged.reason : '', merged.additionalContext ?? ''].filter(
    (each) => each !== '',
  )
  if (decision !== 'block' && words.length === 0) return {}
  const message = words.join('\n') || 'A hook says that it is not finished.'
  return { votes: [{ decision: 'requestContinuation', reason: 'completed', message }] }
}

function stop(reason: string, event: string): Vote {
  const message = reason === '' ? `A hook at ${event} ended the run.` : reason
  return { decision: 'forbidContinuation', reason: 'stopRequested', message }
}

function told(context: string | undefined, event: string, feedback?: string): HookOutcome {
  const appended: Message[] = []
  if (feedback !== undefined && feedback !== '')
    appended.push(textMessage('user', `${event} hook feedback:\n${feedback}`))
  if (context !== undefined) appended.push(contextMessage(context, event))
  return appended.length === 0 ? {} : { state: { appended } }
}

function reasonOf({ reason }: Merged, event: string): string {
  return reason === '' ? `A hook at ${event} said no, without a reason.` : reason
}

function callOf(ctx: Context): ToolCall {
  return Context.draftOf(ctx).facts['toolCall'] as ToolCall
}

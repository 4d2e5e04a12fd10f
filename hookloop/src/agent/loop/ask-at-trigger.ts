import { AgentState } from '../../state/agent-state.ts'
import type { ContinuationEvaluation } from '../../state/continuation.ts'
import type { AskedQuestion, FinalRecord } from '../../state/execution.ts'
import type { JsonObject } from '../../state/json.ts'
import type { Answer, AskTrigger, OpenCall } from '../../state/tool-call.ts'
import type { Invocation } from '../../hooks/invocation.ts'
import { requestApproval } from '../tools/request-approval.ts'
import type { ActiveCall } from './open-step.ts'
import type { RunContext } from './run-context.ts'

/** The answer to what guards at a trigger asked, or the question if it stays open: the run is then to be suspended. */
export type Asked = { readonly answer: 'allow' | { readonly block: string } } | { readonly open: AskedQuestion }

const allowed: Asked = Object.freeze({ answer: 'allow' })

/** Whether guards ask, and nothing more urgent was decided. */
export function hasQuestion(run: RunContext, invocation: Invocation | undefined): boolean {
  if (invocation === undefined || invocation.asks.length === 0) return false
  if (invocation.blocked !== undefined || invocation.failure !== undefined) return false
  return !run.hasExecution || run.stoppedBy() === undefined
}

/** Asks the approver what guards at a trigger asked. `subject` is what is to be approved. */
export async function askAt(
  run: RunContext,
  { asks }: Invocation,
  at: AskTrigger,
  subject: JsonObject,
): Promise<Asked> {
  const place = { id: at, name: at, originalArgs: subject, args: subject }
  const call: ActiveCall = { ...place, index: 0, shown: undefined, result: undefined, ran: false }
  const given: Answer | undefined = await requestApproval(run, call, asks, at)
  if (given === undefined) {
    const open: OpenCall = Object.freeze({ ...place, ...(call.approval && { approval: call.approval }) })
    return { open: Object.freeze({ at, call: open }) }
  }
  return given === 'allow' ? allowed : { answer: 'block' in given ? given : { block: editedAnswer(at) } }
}

function editedAnswer(at: AskTrigger): string {
  return `The answer has arguments, but a question at ${at} has none to edit.`
}

/** The vote of an approver who denied a question. */
export function deniedVote(
  decision: 'forbidContinuation' | 'requestContinuation',
  { block: message }: { readonly block: string },
): ContinuationEvaluation {
  const reason = decision === 'forbidContinuation' ? 'stopRequested' : 'completed'
  return Object.freeze({ decision, reason, message, source: 'approval' })
}

/** The approver denied the input: it is removed, and the run ends. */
export function blockInput(run: RunContext, message: string): void {
  run.state = AgentState.patch(run.state, { messages: run.state.messages.take(run.state.messages.length - 1) })
  const final: FinalRecord = Object.freeze({
    status: 'stopped',
    reason: 'inputBlocked',
    by: 'approval',
    message,
    votes: Object.freeze([]),
    at: run.now,
  })
  run.updateExecution({ status: 'stopped', final })
  run.checkpoint('ended')
}

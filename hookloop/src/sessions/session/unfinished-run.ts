import { pendingOf } from '../../agent/run.ts'
import type { AgentState } from '../../state/agent-state.ts'
import { inCode } from '../../state/text.ts'
import type { Answers, Approval } from '../../state/tool-call.ts'
import { AgentError } from '../../errors.ts'
import type { SessionSnapshot } from '../log/read-session.ts'

/** The error of a session that takes no new input, with what to do first. */
export function unfinished(id: string, snapshot: SessionSnapshot): AgentError {
  const { open } = snapshot
  const answers = isWaiting(snapshot) ? ', { answers }' : ''
  const session = `agent.session(${inCode(id)})`
  const way = open === undefined ? `${session}.resume()` : `agent.resume(${inCode(id)}${answers})`
  const other =
    open === undefined
      ? ''
      : open.phase === 'input'
        ? ` Or replace the message with ${session}.rewind({ message }).`
        : ` Or pass { onNewInput: 'deny' } to end it and take the input.`
  const message = `${takesNoInput(id, snapshot)} Use ${way} first.${other}`
  return new AgentError('STATE_SUSPENDED', message, { value: id })
}

/** Why a session takes no new input. */
export function takesNoInput(id: string, snapshot: SessionSnapshot): string {
  const phase = snapshot.open?.phase
  const state = phase === undefined ? 'is suspended' : (phases[phase] ?? 'has an interrupted run')
  return `The session "${id}" ${isWaiting(snapshot) ? 'waits for an approval' : state} and takes no new input.`
}

function isWaiting({ open, state }: SessionSnapshot): boolean {
  return open?.phase === 'suspended' && hasQuestions(state!, open.given)
}

const phases: { readonly [phase: string]: string } = {
  input: 'has a message that waits for its answer',
  suspended: 'has a paused run',
}

export function nothingToResume(id: string): AgentError {
  return new AgentError(
    'RESUME_NOT_SUSPENDED',
    `The session "${id}" has no run to resume. To continue the conversation, use agent.run(input, { session: ${inCode(id)} }).`,
    { value: id },
  )
}

/** Whether a run waits for an answer that was not given. */
export function hasQuestions(state: AgentState, given: Answers): boolean {
  return unansweredIn(state, given).length > 0
}

/** The approvals that have no answer yet. */
export function unansweredIn(state: AgentState, given: Answers): readonly Approval[] {
  return pendingOf(state).filter(({ id }) => !Object.hasOwn(given, id))
}

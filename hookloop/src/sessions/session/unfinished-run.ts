import { pendingOf } from '../../agent/run.ts'
import type { AgentState } from '../../state/agent-state.ts'
import { inCode } from '../../state/text.ts'
import type { Answers } from '../../state/tool-call.ts'
import { AgentError } from '../../errors.ts'
import type { SessionSnapshot } from '../log/read-session.ts'

/** The error of a session that takes no new input, with what to do first. */
export function unfinished(id: string, { open, state }: SessionSnapshot): AgentError {
  const isWaiting = open?.phase === 'suspended' && hasQuestions(state!, open.given)
  const why = isWaiting
    ? 'waits for an approval'
    : open === undefined
      ? 'is suspended'
      : (phases[open.phase] ?? 'has an interrupted run')
  const answers = isWaiting ? ', { answers }' : ''
  const session = `agent.session(${inCode(id)})`
  const way = open === undefined ? `${session}.resume()` : `agent.resume(${inCode(id)}${answers})`
  const other =
    open === undefined
      ? ''
      : open.phase === 'input'
        ? ` Or replace the message with ${session}.rewind({ message }).`
        : ` Or pass { onNewInput: 'deny' } to end it and take the input.`
  const message = `The session "${id}" ${why} and takes no new input. Use ${way} first.${other}`
  return new AgentError('STATE_SUSPENDED', message, { value: id })
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
  return pendingOf(state).some(({ id }) => !Object.hasOwn(given, id))
}

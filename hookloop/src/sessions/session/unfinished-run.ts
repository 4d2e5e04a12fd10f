import { inCode } from '../../values/text.ts'
import type { RunLog } from '../../core/effects/log.ts'
import { AgentError } from '../../errors.ts'
import type { SessionReader } from '../log/session-reader.ts'

/** The error of a session that cannot be changed or takes no new input, with what to do first. */
export function unfinished(id: string, { open }: SessionReader, { isChange = false } = {}): AgentError {
  const pending = isWaiting(open) ? open!.questions().map((each) => each.id) : []
  const session = `agent.session(${inCode(id)})`
  const way =
    open === undefined
      ? `${session}.resume()`
      : `agent.resume(${inCode(id)}${pending.length === 0 ? '' : ', { answers }'})`
  const what = isChange ? `The session "${id}" ${stateOf(open)} and cannot be changed.` : takesNoInput(id, { open })
  let other = ''
  if (open !== undefined && isPrepared(open)) other = ` Or replace the message with ${session}.rewind({ message }).`
  else if (isChange && pending.length > 0) other = ` To block it: hookloop block '${pending[0]}'.`
  else if (!isChange && open !== undefined) other = ` Or pass { onNewInput: 'block' } to end it and take the input.`
  return new AgentError('STATE_SUSPENDED', `${what} Use ${way} first.${other}`, {
    value: pending.length === 0 ? id : pending,
  })
}

/** Why a session takes no new input. */
export function takesNoInput(id: string, { open }: Pick<SessionReader, 'open'>): string {
  return `The session "${id}" ${stateOf(open)} and takes no new input.`
}

function stateOf(open: RunLog | undefined): string {
  if (open === undefined) return 'is suspended'
  if (isWaiting(open)) return 'waits for an approval'
  if (isPrepared(open)) return 'has a message that waits for its answer'
  return open.pending === undefined ? 'has an interrupted run' : 'has a paused run'
}

function isWaiting(open: RunLog | undefined): boolean {
  return open?.pending !== undefined && hasQuestions(open)
}

/** Whether a fork or a rewind has stored the input of a run, and no process has taken it yet. */
export function isPrepared({ input, at }: RunLog): boolean {
  return input?.hooks === undefined && input?.at === at
}

export function nothingToResume(id: string): AgentError {
  return new AgentError(
    'RESUME_NOT_SUSPENDED',
    `The session "${id}" has no run to resume. To continue the conversation, use agent.run(input, { session: ${inCode(id)} }).`,
    { value: id },
  )
}

/** Whether a run waits for an answer that was not given. */
export function hasQuestions(log: RunLog): boolean {
  return log.questions().length > 0
}

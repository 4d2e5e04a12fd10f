import type { AgentParts } from '../../agent/agent-parts.ts'
import { checkResume, type ResumeOptions } from '../../agent/loop/resume.ts'
import type { AgentState } from '../../state/agent-state.ts'
import type { Answer, Answers } from '../../state/tool-call.ts'
import { AgentError } from '../../errors.ts'
import type { OpenRun } from '../log/read-session.ts'

type Asked = {
  readonly parts: AgentParts
  readonly state: AgentState
  readonly how: ResumeOptions
  readonly now: number
}

/**
 * The answers a suspended run goes on with: what was answered in the store and what is answered now. If the process
 * died after it had gone on, the ones it had gone on with. Whether they came in time was judged when they were given.
 */
export function answersFor(asked: Asked, open: OpenRun): Promise<Answers> {
  return open.answers === undefined ? takeAnswers(asked, open.given) : sameAnswers(asked, open.answers)
}

async function takeAnswers({ parts, state, how, now }: Asked, given: Answers): Promise<Answers> {
  const answers: { [id: string]: Answer } = {}
  for (const [id, answer] of Object.entries(given)) {
    if (Object.hasOwn(how.answers ?? {}, id)) throw answeredBefore(id)
    try {
      Object.assign(answers, await checkResume(parts, state, { ...how, answers: { [id]: answer }, now: 0 }))
    } catch (error) {
      // Whoever answered could not know the tool. What does not fit it is a no, and not the end of the session.
      if (!(error instanceof AgentError && error.code === 'ANSWER_INVALID')) throw error
      answers[id] = { block: error.message }
    }
  }
  return { ...answers, ...(await checkResume(parts, state, { ...how, now })) }
}

async function sameAnswers({ parts, state, how }: Asked, answers: Answers): Promise<Answers> {
  for (const id of Object.keys(how.answers ?? {})) {
    throw Object.hasOwn(answers, id) ? answeredBefore(id) : resumeFirst(id)
  }
  return checkResume(parts, state, { ...how, answers, now: 0 })
}

export function answeredBefore(id: string): AgentError {
  return new AgentError('ANSWER_USED', `"${id}" was answered before.`, { value: id })
}

/** A run that goes on with some answers asks for the others when it is suspended again. */
export function resumeFirst(id: string): AgentError {
  return new AgentError(
    'ANSWER_UNKNOWN',
    `The session was cut off while it went on with other answers. Resume it first, without an answer to "${id}".`,
    { value: id },
  )
}

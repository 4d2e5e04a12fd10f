import { answerApproval, listAsking } from '../sessions/session/approvals.ts'
import type { SessionStore } from '../sessions/stores/store.ts'
import { answerProblem, askedHash, type Answer, type Approval } from '../plugin.ts'
import type { AnswerRequest } from './api.types.ts'
import { HttpProblem } from './request-rules.ts'
import type { Question } from './run.types.ts'
import { summaryOf } from './sessions.ts'

/** The questions of all sessions, the oldest first. One whose arguments do not have its hash is forged, and left out. */
export async function openQuestions(store: SessionStore): Promise<readonly Question[]> {
  const questions = (await listAsking(store)).flatMap(({ pending, ...listed }) => {
    const { id: session, title, agent, updatedAt: askedAt } = summaryOf(listed)
    return pending
      .filter((each) => each.hash === askedHash(each.toolCall, each))
      .map((approval) => questionOf(approval, { session, title, agent, askedAt }))
  })
  return questions.toSorted((a, b) => a.askedAt - b.askedAt)
}

export function questionOf(
  approval: Approval,
  asked: Pick<Question, 'session' | 'title' | 'agent' | 'askedAt'>,
): Question {
  return { ...approval, ...asked, notEditable: answerProblem(approval, { allow: {} }) }
}

/** So much of the hash is part of the id of a question. */
const ID_HASH_CHARS = 16

/**
 * Stores an answer. The id of a question contains a hash of its arguments, and `answerApproval` checks them again under the lock of
 * the session, so the answer is about what was shown. Rejects with SESSION_BUSY if another process has the session locked.
 */
export async function answerQuestion(store: SessionStore, request: AnswerRequest, by: string): Promise<void> {
  const { session, question: id, hash, answer } = request
  const asked = (await openQuestions(store)).find((each) => each.session === session && each.id === id)
  if (!id.endsWith(`#${hash.slice(0, ID_HASH_CHARS)}`) || (asked !== undefined && asked.hash !== hash)) {
    throw new HttpProblem(409, 'HASH_MISMATCH', 'The question is about other arguments than were shown. Load it again.')
  }
  await answerApproval(store, { session, approval: id, answer: toAnswer(answer), by })
}

function toAnswer(given: AnswerRequest['answer']): Answer {
  switch (given.type) {
    case 'allow':
      return 'allow'
    case 'edit':
      return { allow: given.args }
    case 'block':
      return { block: given.reason }
    default:
      return given satisfies never
  }
}

import { checkedAnswer } from '../../agent/tools/request-approval.ts'
import { isJsonObject, type JsonObject } from '../../state/json.ts'
import { openCallsIn } from '../../state/open-calls.ts'
import { answerProblem, approvalFits, type Answer, type Approval } from '../../state/tool-call.ts'
import { AgentError } from '../../errors.ts'
import { agentOf, createdAt, lockSession } from './session-lock.ts'
import type { SessionSnapshot } from '../log/read-session.ts'
import { answeredBefore, resumeFirst } from './resume-answers.ts'
import { headOf } from './session-head.ts'
import type { SessionStore } from '../stores/store.ts'

/** A question that waits for a person, and the session it waits in. */
export type PendingApproval = Approval & { readonly session: string }

/** Every question that waits in a store and has not been answered. */
export async function listApprovals(store: SessionStore): Promise<readonly PendingApproval[]> {
  const sessions = await store.list()
  return sessions.flatMap(({ id, head }) => pendingIn(head).map((approval) => ({ ...approval, session: id })))
}

/** One head that is damaged must not hide the questions of the others. */
function pendingIn({ pending }: JsonObject): readonly Approval[] {
  return Array.isArray(pending) ? (pending.filter(isJsonObject) as unknown as readonly Approval[]) : []
}

/**
 * Answers a question, from any process, once: another answer, one to other arguments than were shown, and a yes that
 * comes too late are refused. The run goes on with `agent.resume(session)`.
 */
export async function answerApproval(
  store: SessionStore,
  {
    session: id,
    approval,
    answer: given,
    by,
    now = Date.now(),
  }: {
    readonly session: string
    readonly approval: string
    readonly answer: Answer
    readonly by?: string
    readonly now?: number
  },
): Promise<void> {
  const answer = checkedAnswer(given)
  if (answer === 'suspend') {
    throw new AgentError('ANSWER_INVALID', 'To leave a question open, do not answer it.', { value: given })
  }
  await lockSession(store, { id }, async ({ snapshot, journal }) => {
    const asked = askedIn(snapshot, approval)
    const problem = answerProblem(asked, answer)
    if (problem !== undefined) throw new AgentError('ANSWER_INVALID', problem, { value: given })
    const isYes = answer === 'allow' || 'allow' in answer
    if (isYes && asked.expiresAt !== undefined && now >= asked.expiresAt) {
      throw new AgentError('ANSWER_EXPIRED', `"${approval}" expired; it can only be refused now.`, { value: approval })
    }
    journal.append({ type: 'answer', approval, answer, at: now, ...(by !== undefined && { by }) })
    const origin = { agent: agentOf(snapshot), createdAt: createdAt(snapshot) ?? now }
    journal.setHead(headOf(snapshot.state!, origin, { ...snapshot.open!.given, [approval]: answer }))
    await journal.store()
  })
}

/** The question, if it is one that this session waits for, and about the arguments that were shown. */
function askedIn({ open, state }: SessionSnapshot, id: string): Approval {
  const calls = open?.phase === 'suspended' ? openCallsIn(state?.execution) : []
  const { call, key } = calls.find((each) => each.call.approval?.id === id) ?? {}
  if (key === undefined || call?.approval === undefined) {
    throw new AgentError('ANSWER_UNKNOWN', `The session does not wait for "${id}".`, { value: id })
  }
  const isOver = call.result !== undefined || call.child !== undefined
  if (isOver || Object.hasOwn(open!.given, id) || Object.hasOwn(open!.answers ?? {}, id)) {
    throw answeredBefore(id)
  }
  if (open!.answers !== undefined) throw resumeFirst(id)
  if (approvalFits(call.approval, call, key)) return call.approval
  throw new AgentError('APPROVAL_MISMATCH', `The arguments of the call are not the ones that were to be approved.`, {
    value: id,
  })
}

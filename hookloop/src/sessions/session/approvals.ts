import { pageNames } from '../stores/list-sessions.ts'
import { checkOptions } from '../../values/check-options.ts'
import { checkedAnswer } from '../../core/context/ask.ts'
import { askedIn, checkAnswerTo } from '../../core/loop/resume.ts'
import { toJson, type JsonObject } from '../../values/json.ts'
import type { Answer, Approval } from '../../core/state/tool-call.ts'
import { AgentError } from '../../errors.ts'
import type { ListedSession, ListOptions, SessionStore } from '../stores/store.ts'
import { lockSession } from './session-lock.ts'

/** An approval that waits for an answer, and the id of its session. */
export type PendingApproval = Approval & { readonly session: string }

/**
 * The approvals in a store that wait for an answer: all, those of one user or agent, or those of a page of sessions.
 *
 * @example
 * for (const { session, id, message } of await listApprovals(store, { user: 'ann' })) console.log(session, id, message)
 */
export async function listApprovals(
  store: SessionStore,
  /** `limit` counts sessions, and `after` is the last session of the page before. */
  options: Omit<ListOptions, 'status'> = {},
): Promise<readonly PendingApproval[]> {
  checkOptions('listApprovals', options, pageNames)
  const asking = await listAsking(store, options)
  return asking.flatMap(({ id, pending }) => pending.map((approval) => ({ ...approval, session: id })))
}

/** The sessions that wait for an answer, with their approvals. */
export async function listAsking(
  store: SessionStore,
  options: Omit<ListOptions, 'status'> = {},
): Promise<readonly (ListedSession & { readonly pending: readonly Approval[] })[]> {
  const sessions = await store.list({ ...options, status: waiting })
  return sessions.map((listed) => ({ ...listed, pending: pendingIn(listed.head) }))
}

/** A session that was interrupted while it resumed with some answers may wait for others. */
const waiting = ['suspended', 'running', 'interrupted']

/** A damaged head must not hide the approvals of other sessions. */
function pendingIn({ pending }: JsonObject): readonly Approval[] {
  const isApproval = (each: unknown): boolean => typeof (each as Partial<Approval> | null)?.toolCall?.name === 'string'
  return Array.isArray(pending) ? (pending.filter(isApproval) as readonly Approval[]) : []
}

/**
 * Stores the answer to an approval, from any process. The run continues with `agent.resume(session)`. Each approval is
 * answered once: a second answer, an answer to other arguments than were shown, and an allow after its expiry are rejected.
 *
 * @example
 * const [approval] = await listApprovals(store)
 * await answerApproval(store, { session: approval.session, approval: approval.id, answer: 'allow', by: 'ann' })
 * await agent.resume(approval.session)
 */
export async function answerApproval(
  store: SessionStore,
  options: {
    readonly session: string
    readonly approval: string
    readonly answer: Answer
    /** The approver, for the record. */
    readonly by?: string
    readonly now?: number
    /** How long to wait for the process that asks, which has the session locked for a moment longer. Default 0. */
    readonly waitMs?: number
  },
): Promise<void> {
  checkOptions('answerApproval', options, ['session', 'approval', 'answer', 'by', 'now', 'waitMs'])
  const { session: id, approval, answer: given, by, now = Date.now(), waitMs } = options
  if (checkedAnswer(given) === 'suspend') {
    throw new AgentError('ANSWER_INVALID', 'To leave an approval open, do not answer it.', { value: given })
  }
  await lockSession(store, { id, waitMs }, async (session) => {
    const { reader, journal } = session
    const { open } = reader
    if (open === undefined) {
      throw new AgentError('ANSWER_UNKNOWN', `The session does not wait for "${approval}".`, { value: approval })
    }
    const answer = checkAnswerTo(askedIn(open, approval), given, now)
    const record = { t: 'answer', at: now, approval, answer, ...(by !== undefined && { by }) } as const
    journal.append(record)
    open.apply(record, true)
    const pending = open.questions()
    journal.setHead({ ...session.writer.head, pending: toJson(pending) })
    await journal.flush()
  })
}

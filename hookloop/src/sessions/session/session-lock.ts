import type { AgentState } from '../../state/agent-state.ts'
import type { Answers } from '../../state/tool-call.ts'
import { loadSession, rememberSession, snapshotOf, type SessionSnapshot } from '../log/read-session.ts'
import { SessionJournal } from '../log/session-journal.ts'
import { SESSION_VERSION } from '../log/session-records.ts'
import { sessionUnknown, type SessionStore } from '../stores/store.ts'
import { headOf } from './session-head.ts'

/** A session that this process has locked: what it was when it was locked, and where to append to it. */
export type LockedSession = {
  readonly id: string
  readonly snapshot: SessionSnapshot
  readonly journal: SessionJournal
}

/** Locks a session while `work` runs. Without `create`, a session that does not exist is SESSION_UNKNOWN. */
export async function lockSession<T>(
  store: SessionStore,
  { id, create = false }: { readonly id: string; readonly create?: boolean },
  work: (session: LockedSession) => Promise<T>,
): Promise<T> {
  const writer = await store.open(id, { create })
  try {
    if (writer.length === 0 && !create) throw sessionUnknown(id)
    const loaded = await loadSession(store, { id, head: writer.head, read: (options) => writer.read(options) })
    const journal = new SessionJournal(writer, loaded)
    const result = await work({ id, snapshot: snapshotOf(loaded, id), journal })
    if (journal.loaded !== undefined) rememberSession(store, id, journal.loaded)
    return result
  } finally {
    // A store that has failed cannot release the lock either. The result of the work says so; the lock expires.
    await writer.release().catch(() => undefined)
  }
}

/** Appends the first record of a session, if it has none. */
export function appendSessionStart(
  { id, snapshot, journal }: LockedSession,
  { agent, at, from }: { readonly agent: string; readonly at: number; readonly from?: { id: string; seq: number } },
): void {
  if (snapshot.createdAt !== undefined) return
  journal.append({ type: 'session', version: SESSION_VERSION, id, at, agent, ...(from !== undefined && { from }) })
}

/** Appends a state that was changed between two runs. */
export function appendState(
  session: LockedSession,
  state: AgentState,
  origin: { readonly agent: string; readonly at: number },
): void {
  session.journal.appendState(state, { phase: 'changed', at: origin.at })
  setHead(session, state, origin)
}

/** Updates what lists show of the session. Approvals in `answered` are no longer shown as pending. */
export function setHead(
  { snapshot, journal }: LockedSession,
  state: AgentState,
  {
    agent = snapshot.agent,
    at,
    answered,
    status,
  }: { readonly agent?: string; readonly at: number; readonly answered?: Answers; readonly status?: 'running' },
): void {
  const head = headOf(state, { agent, createdAt: snapshot.createdAt ?? at }, answered)
  journal.setHead(status === undefined ? head : { ...head, status })
}

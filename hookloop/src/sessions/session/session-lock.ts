import type { AgentState } from '../../state/agent-state.ts'
import { diffState } from '../../state/state-diff.ts'
import { readSession, type SessionSnapshot } from '../log/read-session.ts'
import { headOf } from './session-head.ts'
import { SessionJournal } from '../log/session-journal.ts'
import { SESSION_VERSION } from '../log/session-records.ts'
import { sessionUnknown, type SessionStore } from '../stores/store.ts'

/** A session while this process writes to it. */
export type LockedSession = {
  readonly id: string
  readonly snapshot: SessionSnapshot
  readonly journal: SessionJournal
}

/** Takes a session for as long as the work takes. Without `create`, one that is not there is SESSION_UNKNOWN. */
export async function lockSession<T>(
  store: SessionStore,
  { id, create = false }: { readonly id: string; readonly create?: boolean },
  work: (session: LockedSession) => Promise<T>,
): Promise<T> {
  const writer = await store.open(id, { create })
  try {
    if (writer.lines.length === 0 && !create) throw sessionUnknown(id)
    const snapshot = readSession(writer.lines, id)
    return await work({ id, snapshot, journal: new SessionJournal(writer, snapshot.end) })
  } finally {
    await writer.release()
  }
}

/** Writes the first line of a session that has none. */
export function appendSessionStart(
  { id, snapshot, journal }: LockedSession,
  { agent, at, from }: { readonly agent: string; readonly at: number; readonly from?: { id: string; seq: number } },
): void {
  if (snapshot.records.length > 0) return
  journal.append({ type: 'session', version: SESSION_VERSION, id, at, agent, ...(from !== undefined && { from }) })
}

/** Writes down a state that was changed between two runs. */
export function appendState(
  { snapshot, journal }: LockedSession,
  state: AgentState,
  { agent, at }: { readonly agent: string; readonly at: number },
): void {
  journal.append({ type: 'state', phase: 'changed', at, diff: diffState(snapshot.state, state) })
  journal.setHead(headOf(state, { agent, createdAt: createdAt(snapshot) ?? at }))
}

export function createdAt({ records: [first] }: SessionSnapshot): number | undefined {
  return first?.type === 'session' ? first.at : undefined
}

export function agentOf({ records: [first] }: SessionSnapshot): string {
  return first?.type === 'session' ? first.agent : 'agent'
}

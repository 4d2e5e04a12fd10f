import type { Run } from '../../core/agent/run.ts'
import type { AgentState } from '../../core/state/agent-state.ts'
import type { Json } from '../../values/json.ts'
import type { Approval } from '../../core/state/tool-call.ts'
import type { Usage } from '../../core/state/usage.ts'
import { loadSession } from '../log/read-session.ts'
import { SessionCache } from '../log/session-cache.ts'
import { SessionJournal, STORE_GRACE_MS, storeLimit } from '../log/session-journal.ts'
import { SessionReader } from '../log/session-reader.ts'
import { SESSION_VERSION } from '../log/session-records.ts'
import type { InputRecord } from '../../core/effects/records.ts'
import { RunTime, systemClock, type RunLimit } from '../../core/effects/run-time.ts'
import { waitAtMost } from '../../system/timeout.ts'
import { AgentError } from '../../errors.ts'
import { sessionUnknown, storeFailed, type SessionStore, type SessionWriter } from '../stores/store.ts'
import { headOf } from './session-head.ts'

/** A session that this process has locked, and where to append to it. */
export type LockedSession = {
  readonly id: string
  readonly writer: SessionWriter
  /** The session, with what is appended to it. */
  readonly reader: SessionReader
  readonly journal: SessionJournal
  /** Waits for the store, but not longer than a run may take. */
  readonly answer: <T>(work: Promise<T>) => Promise<T>
}

/** Which session to lock, and how long to wait for one that another process has locked. */
export type Locking = {
  readonly id: string
  /** Without it, a session that does not exist is SESSION_UNKNOWN. */
  readonly create?: boolean | undefined
  readonly waitMs?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** How long the run may take. */
  readonly limit?: RunLimit | undefined
}

const takenOver = new WeakSet<object>()

/** Whether a run had been left by a process that did not end it: the session said so when it was locked. */
export function wasInterrupted(run: Run<unknown>): boolean {
  return takenOver.has(run)
}

/** Locks a session while `work` runs. */
export async function lockSession<T>(
  store: SessionStore,
  locking: Locking,
  work: (session: LockedSession) => Promise<T>,
): Promise<T> {
  const { id, create = false, signal, limit } = locking
  const time = new RunTime(systemClock, signal)
  const answer = <A>(call: Promise<A>): Promise<A> => {
    if (limit !== undefined) {
      const at = systemClock.now() + limit.ms
      time.setDeadline(() => ({ at, limit }))
    }
    return time.wait(call, storeLimit)
  }
  try {
    const writer = await whenFree(() => openIn(store, { id, create }, answer), locking)
    return await withWriter(store, { id, create, writer, answer }, work)
  } finally {
    time.close()
  }
}

/** Opens a session. If the store answers too late, it is released. */
async function openIn(
  store: SessionStore,
  { id, create = false }: Pick<Locking, 'id' | 'create'>,
  answer: LockedSession['answer'],
): Promise<SessionWriter> {
  const opening = store.open(id, { create })
  try {
    return await answer(opening)
  } catch (thrown) {
    void opening.then((writer) => writer.release()).catch(() => undefined)
    throw storeFailed(`The session "${id}" cannot be opened`, thrown)
  }
}

type Opened = Pick<LockedSession, 'id' | 'answer'> & { readonly create: boolean; readonly writer: SessionWriter }

async function withWriter<T>(
  store: SessionStore,
  { id, create, writer, answer }: Opened,
  work: (session: LockedSession) => Promise<T>,
): Promise<T> {
  try {
    const cache = SessionCache.of(store)
    const known = cache.take(id) // it is changed from now on, and remembered when all of it is stored
    const found = await answer(loadSession(store, id, { known, head: writer.head }))
    const reader = found ?? new SessionReader({ id })
    if (reader.end.seq < 0 && !create) throw sessionUnknown(id)
    const journal = new SessionJournal(writer, reader)
    const locked = { id, writer, reader, journal, answer }
    const result = await work(locked).catch((thrown: unknown) => {
      journal.abandon()
      throw thrown
    })
    await answer(journal.close())
    if (journal.isStored) cache.set(id, reader)
    if (writer.head['status'] === 'running') takenOver.add(Object(result) as object)
    return result
  } finally {
    // A store that has failed cannot release the lock either. The result of the work says so; the lock expires.
    await waitAtMost(writer.release(), STORE_GRACE_MS).catch(() => undefined)
  }
}

const MAX_PAUSE_MS = 100

/** Tries again while a session is locked, until it may no longer wait. */
export async function whenFree<T>(
  act: () => Promise<T>,
  { waitMs = 0, signal, mayWait }: Pick<Locking, 'waitMs' | 'signal'> & { readonly mayWait?: () => Promise<boolean> },
): Promise<T> {
  const until = performance.now() + waitMs
  for (let pauseMs = 2; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
    try {
      return await act()
    } catch (error) {
      const isBusy = error instanceof AgentError && error.code === 'SESSION_BUSY'
      if (!isBusy || performance.now() >= until || signal?.aborted === true) throw error
      if ((await mayWait?.()) === false) throw error
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}

/** Appends the first record of a session, if it has none. */
export function appendSessionStart(
  { id, journal }: LockedSession,
  { agent, at, from }: { readonly agent: string; readonly at: number; readonly from?: { id: string; seq: number } },
): void {
  if (journal.seq >= 0) return
  journal.append({ t: 'session', version: SESSION_VERSION, id, at, agent, ...(from !== undefined && { from }) })
}

/** Appends a state that was changed between two runs. */
export function appendState(
  session: LockedSession,
  state: AgentState,
  origin: { readonly agent: string; readonly at: number },
): void {
  session.journal.appendState(state, origin.at)
  setHead(session, state, origin)
}

/** Stores a message to be answered: `agent.resume` runs it. */
export function prepareInput({ journal }: LockedSession, input: InputRecord): void {
  const log = journal.reader.beginRun()
  journal.append(input)
  log.apply(input, true)
}

/** Updates what lists show of the session: `pending` are the questions that wait for an answer, `open` is what the open step has cost. */
export function setHead(
  { writer, reader, journal }: LockedSession,
  state: AgentState,
  {
    agent = reader.agent,
    cwd = writer.head['cwd'],
    at,
    pending = [],
    status,
    open,
  }: {
    readonly agent?: string
    readonly cwd?: Json | undefined
    readonly at: number
    readonly pending?: readonly Approval[]
    readonly status?: 'running' | 'suspended'
    readonly open?: Usage
  },
): void {
  const origin = { agent, createdAt: reader.createdAt ?? at, ...(typeof cwd === 'string' && { cwd }) }
  journal.setHead(headOf(state, origin, { pending, status, open }))
}

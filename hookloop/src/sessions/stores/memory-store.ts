import { exactJson, type Json, type JsonObject } from '../../values/json.ts'
import type { StopRequest } from '../../core/state/stop-request.ts'
import { describeLockOwner, newLockOwner } from './lock-owner.ts'
import { checkList, facetsOf, headNow, wantedStatuses, type Position } from './list-sessions.ts'
import { OpenWriters, type LockedLines } from './open-writers.ts'
import { SessionWatchers } from './session-watchers.ts'
import {
  checkDelete,
  checkSessionId,
  isOpenStatus,
  readHead,
  sessionBusy,
  sessionUnknown,
  type ListedSession,
  type Piece,
  type ReadOptions,
  type SessionFilter,
  type SessionLock,
  type SessionStore,
  type StoredSession,
} from './store.ts'

type MemorySession = {
  readonly id: string
  readonly key: string
  readonly lines: string[]
  pieces: Piece[]
  head: JsonObject
  updatedAt: number
  /** Who has it locked. */
  lock: SessionLock | undefined
  stop: StopRequest | undefined
}

/**
 * A session store in memory, for tests and for programs whose sessions need not outlive the process.
 *
 * @example
 * const agent = createAgent({ model, store: memoryStore() })
 * await agent.run('Hello.', { session: 'chat-1' })
 */
export function memoryStore(): SessionStore {
  const sessions = new Map<string, MemorySession>()
  const values = new Map<string, string>()
  const watchers = new SessionWatchers()
  const writers = new OpenWriters((id) => watchers.changed(id))
  let owner: string | undefined
  const checkUnlocked = (id: string): MemorySession | undefined => {
    const found = sessions.get(checkSessionId(id))
    if (found?.lock !== undefined) throw sessionBusy(id, found.lock.owner)
    return found
  }
  return {
    async open(id, { create = false } = {}) {
      const found = checkUnlocked(id)
      if (found === undefined && !create) throw sessionUnknown(id)
      const session = found ?? newSession(id)
      sessions.set(id, session)
      session.lock = { owner: (owner ??= describeLockOwner(newLockOwner())), since: Date.now() }
      if (!isOpenStatus(session.head['status'])) session.stop = undefined
      return writers.add(lockedLines(session))
    },
    async read(id, options = {}) {
      const session = sessions.get(checkSessionId(id))
      return session && readPart(session, options)
    },
    async list(options = {}) {
      checkList(options)
      const { after, limit } = options
      const listed = [...sessions.values()].map(toListed)
      const position = typeof after === 'string' ? listed.find(({ id }) => id === after) : after
      if (after !== undefined && position === undefined) return []
      const rest = listed.filter((each) => position === undefined || byTime(position, each) < 0)
      const wanted = rest.filter((each) => isWanted(each, options))
      return wanted.toSorted(byTime).slice(0, limit)
    },
    async delete(id, options = {}) {
      checkDelete(options)
      const found = checkUnlocked(id)
      if (found === undefined || found.updatedAt >= (options.before ?? Infinity)) return false
      sessions.delete(id)
      watchers.changed(id)
      return true
    },
    async update(name, change) {
      const text = values.get(checkSessionId(name))
      const value = exactJson(change(text === undefined ? undefined : (JSON.parse(text) as Json), Date.now()), 'value')
      values.set(name, JSON.stringify(value))
      return value
    },
    watch: (id, onChange, onEnd) => watchers.watch(id, onChange, onEnd),
    async requestStop(id, request) {
      const session = sessions.get(checkSessionId(id))
      if (session === undefined || (session.lock === undefined && !isOpenStatus(session.head['status']))) return false
      session.stop ??= request
      for (const locked of writers.sessions) if (locked.id === id) writers.stop(locked, session.stop)
      return true
    },
    async close() {
      watchers.close()
      await writers.close()
    },
  }
}

function newSession(id: string): MemorySession {
  const [key, updatedAt] = [crypto.randomUUID(), Date.now()]
  return { id, key, lines: [], pieces: [], head: {}, updatedAt, lock: undefined, stop: undefined }
}

function lockedLines(session: MemorySession): LockedLines {
  return {
    id: session.id,
    head: session.head,
    length: session.lines.length,
    stop: session.stop,
    append(lines, { head, pieces = [], startsTurn = false }) {
      if (head !== undefined) session.head = readHead(session.id, JSON.stringify(head))
      if (head !== undefined && !isOpenStatus(head['status'])) session.stop = undefined
      for (const line of lines) session.lines.push(line)
      if (startsTurn) session.pieces = []
      for (const piece of pieces) session.pieces.push(piece)
      session.updatedAt = Date.now()
    },
    unlock: () => void (session.lock = undefined),
  }
}

function readPart({ key, head, lines, pieces }: MemorySession, options: ReadOptions): StoredSession {
  const { after = -1, before = Infinity, pieces: range } = options
  const part = { head, lines: lines.slice(after + 1, before) }
  if (range === undefined) return part
  return { ...part, key, pieces: pieces.filter(({ seq }) => seq > range.after && seq < range.before) }
}

function toListed({ id, head, updatedAt, lock, stop }: MemorySession): ListedSession {
  const use = { ...(lock !== undefined && { lock }), ...(stop !== undefined && { stop }) }
  return { id, head: headNow(head, lock !== undefined), updatedAt, ...use }
}

/** The latest first. */
function byTime(a: Position, b: Position): number {
  return b.updatedAt - a.updatedAt || (a.id < b.id ? -1 : Number(a.id > b.id))
}

function isWanted({ head }: ListedSession, filter: SessionFilter): boolean {
  const { status, agent, user } = facetsOf(head)
  const { agent: wantedAgent = agent, user: wantedUser = user } = filter
  const isOfStatus = wantedStatuses(filter)?.includes(status ?? '') ?? true
  return isOfStatus && agent === wantedAgent && user === wantedUser
}

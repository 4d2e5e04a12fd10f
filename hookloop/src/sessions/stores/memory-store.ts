import { checkNoOptions } from '../../state/check-options.ts'
import type { JsonObject } from '../../state/json.ts'
import type { StopRequest } from '../../state/stop-request.ts'
import { newLockOwner, toSessionLock } from './lock-owner.ts'
import { countOf, pageOf } from './list-sessions.ts'
import { OpenWriters } from './open-writers.ts'
import { changedText } from './shared-value.ts'
import { StopListeners } from './stop-listeners.ts'
import { SessionWatchers } from './session-watchers.ts'
import {
  checkSessionId,
  checkStoreCall,
  headNow,
  isOpenStatus,
  readHead,
  sessionBusy,
  sessionUnknown,
  useOf,
  type ListedSession,
  type Piece,
  type ReadOptions,
  type SessionLock,
  type SessionStore,
  type StoredSession,
} from './store.ts'

type MemorySession = {
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
export function memoryStore(...more: []): SessionStore {
  checkNoOptions('memoryStore', more)
  const sessions = new Map<string, MemorySession>()
  const values = new Map<string, string>()
  const watchers = new SessionWatchers()
  const stops = new StopListeners((ids) => new Map(ids.flatMap((id) => stopOf(id, sessions.get(id)))))
  const writers = new OpenWriters(watchers, stops)
  const checkUnlocked = (id: string): MemorySession | undefined => {
    const found = sessions.get(id)
    if (found?.lock !== undefined) throw sessionBusy(id, found.lock.owner)
    return found
  }
  const listed = (): readonly ListedSession[] =>
    [...sessions].map(([id, { head, updatedAt, lock, stop }]) => ({
      id,
      head: headNow(head, lock !== undefined),
      updatedAt,
      ...useOf(lock, stop),
    }))
  const store: SessionStore = {
    async open(id, options = {}) {
      checkStoreCall('open', id, options)
      const { create = false } = options
      const found = checkUnlocked(id)
      if (found === undefined && !create) throw sessionUnknown(id)
      const session = found ?? newSession()
      session.lock = toSessionLock(newLockOwner())
      if (!isOpenStatus(session.head['status'])) session.stop = undefined
      sessions.set(id, session)
      return writers.add({
        id,
        head: session.head,
        length: session.lines.length,
        stop: session.stop,
        append({ lines, head, endsRun, pieces, startsTurn }) {
          if (head !== undefined) session.head = readHead(id, head.text)
          if (endsRun) session.stop = undefined
          for (const line of lines) session.lines.push(line)
          if (startsTurn) session.pieces = []
          for (const piece of pieces) session.pieces.push(piece)
          session.updatedAt = Date.now()
        },
        unlock: () => void (session.lock = undefined),
      })
    },
    async read(id, options = {}) {
      checkStoreCall('read', id, options)
      const session = sessions.get(id)
      return session && readPart(session, options)
    },
    async list(options = {}) {
      return pageOf(listed(), options)
    },
    count: async (filter = {}) => countOf(listed(), filter),
    async delete(id, options = {}) {
      checkStoreCall('delete', id, options)
      const { before = Infinity } = options
      const found = checkUnlocked(id)
      if (found === undefined || found.updatedAt >= before) return false
      sessions.delete(id)
      watchers.changed(id)
      return true
    },
    async update(name, change) {
      const { text, value } = changedText(values.get(checkSessionId(name)), change)
      values.set(name, text)
      return value
    },
    watch: (id, onChange, onEnd) => watchers.watch(id, onChange, onEnd),
    async requestStop(id, request) {
      checkStoreCall('requestStop', id, request)
      const session = sessions.get(id)
      if (session === undefined || (session.lock === undefined && !isOpenStatus(session.head['status']))) return false
      session.stop ??= request
      await stops.check(id)
      return true
    },
    async close() {
      watchers.close()
      await writers.close()
    },
  }
  return store
}

function newSession(): MemorySession {
  const now = Date.now()
  return { key: crypto.randomUUID(), lines: [], pieces: [], head: {}, updatedAt: now, lock: undefined, stop: undefined }
}

function stopOf(id: string, session: MemorySession | undefined): readonly (readonly [string, StopRequest])[] {
  return session?.stop === undefined ? [] : [[id, session.stop]]
}

function readPart({ key, head, lines, pieces }: MemorySession, options: ReadOptions): StoredSession {
  const { after = -1, before = Infinity, pieces: range } = options
  const part = { head, lines: lines.slice(after + 1, before) }
  if (range === undefined) return part
  return { ...part, key, pieces: pieces.filter(({ seq }) => seq > range.after && seq < range.before) }
}

import type { JsonObject } from '../../state/json.ts'
import { describeLockOwner, newLockOwner } from './lock-owner.ts'
import { pageOf, pruneSessions } from './list-sessions.ts'
import { OpenWriters } from './open-writers.ts'
import { changedText } from './shared-value.ts'
import {
  checkSessionId,
  headNow,
  readHead,
  sessionBusy,
  sessionUnknown,
  type ReadOptions,
  type SessionStore,
  type StoredSession,
} from './store.ts'

type MemorySession = {
  readonly lines: string[]
  readonly pages: string[]
  head: JsonObject
  updatedAt: number
  isLocked: boolean
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
  const writers = new OpenWriters()
  const checkUnlocked = (id: string): MemorySession | undefined => {
    const found = sessions.get(checkSessionId(id))
    if (found?.isLocked === true) throw sessionBusy(id, describeLockOwner(newLockOwner()))
    return found
  }
  const store: SessionStore = {
    async open(id, { create = false } = {}) {
      const found = checkUnlocked(id)
      if (found === undefined && !create) throw sessionUnknown(id)
      const session = found ?? { lines: [], pages: [], head: {}, updatedAt: Date.now(), isLocked: true }
      session.isLocked = true
      sessions.set(id, session)
      return writers.add({
        id,
        head: session.head,
        length: session.lines.length,
        read: (options) => readPart(session, options),
        append(lines, head, pages) {
          if (head !== undefined) session.head = readHead(id, head.text)
          for (const line of lines) session.lines.push(line)
          if (pages !== undefined) session.pages.splice(pages.keep, Infinity, ...pages.add)
          session.updatedAt = Date.now()
        },
        unlock: () => void (session.isLocked = false),
      })
    },
    async read(id, options = {}) {
      const session = sessions.get(checkSessionId(id))
      return session && readPart(session, options)
    },
    async list(options = {}) {
      const all = [...sessions].map(([id, { head, updatedAt, isLocked }]) => ({
        id,
        head: headNow(head, isLocked),
        updatedAt,
      }))
      return pageOf(all, options)
    },
    async delete(id, { before = Infinity } = {}) {
      const found = checkUnlocked(id)
      return found !== undefined && found.updatedAt < before && sessions.delete(id)
    },
    prune: (options) => pruneSessions(store, options),
    async update(name, change) {
      const { text, value } = changedText(values.get(checkSessionId(name)), change)
      values.set(name, text)
      return value
    },
    close: () => writers.close(),
  }
  return store
}

function readPart({ head, lines, pages }: MemorySession, options: ReadOptions): StoredSession {
  const part = { head, lines: lines.slice((options.after ?? -1) + 1) }
  return options.pages === true ? { ...part, pages: pages.slice() } : part
}

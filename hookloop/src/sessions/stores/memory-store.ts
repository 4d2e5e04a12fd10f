import type { JsonObject } from '../../state/json.ts'
import { describeLockOwner, newLockOwner } from './lock-owner.ts'
import { OpenWriters } from './open-writers.ts'
import { checkSessionId, headNow, readHead, sessionBusy, sessionUnknown, type SessionStore } from './store.ts'

type MemorySession = { readonly lines: string[]; head: JsonObject; updatedAt: number; isLocked: boolean }

/**
 * A session store in memory, for tests and for programs whose sessions need not outlive the process.
 *
 * @example
 * const agent = createAgent({ model, store: memoryStore() })
 * await agent.run('Hello.', { session: 'chat-1' })
 */
export function memoryStore(): SessionStore {
  const sessions = new Map<string, MemorySession>()
  const writers = new OpenWriters()
  const checkUnlocked = (id: string): MemorySession | undefined => {
    const found = sessions.get(checkSessionId(id))
    if (found?.isLocked === true) throw sessionBusy(id, describeLockOwner(newLockOwner()))
    return found
  }
  return {
    async open(id, { create = false } = {}) {
      const found = checkUnlocked(id)
      if (found === undefined && !create) throw sessionUnknown(id)
      const session = found ?? { lines: [], head: {}, updatedAt: Date.now(), isLocked: true }
      session.isLocked = true
      sessions.set(id, session)
      return writers.add({
        id,
        lines: session.lines.slice(),
        append(lines, head) {
          if (head !== undefined) session.head = readHead(id, head)
          for (const line of lines) session.lines.push(line)
          session.updatedAt = Date.now()
        },
        unlock: () => void (session.isLocked = false),
      })
    },
    async read(id) {
      const session = sessions.get(checkSessionId(id))
      return session && { head: session.head, lines: session.lines.slice() }
    },
    async list() {
      return [...sessions]
        .map(([id, { head, updatedAt, isLocked }]) => ({ id, head: headNow(head, isLocked), updatedAt }))
        .toSorted((a, b) => b.updatedAt - a.updatedAt)
    },
    async delete(id) {
      checkUnlocked(id)
      sessions.delete(id)
    },
    close: () => writers.close(),
  }
}

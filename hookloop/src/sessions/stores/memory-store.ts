import type { JsonObject } from '../../state/json.ts'
import { describeLockOwner, newLockOwner } from './lock-owner.ts'
import {
  checkLines,
  checkSessionId,
  headText,
  readHead,
  sessionBusy,
  sessionReleased,
  sessionUnknown,
  type SessionStore,
  type SessionWriter,
} from './store.ts'

type Kept = { readonly lines: string[]; head: JsonObject; updatedAt: number; writer: SessionWriter | undefined }

/** Sessions in the memory of this process, gone with it. */
export function memoryStore(): SessionStore {
  const sessions = new Map<string, Kept>()
  return {
    async open(id, { create = false } = {}) {
      const known = sessions.get(checkSessionId(id))
      if (known === undefined && !create) throw sessionUnknown(id)
      if (known?.writer !== undefined) throw sessionBusy(id, describeLockOwner(newLockOwner()))
      const kept = known ?? { lines: [], head: {}, updatedAt: Date.now(), writer: undefined }
      sessions.set(id, kept)
      return (kept.writer = writerOf(id, kept))
    },
    async read(id) {
      const kept = sessions.get(checkSessionId(id))
      return kept && { head: kept.head, lines: kept.lines.slice() }
    },
    async list() {
      return [...sessions]
        .map(([id, { head, updatedAt }]) => ({ id, head, updatedAt }))
        .toSorted((a, b) => b.updatedAt - a.updatedAt)
    },
    async delete(id) {
      if (sessions.get(checkSessionId(id))?.writer !== undefined)
        throw sessionBusy(id, describeLockOwner(newLockOwner()))
      sessions.delete(id)
    },
    async close() {
      for (const { writer } of sessions.values()) await writer?.release()
    },
  }
}

function writerOf(id: string, kept: Kept): SessionWriter {
  const writer: SessionWriter = {
    lines: kept.lines.slice(),
    append(more, head) {
      if (kept.writer !== writer) throw sessionReleased(id)
      checkLines(more)
      if (head !== undefined) kept.head = readHead(id, headText(head))
      for (const line of more) kept.lines.push(line)
      kept.updatedAt = Date.now()
    },
    async release() {
      if (kept.writer === writer) kept.writer = undefined
    },
  }
  return writer
}

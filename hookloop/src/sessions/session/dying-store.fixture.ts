import { setImmediate as soon } from 'node:timers/promises'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore, SessionWriter } from '../stores/store.ts'

export type Death = {
  /** The write at which the process dies, counted from 1. */
  readonly at: number
  /** Whether that write is stored. */
  readonly stored: boolean
  /** Whether writes take their time, as over a network. */
  readonly slow?: boolean
}

/** A store whose process dies at a certain write: nothing of it is heard any more. */
export function dyingStore(
  inner: SessionStore,
  { at, stored, slow = false }: Death,
): SessionStore & { readonly died: Promise<void>; readonly writes: () => number } {
  let writes = 0
  let die = (): void => undefined
  const died = new Promise<void>((resolve) => (die = resolve))
  const forEver = new Promise<never>(() => undefined)
  const dyingWriter = (writer: SessionWriter): SessionWriter => ({
    ...writer,
    append(...what) {
      writes++
      if (writes < at) return slow ? soon().then(() => writer.append(...what)) : writer.append(...what)
      if (writes === at) {
        if (stored) void writer.append(...what)
        void writer.release() // as the next process finds it
        die()
      }
      return forEver
    },
    release: () => (writes < at ? writer.release() : forEver),
  })
  return {
    ...inner,
    open: async (id, options) => (writes < at ? dyingWriter(await inner.open(id, options)) : forEver),
    died,
    writes: () => writes,
  }
}

/** A store that holds these lines of a session. */
export async function storeOf(id: string, lines: readonly string[]): Promise<SessionStore> {
  const store = memoryStore()
  if (lines.length === 0) return store
  const writer = await store.open(id, { create: true })
  await writer.append(lines)
  await writer.release()
  return store
}

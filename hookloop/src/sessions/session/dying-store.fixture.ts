import { setImmediate as soon } from 'node:timers/promises'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore, SessionWriter } from '../stores/store.ts'

/** The records of a tool call, as `at`. */
export const toolBegin = /"t":"begin".*"kind":"tool"/
export const toolEnd = /"t":"end".*"kind":"tool"/

export type Death = {
  /** The write at which the process dies: its number, from 1, or what a line in it matches. */
  readonly at: number | RegExp
  /** Whether that write is stored. If not, and a line in it matches, the lines before that one are: the process died earlier. */
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
  let isDead = false
  let die = (): void => undefined
  const died = new Promise<void>((resolve) => (die = resolve))
  const forEver = new Promise<never>(() => undefined)
  const dyingWriter = (writer: SessionWriter): SessionWriter => ({
    ...writer,
    append(lines, options) {
      if (isDead) return forEver
      writes++
      const last = typeof at === 'number' ? -1 : lines.findIndex((line) => at.test(line))
      isDead = typeof at === 'number' ? writes === at : last !== -1
      if (!isDead) return slow ? soon().then(() => writer.append(lines, options)) : writer.append(lines, options)
      if (stored) void writer.append(lines, options)
      else if (last > 0) {
        const { end: _end, ...head } = options?.head ?? {}
        void writer.append(lines.slice(0, last), { head: { ...head, status: 'running' } })
      }
      void writer.release() // as the next process finds it
      die()
      return forEver
    },
    release: () => (isDead ? forEver : writer.release()),
  })
  return {
    ...inner,
    open: async (id, options) => (isDead ? forEver : dyingWriter(await inner.open(id, options))),
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

import type { SessionStore, SessionWriter } from '../sessions/index.ts'

// The only file that knows how a store is written and what it contains. Processes that die or stall at a line.

/** A store whose process dies or stalls: after its death, every call rejects, and nothing is stored. */
export type MortalStore = SessionStore & {
  /** The lines that the process has stored. */
  readonly written: () => number
  readonly isDead: () => boolean
  /** Resolves when the process has died and its locks are free, or when it stalls. */
  readonly failed: Promise<void>
  /** Frees the locks of the process, as if they had expired. */
  readonly unlock: () => Promise<void>
  /** Ends a stall. */
  readonly wake: () => void
}

export type MortalOptions = {
  /** It dies when it has stored the line before, without knowing that. */
  readonly isUnheard?: boolean | undefined
  /** Each append takes a turn of the event loop before it is stored. */
  readonly isSlow?: boolean | undefined
  /** The append hangs, and the process does not die. */
  readonly stalls?: boolean | undefined
  /** Called after each append. */
  readonly onStored?: ((written: number) => Promise<void>) | undefined
}

/**
 * The process dies when it is about to store line `at`, counted from 0. Default: never.
 */
export function mortalStore(
  inner: SessionStore,
  at = Infinity,
  { isUnheard = false, isSlow = false, stalls = false, onStored }: MortalOptions = {},
): MortalStore {
  const [failure, awake] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const writers = new Set<SessionWriter>()
  let [written, isDead] = [0, false]
  const checkAlive = (): void => {
    if (isDead) throw new ProcessDied()
  }
  const unlock = async (): Promise<void> => void (await Promise.all([...writers].map((writer) => writer.release())))
  const die = (): never => {
    isDead = true
    void unlock().then(failure.resolve)
    throw new ProcessDied()
  }
  const mortalWriter = (writer: SessionWriter): SessionWriter => ({
    ...writer,
    async append(lines, options) {
      checkAlive()
      if (isSlow) await new Promise((resolve) => setImmediate(resolve))
      checkAlive()
      const left = Math.max(0, at - written)
      const count = lines.length
      if (count > left && stalls) {
        failure.resolve()
        await awake.promise
      } else if (count > left) {
        const kept = lines.slice(0, options?.head === undefined ? left : withoutHead(lines, left))
        if (kept.length > 0) await writer.append(kept)
        written += kept.length
        die()
      }
      await writer.append(lines, options)
      written += count
      if (isUnheard && count > 0 && count === left) die()
      await onStored?.(written)
    },
    async release() {
      checkAlive()
      writers.delete(writer)
      await writer.release()
    },
  })
  const whileAlive =
    <G extends unknown[], R>(call: (...given: G) => Promise<R>) =>
    async (...given: G): Promise<R> => {
      checkAlive()
      return call(...given)
    }
  return {
    ...inner,
    read: whileAlive((...given: Parameters<SessionStore['read']>) => inner.read(...given)),
    list: whileAlive((...given: Parameters<SessionStore['list']>) => inner.list(...given)),
    requestStop: whileAlive((...given: Parameters<SessionStore['requestStop']>) => inner.requestStop(...given)),
    open: whileAlive(async (id, options) => {
      const writer = await inner.open(id, options)
      writers.add(writer)
      return mortalWriter(writer)
    }),
    written: () => written,
    isDead: () => isDead,
    failed: failure.promise,
    unlock,
    wake: awake.resolve,
  }
}

/** Records that no head follows from. */
const effects: ReadonlySet<unknown> = new Set(['begin', 'end', 'cancel'])

/**
 * How many of the first lines of an append can be stored before the others, and without their head. An append is atomic, but
 * effects are also stored alone when the process is idle, so a process may die between them.
 */
function withoutHead(lines: readonly string[], atMost: number): number {
  const end = lines.findIndex((line) => !effects.has((JSON.parse(line) as { readonly t?: unknown }).t))
  return Math.min(end === -1 ? lines.length : end, atMost)
}

/** The error of a process that has died: nothing catches it in a real one. */
class ProcessDied extends Error {
  override readonly message = 'The process has died.'
}

/** The records of a session. Invariants must not look at them: their format is not part of the API. */
export async function recordsOf(store: SessionStore, session: string): Promise<readonly unknown[]> {
  return ((await store.read(session))?.lines ?? []).map((line) => JSON.parse(line) as unknown)
}

type Raw = {
  readonly t: string
  readonly path?: unknown
  readonly key?: { readonly kind: string }
  readonly input?: { readonly id: string }
}

async function rawRecords(store: SessionStore, session: string): Promise<readonly Raw[]> {
  return (await recordsOf(store, session)) as readonly Raw[]
}

/** The ids of the questions that are stored, whether or not their run has waited for them. */
export async function askedIn(store: SessionStore, session: string): Promise<ReadonlySet<string>> {
  const records = await rawRecords(store, session)
  return new Set(records.flatMap(({ t, key, input }) => (t === 'begin' && key?.kind === 'ask' ? [input!.id] : [])))
}

/** Whether it is stored that a run was cancelled, or has reached its time limit. */
export async function isCancelled(store: SessionStore, session: string): Promise<boolean> {
  return (await rawRecords(store, session)).some(({ t, path }) => t === 'cancel' && path === undefined)
}

/** How many final records each run of a session has. */
export async function finalsIn(store: SessionStore, session: string): Promise<readonly number[]> {
  const finals: number[] = []
  for (const line of (await store.read(session))?.lines ?? []) {
    const [, type] = /^\{"seq":\d+,"t":"(input|final)"/.exec(line) ?? []
    if (type === 'input') finals.push(0)
    else if (type === 'final') finals.push((finals.pop() ?? 0) + 1)
  }
  return finals
}

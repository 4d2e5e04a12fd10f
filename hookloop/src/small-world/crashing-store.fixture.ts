import type { SessionStore, SessionWriter } from '../sessions/stores/index.ts'

// The only file that knows how a store is written and what it contains. Processes that die or stall at a line.

/** A store whose process dies: after that, every call rejects, and nothing is stored. */
export type MortalStore = SessionStore & {
  /** The lines that the process has stored. */
  readonly written: () => number
  readonly isDead: () => boolean
  /** Resolves when the process has died, and its locks are free. */
  readonly died: Promise<void>
}

export type MortalOptions = {
  /** It dies when it has stored the line before, without knowing that. */
  readonly isUnheard?: boolean | undefined
  /** Each append takes a turn of the event loop before it is stored. */
  readonly isSlow?: boolean | undefined
  /** Called after each append. */
  readonly onStored?: ((written: number) => Promise<void>) | undefined
}

/**
 * The process dies when it is about to store line `at`, counted from 0 and without the records of events, which nothing follows
 * from. Default: never.
 */
export function mortalStore(
  inner: SessionStore,
  at = Infinity,
  { isUnheard = false, isSlow = false, onStored }: MortalOptions = {},
): MortalStore {
  const { promise: died, resolve } = Promise.withResolvers<void>()
  const writers = new Set<SessionWriter>()
  let [written, isDead] = [0, false]
  const checkAlive = (): void => {
    if (isDead) throw new ProcessDied()
  }
  const die = (): never => {
    isDead = true
    void Promise.all([...writers].map((writer) => writer.release())).then(() => resolve())
    throw new ProcessDied()
  }
  const mortalWriter = (writer: SessionWriter): SessionWriter => ({
    ...writer,
    async append(lines, options) {
      checkAlive()
      if (isSlow) await new Promise((resolve) => setImmediate(resolve))
      checkAlive()
      const left = at - written
      const count = lines.filter(isPoint).length
      const isLast = isUnheard && count > 0 && count === left
      if (count > left) {
        const until = lines.findIndex((line, i) => isPoint(line) && lines.slice(0, i).filter(isPoint).length === left)
        const kept = lines.slice(0, options?.head === undefined ? until : withoutHead(lines, until))
        if (kept.length > 0) await writer.append(kept)
        written += kept.filter(isPoint).length
        die()
      }
      await writer.append(lines, options)
      written += count
      if (isLast) die()
      await onStored?.(written)
    },
    async release() {
      checkAlive()
      writers.delete(writer)
      await writer.release()
    },
  })
  return {
    ...guarded(inner, checkAlive),
    async open(id, options) {
      checkAlive()
      const writer = await inner.open(id, options)
      writers.add(writer)
      return mortalWriter(writer)
    },
    written: () => written,
    isDead: () => isDead,
    died,
  }
}

/** Records that no head follows from. */
const effects: ReadonlySet<unknown> = new Set(['begin', 'end', 'cancel', 'event'])

/** Whether a process may die before it stores this line. */
function isPoint(line: string): boolean {
  return !line.includes('"t":"event"')
}

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

/** The same store, as long as the check passes. */
function guarded(inner: SessionStore, check: () => void): SessionStore {
  return {
    ...inner,
    async read(...given) {
      check()
      return inner.read(...given)
    },
    async list(...given) {
      check()
      return inner.list(...given)
    },
    async requestStop(...given) {
      check()
      return inner.requestStop(...given)
    },
  }
}

/** A store whose process stalls: one append hangs, until a test wakes it up. */
export type StallingStore = SessionStore & {
  /** Resolves when the append hangs. */
  readonly stalled: Promise<void>
  readonly hasStalled: () => boolean
  /** Frees the locks of the process, as if they had expired. */
  readonly takeOver: () => Promise<void>
  readonly wake: () => void
}

/** The process stalls when it is about to store line `at`, counted from 0. */
export function stallingStore(inner: SessionStore, at: number): StallingStore {
  const stall = Promise.withResolvers<void>()
  const awake = Promise.withResolvers<void>()
  const writers = new Set<SessionWriter>()
  let [written, hasStalled] = [0, false]
  return {
    ...inner,
    async open(id, options) {
      const writer = await inner.open(id, options)
      writers.add(writer)
      return {
        ...writer,
        async append(lines, given) {
          written += lines.filter(isPoint).length
          if (written > at) {
            hasStalled = true
            stall.resolve()
            await awake.promise
          }
          await writer.append(lines, given)
        },
        async release() {
          writers.delete(writer)
          await writer.release()
        },
      }
    },
    stalled: stall.promise,
    hasStalled: () => hasStalled,
    takeOver: async () => void (await Promise.all([...writers].map((writer) => writer.release()))),
    wake: awake.resolve,
  }
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

import { AgentError, toAgentError } from '../errors.ts'
import type { SessionStore } from '../sessions/stores/store.ts'
import type { AgentEvent, TimedLedgerEntry } from '../plugin.ts'
import { matrixOf } from './matrix.ts'
import type { RunView } from './runs.ts'
import type { RunChange, RunInfo, RunRef } from './run.types.ts'
import { watchSession } from '../sessions/log/watch-session.ts'

type Watching = {
  readonly view: (ref: RunRef) => Promise<RunView>
  readonly info: (view: RunView) => Promise<RunInfo>
  /** Resolves with true when the list of sessions has changed, and with false when the signal aborts. */
  readonly changed: () => Promise<boolean>
  readonly signal: AbortSignal
}

/** Events that are passed on as they come. All others are in the rows that follow. */
const passed: ReadonlySet<AgentEvent['type']> = new Set([
  'text',
  'reasoning',
  'toolCallDelta',
  'toolProgress',
  'toolStarted',
  'inferenceStarted',
  'retracted',
])
/** At most a quarter of the time is spent on reading. */
const PAUSES = 3
const MIN_PAUSE_MS = 50
const CHUNK = 1000
const MAX_EVENTS = 2000

/**
 * The changes of a run: first what there is from a row on, then rows as they are added and change. What happens while the
 * reader is busy is put together.
 */
export async function* watchRun(
  store: SessionStore,
  { from, ...ref }: RunRef & { readonly from: number },
  { view, info, changed, signal }: Watching,
): AsyncGenerator<RunChange> {
  const left = new AbortController()
  const ends = AbortSignal.any([signal, left.signal])
  const news = new News(watchSession(store, ref.session, { after: Infinity, signal: ends }), changed)
  try {
    let current: RunView | undefined = await view(ref)
    const { index, id } = current.run
    let live: readonly TimedLedgerEntry[] = []
    let sent = { info: '', runs: current.runs, rows: [] as readonly string[] }
    while (current !== undefined) {
      const began = performance.now()
      live = entriesBeyond(current, live)
      const matrix = live.length === 0 ? current.matrix : matrixWith(current, live)
      const now = await info({ ...current, matrix })
      const all = matrix.rows.slice(from).map(({ row }) => ({ row, text: JSON.stringify(row) }))
      if (JSON.stringify(now) !== sent.info) yield { type: 'run', run: now }
      const rows = all.filter(({ text }, i) => text !== sent.rows[i]).map(({ row }) => row)
      for (let i = 0; i < rows.length; i += CHUNK)
        yield { type: 'rows', rows: rows.slice(i, i + CHUNK), total: matrix.rows.length }
      if (current.runs > sent.runs) yield { type: 'newRun', run: current.runs - 1 }
      sent = { info: JSON.stringify(now), runs: current.runs, rows: all.map(({ text }) => text) }

      const next = performance.now() + Math.max(MIN_PAUSE_MS, PAUSES * (performance.now() - began))
      let isStale = false
      while (!isStale || performance.now() < next) {
        await news.arrival(isStale ? next - performance.now() : undefined)
        if (signal.aborted) return
        const { events, isChanged } = news.take()
        isStale ||= isChanged
        for (const event of events) {
          if (event.run === id && event.type === 'hook') live = [...live, event.entry]
          if (!passed.has(event.type)) isStale = true
          else if (event.run === id) yield { type: 'event', event }
        }
        if (news.isEnded) break
      }
      if (news.failure !== undefined) throw news.failure
      current = news.isEnded ? undefined : await view({ ...ref, run: index }).catch(noneIfUnknown)
    }
    yield { type: 'deleted' }
  } finally {
    left.abort()
  }
}

/** The session may have been deleted in the meantime. */
function noneIfUnknown(thrown: unknown): undefined {
  if (thrown instanceof AgentError && thrown.code === 'SESSION_UNKNOWN') return undefined
  throw thrown
}

/** The events of a session and changes of the list that have not been taken yet. */
class News {
  isEnded = false
  /** Why the events cannot be followed. */
  failure: Error | undefined
  #events: AgentEvent[] = []
  #isChanged = false
  #arrived = Promise.withResolvers<void>()

  constructor(events: AsyncIterable<AgentEvent>, changed: () => Promise<boolean>) {
    void this.#follow(events)
    void this.#list(changed)
  }

  async #follow(events: AsyncIterable<AgentEvent>): Promise<void> {
    try {
      for await (const event of events) {
        // A reader that is too slow misses pieces of text; the rows that follow have all of it.
        if (this.#events.length < MAX_EVENTS) this.#events.push(event)
        else this.#isChanged = true
        this.#arrived.resolve()
      }
    } catch (thrown) {
      this.failure = toAgentError(thrown, 'STORE_FAILED')
    }
    this.isEnded = true
    this.#arrived.resolve()
  }

  async #list(changed: () => Promise<boolean>): Promise<void> {
    while (!this.isEnded && (await changed())) {
      this.#isChanged = true
      this.#arrived.resolve()
    }
  }

  take(): { readonly events: readonly AgentEvent[]; readonly isChanged: boolean } {
    const taken = { events: this.#events, isChanged: this.#isChanged }
    this.#events = []
    this.#isChanged = false
    return taken
  }

  async arrival(maxMs: number | undefined): Promise<void> {
    const timer = maxMs === undefined ? undefined : setTimeout(() => this.#arrived.resolve(), maxMs)
    await this.#arrived.promise
    clearTimeout(timer)
    this.#arrived = Promise.withResolvers()
  }
}

/** The entries of events that are not in the ledger yet: it is stored at the end of a step. */
function entriesBeyond({ run }: RunView, live: readonly TimedLedgerEntry[]): readonly TimedLedgerEntry[] {
  if (live.length === 0) return live
  const closed = run.steps.filter(({ isOpen }) => isOpen !== true).length
  const keyOf = ({ step, trigger, hook, call = '' }: TimedLedgerEntry): string =>
    JSON.stringify([step, trigger, hook, call])
  const stored = Map.groupBy(
    run.ledger.filter(({ step, path }) => step >= closed && path === undefined),
    keyOf,
  )
  return live.filter((entry) => entry.step >= closed && stored.get(keyOf(entry))?.pop() === undefined)
}

function matrixWith({ run }: RunView, entries: readonly TimedLedgerEntry[]): ReturnType<typeof matrixOf> {
  return matrixOf({ ...run, ledger: [...run.ledger, ...entries] })
}

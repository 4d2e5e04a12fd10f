import { AgentError, toAgentError } from '../errors.ts'
import type { SessionStore } from '../sessions/stores/store.ts'
import type { AgentEvent } from '../core/state/event.ts'
import type { TimedLedgerEntry } from '../core/state/ledger.ts'
import { matrixOf, type Matrix } from './matrix.ts'
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
  { session, run: given, from }: RunRef & { readonly from: number },
  { view, info, changed, signal }: Watching,
): AsyncGenerator<RunChange> {
  const mailbox = new Mailbox()
  const left = new AbortController()
  const events = watchSession(store, session, { after: Infinity, signal: AbortSignal.any([signal, left.signal]) })
  void mailbox.fill(events, changed)
  const first = await view({ session, ...(given !== undefined && { run: given }) })
  const { index, id } = first.tail
  let [current, knownRuns, knownInfo, notBefore] = [first as RunView | undefined, first.runs, '', 0]
  let live: readonly TimedLedgerEntry[] = []
  let known = { from, rows: [] as readonly string[] }
  try {
    for (;;) {
      if (current !== undefined) {
        const began = performance.now()
        live = entriesBeyond(current, live)
        const matrix = live.length === 0 ? current.matrix : matrixWith(current, live)
        const now = await info({ ...current, matrix })
        if (JSON.stringify(now) !== knownInfo) yield { type: 'run', run: now }
        knownInfo = JSON.stringify(now)
        const all = matrix.rows.slice(known.from).map(({ row }) => ({ row, text: JSON.stringify(row) }))
        const rows = all.filter(({ text }, i) => text !== known.rows[i]).map(({ row }) => row)
        for (let i = 0; i < rows.length; i += CHUNK)
          yield { type: 'rows', rows: rows.slice(i, i + CHUNK), total: matrix.rows.length }
        if (current.runs > knownRuns) yield { type: 'newRun', run: current.runs - 1 }
        knownRuns = current.runs
        const next = Math.max(known.from, matrix.settled.rows.length)
        known = { from: next, rows: all.slice(next - known.from).map(({ text }) => text) }
        notBefore = performance.now() + Math.max(MIN_PAUSE_MS, PAUSES * (performance.now() - began))
        current = undefined
      }
      for (const event of mailbox.take()) {
        const isOwn = event.run === id
        if (isOwn && event.type === 'hook') live = [...live, event.entry]
        if (!passed.has(event.type)) mailbox.isStale = true
        else if (isOwn) yield { type: 'event', event }
      }
      if (signal.aborted) return
      if (mailbox.isEnded) {
        if (mailbox.failure !== undefined) throw mailbox.failure
        yield { type: 'deleted' }
        return
      }
      const pause = notBefore - performance.now()
      if (!mailbox.isStale || pause > 0) await mailbox.arrival(mailbox.isStale ? pause : undefined)
      else {
        mailbox.isStale = false
        const began = performance.now()
        current = await view({ session, run: index }).catch(noneIfUnknown)
        if (current === undefined) mailbox.isEnded = true
        notBefore = performance.now() + PAUSES * (performance.now() - began)
      }
    }
  } finally {
    left.abort()
  }
}

/** The session may have been deleted in the meantime. */
function noneIfUnknown(thrown: unknown): undefined {
  if (thrown instanceof AgentError && thrown.code === 'SESSION_UNKNOWN') return undefined
  throw thrown
}

/** Events that wait to be sent, and whether the run must be read again. */
class Mailbox {
  isStale = false
  isEnded = false
  /** Why the events cannot be followed. */
  failure: Error | undefined
  #events: AgentEvent[] = []
  #arrived = Promise.withResolvers<void>()

  /** Takes events and changes of the list until both end. */
  async fill(events: AsyncIterable<AgentEvent>, changed: () => Promise<boolean>): Promise<void> {
    const listed = async (): Promise<void> => {
      while (!this.isEnded && (await changed())) this.#arrive(() => (this.isStale = true))
    }
    void listed().catch(() => undefined)
    try {
      for await (const event of events) this.#arrive(() => this.#add(event))
    } catch (thrown) {
      this.failure = toAgentError(thrown, 'STORE_FAILED')
    } finally {
      this.#arrive(() => (this.isEnded = true))
    }
  }

  /** A reader that is too slow misses pieces of text; the rows that follow have all of it. */
  #add(event: AgentEvent): void {
    if (this.#events.length < MAX_EVENTS) this.#events.push(event)
    else this.isStale = true
  }

  #arrive(note: () => void): void {
    note()
    this.#arrived.resolve()
  }

  take(): readonly AgentEvent[] {
    const events = this.#events
    this.#events = []
    return events
  }

  async arrival(maxMs: number | undefined): Promise<void> {
    const timer = maxMs === undefined ? undefined : setTimeout(() => this.#arrived.resolve(), maxMs)
    await this.#arrived.promise
    clearTimeout(timer)
    this.#arrived = Promise.withResolvers()
  }
}

/** The entries of events that are not in the ledger yet: it is stored at the end of a step. */
function entriesBeyond({ tail, before }: RunView, live: readonly TimedLedgerEntry[]): readonly TimedLedgerEntry[] {
  if (live.length === 0) return live
  const closed = before.step + tail.steps.filter(({ isOpen }) => isOpen !== true).length
  const keyOf = ({ step, trigger, hook, call = '' }: TimedLedgerEntry): string =>
    JSON.stringify([step, trigger, hook, call])
  const stored = Map.groupBy(
    tail.ledger.filter(({ step, path }) => step >= closed && path === undefined),
    keyOf,
  )
  return live.filter((entry) => entry.step >= closed && stored.get(keyOf(entry))?.pop() === undefined)
}

function matrixWith({ tail, before }: RunView, entries: readonly TimedLedgerEntry[]): Matrix {
  return matrixOf({ ...tail, ledger: [...tail.ledger, ...entries] }, before)
}

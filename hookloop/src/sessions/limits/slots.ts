import { systemClock } from '../../effects/run-time.ts'
import { isJsonObject, type Json } from '../../state/json.ts'
import { abortable, Deadline, waitAtMost } from '../../system/timeout.ts'
import type { SessionStore } from '../stores/store.ts'

/** A slot that is in use: until when, and by whom. The same id in another process is another owner. */
type Slot = { readonly owner: string; readonly until: number }
type SlotTable = { readonly [id: string]: Slot }

type SlotsOptions = {
  readonly store: SessionStore
  readonly max: number
  /** How long a slot stays in use after its owner renewed it last. */
  readonly leaseMs: number
}

/** What was asked for: the slot, or how many others have one. */
export type Taken = { readonly waitedMs: number } & (
  | { readonly release: () => Promise<void> }
  | { readonly used: number }
)

const FIRST_PAUSE_MS = 50
const MAX_PAUSE_MS = 1_000
const RELEASE_MS = 5_000

/**
 * A semaphore that processes share: at most `max` slots of a name are in use at once. A live owner renews its slot; that of a
 * process that died ends with its lease, by the clock of the store.
 */
export class Slots {
  readonly #options: SlotsOptions
  readonly #lines = new Map<string, Line>()

  constructor(options: SlotsOptions) {
    this.#options = options
  }

  /**
   * Takes a slot, or waits for one, until the signal aborts or the time is over. Of all that wait for a name in this
   * process, in order, only the first asks the store: after 50 ms at first, then after up to a second.
   */
  async take(
    name: string,
    { id, maxWaitMs, signal }: { readonly id: string; readonly maxWaitMs: number; readonly signal: AbortSignal },
  ): Promise<Taken> {
    const started = performance.now()
    const deadline = new Deadline(signal)
    deadline.start(maxWaitMs, () => new Error(`no slot within ${maxWaitMs} ms`))
    const line = this.#lines.get(name) ?? new Line()
    this.#lines.set(name, line)
    const leave = await line.enter(deadline.signal)
    try {
      for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
        signal.throwIfAborted()
        const owner = crypto.randomUUID()
        const used = await this.#add(name, id, owner)
        const waitedMs = Math.round(performance.now() - started)
        if (used < this.#options.max) {
          const release = this.#hold(name, id, owner)
          if (signal.aborted) await release() // while the store was asked
          signal.throwIfAborted()
          return { waitedMs, release }
        }
        if (deadline.signal.aborted) return { waitedMs, used }
        await line.pause(pauseMs * (0.5 + Math.random() / 2), deadline.signal)
      }
    } finally {
      deadline.clear()
      leave()
      if (line.isEmpty) this.#lines.delete(name)
    }
  }

  /** Adds the slot unless `max` others are in use. Returns how many others are. */
  async #add(name: string, id: string, owner: string): Promise<number> {
    let used = 0
    await this.#update(name, (slots, now) => {
      const { [id]: _own, ...others } = slots
      used = Object.keys(others).length
      return used < this.#options.max ? { ...others, [id]: this.#slot(owner, now) } : slots
    })
    return used
  }

  #slot(owner: string, now: number): Slot {
    return { owner, until: now + this.#options.leaseMs }
  }

  /** Renews the slot until it is released. */
  #hold(name: string, id: string, owner: string): () => Promise<void> {
    const renew = (): void => {
      // A process that was stopped for longer than its lease counts again, unless another one has its slot now.
      const renewed = this.#update(name, (slots, now) => {
        const isOurs = slots[id] === undefined || slots[id].owner === owner
        return isOurs ? { ...slots, [id]: this.#slot(owner, now) } : slots
      })
      renewed.catch(() => undefined) // the next time
    }
    const timer = setInterval(renew, this.#options.leaseMs / 3)
    timer.unref()
    return async () => {
      clearInterval(timer)
      await waitAtMost(this.#remove(name, id, owner), RELEASE_MS).catch(() => undefined) // ends with its lease
      this.#lines.get(name)?.wake()
    }
  }

  async #remove(name: string, id: string, owner: string): Promise<void> {
    await this.#update(name, (slots) => {
      const { [id]: own, ...others } = slots
      return own?.owner === owner ? others : slots
    })
  }

  #update(name: string, change: (slots: SlotTable, now: number) => SlotTable): Promise<Json> {
    return this.#options.store.update(name, (value, now = Date.now()) => change(inUse(value, now), now))
  }
}

function inUse(value: Json | undefined, now: number): SlotTable {
  const slots = isJsonObject(value) ? (value as unknown as SlotTable) : {}
  return Object.fromEntries(Object.entries(slots).filter(([, { until }]) => until > now))
}

/** Those in this process that wait for the same slots, in order. */
class Line {
  #last: Promise<void> = Promise.resolve()
  #length = 0
  #wake: (() => void) | undefined

  get isEmpty(): boolean {
    return this.#length === 0
  }

  /** Resolves when all before have left, or the signal aborts. */
  async enter(signal: AbortSignal): Promise<() => void> {
    const before = this.#last
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#last = before.then(() => promise)
    this.#length++
    await abortable(before, signal).catch(() => undefined)
    return () => {
      this.#length--
      resolve()
    }
  }

  /** Until a slot was released in this process, but at most so long. */
  async pause(ms: number, signal: AbortSignal): Promise<void> {
    const stop = new AbortController()
    this.#wake = () => stop.abort()
    await systemClock.sleep(ms, AbortSignal.any([signal, stop.signal]))
  }

  wake(): void {
    this.#wake?.()
  }
}

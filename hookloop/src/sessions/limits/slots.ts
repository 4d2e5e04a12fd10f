import { isJsonObject, type Json } from '../../values/json.ts'
import { waitAtMost } from '../../system/timeout.ts'
import type { SessionStore } from '../stores/store.ts'
import { SharedCounter, type Waiting } from './shared-counter.ts'

/** A slot that is in use: until when, and by whom. The same id in another process is another owner. */
type Slot = { readonly owner: string; readonly until: number }
type SlotTable = { readonly [id: string]: Slot }

/** What was asked for: the slot, or how many others have one. */
export type Taken = { readonly waitedMs: number } & (
  | { readonly release: () => Promise<void> }
  | { readonly used: number }
)

const RELEASE_MS = 5_000

/**
 * A semaphore that processes share: at most `max` slots of a name are in use at once. A live owner renews its slot; that of a
 * process that died ends after `leaseMs`, by the clock of the store.
 */
export class Slots {
  readonly #counter: SharedCounter
  readonly #max: number
  readonly #leaseMs: number

  constructor({
    store,
    max,
    leaseMs,
  }: {
    readonly store: SessionStore
    readonly max: number
    readonly leaseMs: number
  }) {
    this.#counter = new SharedCounter(store)
    this.#max = max
    this.#leaseMs = leaseMs
  }

  /** Takes a slot, or waits for one. */
  async take(name: string, { id, ...waiting }: Waiting & { readonly id: string }): Promise<Taken> {
    const owner = crypto.randomUUID()
    const { waitedMs, full: used } = await this.#counter.take(
      name,
      (value, now) => {
        const { [id]: _own, ...others } = inUse(value, now)
        const count = Object.keys(others).length
        return count < this.#max ? { value: { ...others, [id]: this.#slot(owner, now) } } : { full: count }
      },
      waiting,
    )
    if (used !== undefined) return { waitedMs, used }
    const release = this.#hold(name, id, owner)
    if (waiting.signal.aborted) await release() // while the store was asked
    waiting.signal.throwIfAborted()
    return { waitedMs, release }
  }

  #slot(owner: string, now: number): Slot {
    return { owner, until: now + this.#leaseMs }
  }

  /** Renews the slot until it is released. */
  #hold(name: string, id: string, owner: string): () => Promise<void> {
    const renew = (): void => {
      // A process that was stopped for longer than its lease counts again, unless another one has its slot now.
      const renewed = this.#counter.update(name, (value, now) => {
        const slots = inUse(value, now)
        const isOurs = slots[id] === undefined || slots[id].owner === owner
        return isOurs ? { ...slots, [id]: this.#slot(owner, now) } : slots
      })
      renewed.catch(() => undefined) // the next time
    }
    const timer = setInterval(renew, this.#leaseMs / 3)
    timer.unref()
    return async () => {
      clearInterval(timer)
      const removed = this.#counter.giveBack(name, (value, now) => {
        const { [id]: own, ...others } = inUse(value, now)
        return own === undefined || own.owner === owner ? others : { ...others, [id]: own }
      })
      await waitAtMost(removed, RELEASE_MS).catch(() => undefined) // ends with its lease
    }
  }
}

function inUse(value: Json | undefined, now: number): SlotTable {
  const slots = isJsonObject(value) ? (value as unknown as SlotTable) : {}
  return Object.fromEntries(Object.entries(slots).filter(([, { until }]) => until > now))
}

import type { Emit } from '../../state/event.ts'
import type { LedgerEntry } from '../../state/ledger.ts'
import type { LedgerHook, LedgerPlace, ShadowLog } from '../../hooks/base-context.ts'
import type { Ledger } from '../explain/ledger-writer.ts'

const SETTLE_MS = 5_000

/** What the shadows of a run would have done, told when each has answered. The loop goes on without them. */
export class Shadows implements ShadowLog {
  readonly #ledger: Ledger
  readonly #emit: Emit | undefined
  readonly #pending = new Map<Promise<void>, () => void>()

  constructor(ledger: Ledger, emit: Emit | undefined) {
    this.#ledger = ledger
    this.#emit = emit
  }

  note(
    { plan, callIndex, step }: LedgerPlace & { readonly step: number },
    { index }: LedgerHook,
    durationMs: number,
    what?: Partial<LedgerEntry>,
  ): void {
    this.#ledger.note(step, plan.number, index, callIndex, durationMs)
    if (what !== undefined) this.#ledger.explainLast(what)
    this.#emit?.({ type: 'hook', entry: this.#ledger.last() })
  }

  follow(work: Promise<void>, giveUp: () => void): void {
    this.#pending.set(work, giveUp)
    void work.then(() => this.#pending.delete(work))
  }

  /** Lets those that are under way answer, for a while. Whoever has not by then is told as such. */
  async settle(): Promise<void> {
    if (this.#pending.size === 0) return
    let timer: NodeJS.Timeout | undefined
    const over = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, SETTLE_MS)
    })
    await Promise.race([Promise.all(this.#pending.keys()), over])
    clearTimeout(timer)
    for (const giveUp of this.#pending.values()) giveUp()
    this.#pending.clear()
  }
}

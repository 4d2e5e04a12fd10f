import type { ToModel } from '../state/inference.ts'
import type { LedgerEntry } from '../state/ledger.ts'
import type { List } from '../state/list.ts'
import type { Above } from '../state/subagent.ts'
import type { Usage } from '../state/usage.ts'
import type { Effects } from '../effects/effects.ts'
import type { HookHost } from './base-context.ts'

/** A run as it was at one event, for hooks that may take their time and must not touch it. */
export class Moment implements HookHost {
  readonly spent: Usage
  readonly now: number
  readonly signal: AbortSignal
  readonly ledger: List<LedgerEntry>
  readonly effects: Effects
  readonly step: number
  readonly place: string
  readonly toModel: ToModel
  readonly above: readonly Above[] | undefined

  constructor(host: HookHost) {
    this.spent = host.spent
    this.now = host.now
    this.signal = host.signal
    this.ledger = host.ledger
    this.effects = host.effects
    this.step = host.step
    this.place = host.place
    this.toModel = host.toModel
    this.above = host.above
  }

  get cancelled(): boolean {
    return this.signal.aborted // whoever only looks on must not be the one that makes the run notice
  }

  note(): void {}
  watch(): void {}
  spend(): void {}
}

import type { LedgerEntry, TimedLedgerEntry } from '../state/ledger.ts'
import type { PlannedHook } from '../hooks/hook-plans.ts'
import type { ActiveCall } from './open-step.ts'

/** The hook of an entry, or the loop itself. */
type Noted = Pick<PlannedHook, 'name'> & {
  readonly mode: LedgerEntry['mode']
  readonly shadow?: boolean
  readonly bookkeeping?: boolean
  readonly definedAt?: () => string | undefined
}

const hookloop: Noted = { name: 'hookloop', mode: 'loop' }

/** What hooks have decided and changed, in order. */
export class Ledger {
  readonly #entries: TimedLedgerEntry[]
  /** How many entries are stored. */
  #stored: number
  /** Entries of observers that failed in the background. Hooks never see them: their time differs from run to run. */
  readonly #late: TimedLedgerEntry[] = []
  #shown: readonly TimedLedgerEntry[] | undefined
  #untimed: readonly LedgerEntry[] = Object.freeze([])

  constructor(earlier: readonly TimedLedgerEntry[] = []) {
    this.#entries = [...earlier]
    this.#stored = earlier.length
  }

  note(
    place: Pick<LedgerEntry, 'step' | 'trigger' | 'call'>,
    what: Partial<LedgerEntry>,
    { hook = hookloop, durationMs = 0 }: { readonly hook?: Noted; readonly durationMs?: number } = {},
  ): TimedLedgerEntry {
    const { step, trigger, call } = place
    const definedAt = what.decision === 'skipped' ? undefined : hook.definedAt?.()
    const entry: TimedLedgerEntry = Object.freeze({
      step,
      trigger,
      hook: hook.name,
      mode: hook.mode,
      ...(call !== undefined && { call }),
      ...(definedAt !== undefined && { definedAt }),
      ...(hook.bookkeeping === true && { bookkeeping: true as const }),
      ...what,
      ...(hook.shadow === true && { shadow: hook.shadow }),
      durationMs: Math.round(durationMs * 1000) / 1000,
    })
    this.add(entry)
    return entry
  }

  add(entry: TimedLedgerEntry): void {
    this.#entries.push(entry)
    this.#shown = undefined
  }

  /** Adds the ledger of the subagents of a call, in the order of the calls: subagents that run together end in any order. */
  adopt(call: Pick<ActiveCall, 'inside'>): void {
    for (const entry of call.inside ?? []) this.add(entry)
    call.inside = undefined
  }

  addLate(entry: TimedLedgerEntry): void {
    this.#late.push(entry)
  }

  /** The same as `inForce` without durations, which differ from run to run: they are for observers only. */
  get untimed(): readonly LedgerEntry[] {
    const { inForce } = this
    const known = this.#untimed
    if (known.length < inForce.length)
      this.#untimed = Object.freeze([...known, ...inForce.slice(known.length).map(withoutDuration)])
    return this.#untimed
  }

  /** The entries of hooks in force. */
  get inForce(): readonly TimedLedgerEntry[] {
    return (this.#shown ??= Object.freeze(this.#entries.filter(({ shadow }) => shadow !== true)))
  }

  /** The entries since the last checkpoint. */
  get unstored(): readonly TimedLedgerEntry[] {
    return this.#entries.slice(this.#stored)
  }

  setStored(): void {
    this.#stored = this.#entries.length
  }

  get all(): readonly TimedLedgerEntry[] {
    return Object.freeze([...this.#entries, ...this.#late])
  }
}

function withoutDuration({ durationMs: _ms, ...entry }: TimedLedgerEntry): LedgerEntry {
  return Object.freeze(entry)
}

/** Whether a hook decided or changed something, warned, failed or spent something. Most invocations do nothing of it. */
export function saysSomething({ decision, changes, error, warnings, value }: Partial<LedgerEntry>): boolean {
  if (decision !== undefined || changes !== undefined || error !== undefined) return true
  return warnings !== undefined || value !== undefined
}

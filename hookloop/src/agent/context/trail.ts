import type { LedgerEntry } from '../../state/ledger.ts'
import { deriveHost, type HookHost } from '../../hooks/hook-host.ts'

/**
 * What hooks inside a performed call did. It is recorded with the call and added to the ledger when the call has ended,
 * because a replay answers the call without running the hooks.
 */
export class Trail {
  readonly entries: LedgerEntry[] = []
  /** How long each hook took. Not recorded. */
  readonly durations: number[] = []
  /** Set when the call has ended: shadow hooks that answer later are added to the ledger directly. */
  isClosed = false

  add(entry: LedgerEntry, durationMs: number): void {
    this.entries.push(entry)
    this.durations.push(durationMs)
  }

  /** The host of the hooks inside the call. */
  hostIn(run: HookHost, ...overrides: readonly Partial<HookHost>[]): HookHost {
    const { shadows } = run
    const note: HookHost['note'] = ({ plan: { trigger } }, { name, mode }, durationMs, what) =>
      this.add({ step: run.step, trigger, hook: name, mode, ...what }, durationMs)
    const noteShadow: NonNullable<typeof shadows>['note'] = (at, hook, durationMs, what) => {
      if (this.isClosed) shadows!.note(at, hook, durationMs, what)
      else note(at, hook, durationMs, { ...what, shadow: true })
    }
    return deriveHost(run, { note, shadows: shadows && { ...shadows, note: noteShadow } }, ...overrides)
  }
}

import type { LedgerEntry, TimedLedgerEntry } from '../core/state/ledger.ts'

/** The name of the tracing hook, which is not traced itself. */
export const TRACING = 'tracing'

/** A ledger entry, with its duration if known. */
export type Noted = LedgerEntry & Partial<Pick<TimedLedgerEntry, 'durationMs'>>

export type HookTime = { readonly entry: Noted; readonly start: number; readonly end: number }

/** What an observer sees at a trigger: the time, and the hooks that ran since the last trigger. */
export type Reading = {
  readonly now: number
  readonly hooks: readonly HookTime[]
  /** When the first of them started. */
  readonly from: number
  /** When the call ended that the last of them judged. */
  readonly callEnded: number
}

/**
 * Computes when the hooks of a trigger started and ended. The ledger has their order and durations, and the observer knows
 * when the last one ended, so times are computed backwards from there. Around hooks are nested around a call, so they all
 * end with it.
 */
export function readLedger(ledger: readonly Noted[], now: number): Reading {
  const entries = ledger.filter(isTraced)
  const hooks: HookTime[] = []
  let [cursor, from, inCall] = [now, now, false]
  for (const entry of entries.toReversed()) {
    inCall ||= entry.trigger.startsWith('around')
    const start = cursor - (entry.durationMs ?? 0)
    hooks.push({ entry, start, end: cursor })
    from = Math.min(from, start)
    if (!inCall) cursor = start
  }
  return { now, hooks: hooks.toReversed(), from, callEnded: cursor }
}

/** Not the tracing hook, and not about a subagent, which has its own trace. */
function isTraced({ hook, path, trigger, mode }: LedgerEntry): boolean {
  return hook !== TRACING && path === undefined && !(trigger === 'onSubagentStop' && mode === 'loop')
}

/** The hook that replaced the result of a call, if one did. */
export function substituteOf({ hooks }: Reading): string | undefined {
  return hooks.find(({ entry }) => entry.trigger.startsWith('around') && entry.decision === 'substituted')?.entry.hook
}

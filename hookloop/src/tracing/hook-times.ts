import type { LedgerEntry, TimedLedgerEntry } from '../state/ledger.ts'

/** An entry of the ledger, with the time it took where that is known. */
export type Noted = LedgerEntry & Partial<Pick<TimedLedgerEntry, 'durationMs'>>

export type HookTime = { readonly entry: Noted; readonly start: number; readonly end: number }

/** What an observer finds at a trigger: the time it is, and the hooks that fired since it last looked. */
export type Reading = {
  readonly now: number
  readonly hooks: readonly HookTime[]
  /** When the first of them began. */
  readonly from: number
  /** When the call ended that the last of them looked at. */
  readonly callEnded: number
}

/**
 * When the hooks of a firing began and ended. The ledger says in which order they ran and how long, and the observer
 * knows when the last of them had ended, so they are laid out backwards from there. Around hooks enclose a call and each
 * other: they all end when the call did.
 */
export function layOut(entries: readonly Noted[], now: number): Reading {
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

/** The hook that answered a call in place of the model or the tool, if one did. */
export function substituteOf({ hooks }: Reading): string | undefined {
  return hooks.find(({ entry }) => entry.trigger.startsWith('around') && entry.decision === 'substituted')?.entry.hook
}

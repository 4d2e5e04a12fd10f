import { isJsonObject, type Json } from '../../state/json.ts'
import { isLedgerRow, type LedgerRow, type TimedLedgerEntry } from '../../state/ledger.ts'

// Most invocations decide nothing: they are stored as numbers, in one list per step. The list starts with the step; then comes
// for each invocation the number of its hook, the duration in microseconds, and the call it was about, if it was about one: as
// -1 for the first call of the step, -2 for the second, or by its id. A hook is written in full where it first occurs.

/** A hook at a trigger: trigger, name and mode. */
export type KnownHook = readonly [trigger: string, hook: string, mode: string]

type Stored = readonly (TimedLedgerEntry | LedgerRow)[]

/** What the calls of a step are called. */
export type CallNames = { readonly ids: (step: number) => readonly string[] }

export function encodeLedger(entries: Stored, hooks: KnownHook[], { ids }: CallNames): readonly Json[] {
  const encoded: Json[] = []
  let group: Json[] = []
  for (const entry of entries) {
    const row = Array.isArray(entry) ? (entry as LedgerRow) : toRow(entry as TimedLedgerEntry)
    const us = row === undefined ? -1 : Math.round(row[4] * 1000)
    if (row === undefined || us < 0 || us / 1000 !== row[4]) {
      encoded.push(entry)
      group = []
      continue
    }
    const [step, call] = [row[0], row[5]]
    if (group[0] !== step) encoded.push((group = [step]))
    const known = indexOfHook(hooks, row)
    group.push(known === -1 ? hookOf(row) : known, us)
    if (known === -1) hooks.push(hookOf(row))
    const index = call === undefined ? -1 : ids(step).indexOf(call)
    if (call !== undefined) group.push(index === -1 ? call : -1 - index)
  }
  return encoded
}

function hookOf([, trigger, hook, mode]: LedgerRow): KnownHook {
  return [trigger, hook, mode]
}

/** Called for every invocation of a hook, so it creates nothing. */
function indexOfHook(hooks: readonly KnownHook[], row: LedgerRow): number {
  for (let i = 0; i < hooks.length; i++) {
    const known = hooks[i]!
    if (known[1] === row[2] && known[0] === row[1] && known[2] === row[3]) return i
  }
  return -1
}

/** The rows of a stored ledger. What is not valid becomes an entry that is not valid. */
export function decodeLedger(
  stored: readonly Json[],
  hooks: KnownHook[],
  { ids }: CallNames,
): readonly (TimedLedgerEntry | LedgerRow)[] {
  const entries: (TimedLedgerEntry | LedgerRow)[] = []
  for (const group of stored) {
    if (!Array.isArray(group) || isLedgerRow(group)) {
      entries.push(group as unknown as TimedLedgerEntry)
      continue
    }
    const items = group as readonly Json[]
    const step = items[0] as number
    for (let i = 1; i < items.length;) {
      const hook = items[i++]
      if (Array.isArray(hook)) hooks.push(hook as unknown as KnownHook)
      const [trigger, name, mode] = Array.isArray(hook) ? (hook as unknown as KnownHook) : (hooks[hook as number] ?? [])
      const ms = Number(items[i++]) / 1000
      const call = typeof items[i] === 'string' || Number(items[i]) < 0 ? items[i++] : undefined
      const id = typeof call === 'number' ? ids(step)[-1 - call] : call
      const row = [step, trigger, name, mode, ms] as unknown as LedgerRow
      entries.push(call === undefined ? row : ([...row, id] as unknown as LedgerRow))
    }
  }
  return entries
}

/** An entry as a row, if it has nothing else. */
function toRow(entry: TimedLedgerEntry): LedgerRow | undefined {
  const { step, trigger, hook, mode, durationMs, call, ...rest } = entry
  if (!isJsonObject(entry) || Object.keys(rest).length > 0) return undefined
  return call === undefined ? [step, trigger, hook, mode, durationMs] : [step, trigger, hook, mode, durationMs, call]
}

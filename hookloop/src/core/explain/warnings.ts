import { specOf, type HookTrigger } from '../hooks/triggers.ts'
import type { TimedLedgerEntry } from '../state/ledger.ts'
import { shorten } from '../../values/text.ts'
import type { Warning } from '../state/warning.ts'

const MAX_WARNINGS = 100
const MAX_MESSAGE = 1_000

type LedgerEntry = Omit<TimedLedgerEntry, 'durationMs'>

/** The warnings of a run, from its ledger. Equal ones are counted, and at most 100 different ones are listed. */
export function warningsOf(ledger: readonly LedgerEntry[]): readonly Warning[] {
  const found = new Map<string, Warning>()
  let omitted = 0
  for (const warning of ledger.flatMap(entryWarnings)) {
    const { step: _step, count: _count, ...same } = warning
    const key = JSON.stringify(same)
    const before = found.get(key)
    if (before !== undefined) found.set(key, { ...before, count: before.count + 1 })
    else if (found.size < MAX_WARNINGS) found.set(key, warning)
    else omitted++
  }
  const warnings = [...found.values()].map((each) => Object.freeze(each))
  if (omitted > 0) {
    const message = `There were ${omitted} more warnings. The ledger has all of them.`
    warnings.push(Object.freeze({ code: 'WARNINGS_OMITTED', message, step: 0, count: omitted }))
  }
  return Object.freeze(warnings)
}

/** The warnings of one entry of the ledger: the hook failed, or it reported problems. */
export function entryWarnings(entry: LedgerEntry): readonly Warning[] {
  const { step, trigger, hook, mode, error, code = 'HOOK_FAILED', definedAt, path } = entry
  const place = { step, count: 1, path }
  const by = mode === 'loop' ? {} : { hook, trigger }
  const reported = (entry.warnings ?? []).map((each): Warning => {
    const message = shorten(each.message, MAX_MESSAGE)
    return defined<Warning>({ code: each.code, message, ...by, definedAt: each.definedAt ?? definedAt, ...place })
  })
  // What the loop itself notes as an error is the error of a hook, or ends the run.
  if (error === undefined || mode === 'loop' || code === 'RUN_CANCELLED') return reported
  const message = `${failureText(entry)}: ${shorten(error, MAX_MESSAGE)}`
  return [...reported, defined<Warning>({ code, message, ...by, definedAt, ...place })]
}

const kinds = { transform: 'Hook', guard: 'Guard', observe: 'Observer', loop: 'Hook' } as const

/** Which hook failed where, and what came of it. */
function failureText({ hook, mode, trigger, decision, shadow }: LedgerEntry): string {
  const which = `${kinds[mode]} "${hook}" failed at ${trigger}`
  if (shadow === true) return `${which} in shadow mode`
  if (decision === 'continue') return `${which}, and the run continued without it`
  if (decision === undefined || decision !== specOf(trigger as HookTrigger).onGuardFailure) return which
  return `${which}, so it ${decision === 'block' ? 'blocked' : 'stopped the run'}`
}

/** Whether a hook has decided this, alone or with something else. */
export function has({ decision }: Pick<TimedLedgerEntry, 'decision'>, what: string): boolean {
  return decision?.split('+').includes(what) === true
}

/** Without the fields that are undefined. */
export function defined<T extends object>(fields: { readonly [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T
}

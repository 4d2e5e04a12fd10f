import { injectedPart, warningText } from '../../core/explain/explain.ts'
import { entryWarnings } from '../../core/explain/warnings.ts'
import type { Json } from '../../values/json.ts'
import type { Change, EntryWarning, TimedLedgerEntry } from '../../core/state/ledger.ts'
import { oneLine } from './printable.ts'

/** A decision as a line of text. */
export type Decision = {
  readonly glyph: string
  readonly color: 'red' | 'yellow' | 'cyan'
  readonly text: string
  /** The message of the hook. */
  readonly message?: string
  /** It is shown only the first time. An error event may report the same without the place of the hook. */
  readonly once?: string
}

const MAX_VALUE = 60
const MAX_INJECTED = 160
const MAX_CHANGES = 3
/** State of capabilities, which is not shown. */
const PRIVATE_STATE = 'state.metadata.hookloop.'

/**
 * What a hook decided in one invocation. Nothing is shown for a hook that decides nothing or only allows, for what another
 * event reports, and without `verbose` for bookkeeping.
 */
export function hookLines(entry: TimedLedgerEntry, { verbose = false } = {}): readonly Decision[] {
  const { mode, shadow } = entry
  const failures = entryWarnings({ ...entry, warnings: [] }).map((warning): Decision => {
    const text = warningText(warning).replace(/^step \d+: /, '')
    return { glyph: shadow === true ? '◌' : '!', color: shadow === true ? 'cyan' : 'red', text, once: warning.message }
  })
  if (shadow === true) return [...failures, ...shadowLines(entry)]
  if (mode === 'loop') return [] // other events report approvals, warnings and failed calls
  const decided = (entry.decision?.split('+') ?? []).flatMap((each) => decisionLines(each, entry))
  return [...failures, ...decided, ...changeLines(entry, verbose)]
}

/** A warning, and where its hook is defined. */
export function warningLine({ message, definedAt }: Pick<EntryWarning, 'message' | 'definedAt'>): string {
  return definedAt === undefined ? message : `${message} (${definedAt})`
}

/** A hook, and where it is defined. */
export function hookName({ hook, definedAt }: Pick<TimedLedgerEntry, 'hook' | 'definedAt'>): string {
  return oneLine(definedAt === undefined ? hook : `${hook} (${definedAt})`)
}

function changeLines(entry: TimedLedgerEntry, verbose: boolean): readonly Decision[] {
  if (entry.bookkeeping === true && !verbose) return []
  const changes = entry.changes?.filter(({ path }) => verbose || !path.startsWith(PRIVATE_STATE)) ?? []
  const others = changes.filter(({ added }) => added === undefined)
  const injected = changes.flatMap(({ added }) => added ?? [])
  const line = (text: string): Decision => ({ glyph: '✎', color: 'cyan', text: `${hookName(entry)} ${text}` })
  return [
    ...injected.map((text) => line(`injected ${oneLine(injectedPart(text), MAX_INJECTED)}`)),
    ...(others.length === 0 ? [] : [line(`changed ${changesText(others)}`)]),
  ]
}

/** What a hook in shadow mode would have decided. Its decisions are not applied. */
function shadowLines({ hook, trigger, decision, changes, message, error }: TimedLedgerEntry): readonly Decision[] {
  const reason = message === undefined ? {} : { message }
  const line = (text: string): Decision => ({
    glyph: '◌',
    color: 'cyan',
    text: `${oneLine(hook)} (shadow) ${text}`,
    ...reason,
  })
  if (error !== undefined || decision === 'skipped') return []
  return [
    ...(decision === undefined ? [] : [line(`would decide ${decision} on ${trigger}`)]),
    ...(changes === undefined ? [] : [line(`would change ${changesText(changes)}`)]),
  ]
}

function decisionLines(decision: string, entry: TimedLedgerEntry): readonly Decision[] {
  const { trigger, message, error } = entry
  const reason = message === undefined ? {} : { message }
  if (decision === 'block') {
    // toolFinished reports a blocked call and a withheld result
    if (error !== undefined || trigger.endsWith('ToolUse')) return []
    const what = blockedAt[trigger] ?? trigger
    return [{ glyph: '⊘', color: 'red', text: `${hookName(entry)} blocked ${what}`, ...reason }]
  }
  const shown = shownDecisions.get(decision) // otherwise it allows, or an approval follows
  return shown === undefined ? [] : [{ ...shown, text: `${hookName(entry)} ${shown.text}`, ...reason }]
}

const shownDecisions = new Map<string, Decision>([
  ['forbidContinuation', { glyph: '■', color: 'yellow', text: 'stopped the run' }],
  ['requestContinuation', { glyph: '↻', color: 'cyan', text: 'requested another step' }],
  ['retry', { glyph: '↻', color: 'yellow', text: 'retries' }],
  ['ignore', { glyph: '·', color: 'yellow', text: 'ignored the error' }],
])

const blockedAt: { readonly [trigger: string]: string | undefined } = {
  onUserInput: 'the input',
  afterInference: 'the answer',
}

function changesText(changes: readonly Change[]): string {
  const shown = changes.slice(0, MAX_CHANGES).map(changeText).join(', ')
  return changes.length > MAX_CHANGES ? `${shown} and ${changes.length - MAX_CHANGES} more` : shown
}

function changeText({ path, before, after }: Change): string {
  const shown = oneLine(path, MAX_VALUE)
  if (before !== undefined && after !== undefined) return `${shown} ${valueText(before)} → ${valueText(after)}`
  if (after !== undefined) return `${shown} = ${valueText(after)}`
  return before === undefined ? shown : `${shown}, removed`
}

function valueText(value: Json): string {
  return oneLine(JSON.stringify(value), MAX_VALUE)
}

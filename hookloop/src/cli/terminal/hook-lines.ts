import type { Json } from '../../state/json.ts'
import type { Change, TimedLedgerEntry } from '../../state/ledger.ts'
import { oneLine } from './printable.ts'

/** A decision as a line of text. */
export type Decision = {
  readonly glyph: string
  readonly color: 'red' | 'yellow' | 'cyan'
  readonly text: string
  /** The message of the hook. */
  readonly message?: string
}

const MAX_VALUE = 60
const MAX_CHANGES = 3
/** State of capabilities, which is not shown. */
const PRIVATE_STATE = 'state.metadata.hookloop.'

/**
 * What a hook decided in one invocation. Nothing is shown for a hook that decides nothing or only allows, and for what another
 * event reports.
 */
export function hookLines(entry: TimedLedgerEntry): readonly Decision[] {
  const { hook, trigger, mode, error, shadow } = entry
  if (shadow === true) return shadowLines(entry)
  const decisions: Decision[] = []
  if (error !== undefined) {
    const by = mode === 'loop' ? '' : `${hook} `
    decisions.push({ glyph: '!', color: 'red', text: `${by}failed on ${trigger}`, message: error })
  }
  if (mode === 'loop') return decisions // other events report approvals and failed calls
  for (const each of entry.decision?.split('+') ?? []) decisions.push(...decisionLines(each, entry))
  const changes = entry.changes?.filter(({ path }) => !path.startsWith(PRIVATE_STATE)) ?? []
  if (changes.length > 0) decisions.push({ glyph: '✎', color: 'cyan', text: `${hook} changed ${changesText(changes)}` })
  return decisions
}

/** What a hook in shadow mode would have decided. Its decisions are not applied. */
function shadowLines({ hook, trigger, decision, changes, message, error }: TimedLedgerEntry): readonly Decision[] {
  const reason = message === undefined ? {} : { message }
  const line = (text: string): Decision => ({ glyph: '◌', color: 'cyan', text: `${hook} (shadow) ${text}`, ...reason })
  if (error !== undefined) return [{ ...line(`failed on ${trigger}`), message: error }]
  if (decision === 'skipped') return []
  return [
    ...(decision === undefined ? [] : [line(`would decide ${decision} on ${trigger}`)]),
    ...(changes === undefined ? [] : [line(`would change ${changesText(changes)}`)]),
  ]
}

function decisionLines(decision: string, { hook, trigger, message, error }: TimedLedgerEntry): readonly Decision[] {
  const reason = message === undefined ? {} : { message }
  if (decision === 'block') {
    // toolFinished reports a blocked call and a withheld result
    if (error !== undefined || trigger.endsWith('ToolUse')) return []
    return [{ glyph: '⊘', color: 'red', text: `${hook} blocked ${blockedAt[trigger] ?? trigger}`, ...reason }]
  }
  const shown = shownDecisions.get(decision) // otherwise it allows, or an approval follows
  return shown === undefined ? [] : [{ ...shown, text: `${hook} ${shown.text}`, ...reason }]
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

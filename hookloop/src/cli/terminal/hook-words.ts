import type { Json } from '../../state/json.ts'
import type { Change, TimedLedgerEntry } from '../../state/ledger.ts'
import { oneLine } from './printable.ts'

/** A decision in words, and how grave it is. */
export type Decision = {
  readonly glyph: string
  readonly color: 'red' | 'yellow' | 'cyan'
  readonly text: string
  /** What the hook itself said. */
  readonly message?: string
}

const MAX_VALUE = 60
const MAX_CHANGES = 3
/** What capabilities keep for themselves. */
const NOTES = 'state.metadata.hookloop.'

/**
 * What hooks did in one firing, as far as it is worth a line: nothing for those without an opinion, for what only agrees,
 * and for what is told by another event.
 */
export function hookWords(entry: TimedLedgerEntry): readonly Decision[] {
  const { hook, trigger, mode, error, shadow } = entry
  if (shadow === true) return shadowWords(entry)
  const decisions: Decision[] = []
  if (error !== undefined) {
    const by = mode === 'loop' ? '' : `${hook} `
    decisions.push({ glyph: '!', color: 'red', text: `${by}failed at ${trigger}`, message: error })
  }
  if (mode === 'loop') return decisions // questions, answers and failed calls are told by events of their own
  for (const each of entry.decision?.split('+') ?? []) decisions.push(...decisionWords(each, entry))
  const changes = entry.changes?.filter(({ path }) => !path.startsWith(NOTES)) ?? []
  if (changes.length > 0)
    decisions.push({ glyph: '✎', color: 'cyan', text: `${hook} changed ${changesWords(changes)}` })
  return decisions
}

/** What a shadow would have done. It did not happen, so it is never told as if it had. */
function shadowWords({ hook, trigger, decision, changes, message, error }: TimedLedgerEntry): readonly Decision[] {
  const words = message === undefined ? {} : { message }
  const told = (text: string): Decision => ({ glyph: '◌', color: 'cyan', text: `${hook}, a shadow, ${text}`, ...words })
  if (error !== undefined) return [{ ...told(`failed at ${trigger}`), message: error }]
  if (decision === 'skipped') return []
  return [
    ...(decision === undefined ? [] : [told(`would decide ${decision} at ${trigger}`)]),
    ...(changes === undefined ? [] : [told(`would change ${changesWords(changes)}`)]),
  ]
}

function decisionWords(decision: string, { hook, trigger, message, error }: TimedLedgerEntry): readonly Decision[] {
  const words = message === undefined ? {} : { message }
  switch (decision) {
    case 'block':
      // A call that is blocked, or a result that is withheld, is told when the call is over.
      if (error !== undefined || trigger.endsWith('ToolUse')) return []
      return [{ glyph: '⊘', color: 'red', text: `${hook} blocked ${blockedAt[trigger] ?? trigger}`, ...words }]
    case 'forbidContinuation':
      return [{ glyph: '■', color: 'yellow', text: `${hook} stops the run`, ...words }]
    case 'requestContinuation':
      return [{ glyph: '↻', color: 'cyan', text: `${hook} wants it to go on`, ...words }]
    case 'retry':
      return [{ glyph: '↻', color: 'yellow', text: `${hook} tries again`, ...words }]
    case 'ignore':
      return [{ glyph: '·', color: 'yellow', text: `${hook} ignores the error`, ...words }]
    default:
      return [] // it allows, or a question follows
  }
}

const blockedAt: { readonly [trigger: string]: string | undefined } = {
  onUserInput: 'the input',
  afterInference: 'the answer',
}

function changesWords(changes: readonly Change[]): string {
  const shown = changes.slice(0, MAX_CHANGES).map(changeWords).join(', ')
  return changes.length > MAX_CHANGES ? `${shown} and ${changes.length - MAX_CHANGES} more` : shown
}

function changeWords({ path, before, after }: Change): string {
  const place = oneLine(path, MAX_VALUE)
  if (before !== undefined && after !== undefined) return `${place} ${valueWords(before)} → ${valueWords(after)}`
  if (after !== undefined) return `${place} = ${valueWords(after)}`
  return before === undefined ? place : `${place}, removed`
}

function valueWords(value: Json): string {
  return oneLine(JSON.stringify(value), MAX_VALUE)
}

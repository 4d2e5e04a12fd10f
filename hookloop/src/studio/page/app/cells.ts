import type { Column, Row } from '../../run.types.ts'
import type { IconName } from './icons.tsx'

/** What a hook did in a row, as `Cells` of the API encodes it: how it is drawn, colored and read aloud. */
export type CellKind = { readonly word: string; readonly icon: IconName; readonly tone: Tone }
export type Tone = 'bad' | 'ask' | 'change' | 'stop' | 'good' | 'plain'

const kinds: { readonly [cell: string]: CellKind } = {
  x: { word: 'blocked', icon: 'blocked', tone: 'bad' },
  '!': { word: 'failed', icon: 'failed', tone: 'bad' },
  '?': { word: 'asked', icon: 'asked', tone: 'ask' },
  s: { word: 'voted to stop', icon: 'stop', tone: 'stop' },
  c: { word: 'requested to continue', icon: 'continued', tone: 'stop' },
  r: { word: 'recovered', icon: 'recovered', tone: 'good' },
  '~': { word: 'changed', icon: 'changed', tone: 'change' },
  o: { word: 'decided', icon: 'other', tone: 'plain' },
  '+': { word: 'allowed', icon: 'allowed', tone: 'good' },
}
export const legend = Object.values(kinds)

/** `null` if the ledger has nothing of the hook, `nothing` if it was skipped, or is a shadow without an opinion. */
export function cellAt(row: Row, column: Column): CellKind | 'nothing' | null {
  const cell = row.cells[column.id] ?? ' '
  return cell === ' ' ? null : (kinds[cell] ?? 'nothing')
}

export function wordFor(row: Row, column: Column): string {
  const cell = cellAt(row, column)
  if (cell === null || cell === 'nothing') return 'no opinion'
  return column.shadow ? `${cell.word}, but in shadow mode: not applied` : cell.word
}

/** The tone of a status. */
export function toneOf(status: string | undefined): Tone {
  if (status === undefined) return 'plain'
  if (/^(blocked|failed|withheld|outcomeUnknown|interrupted)$/.test(status)) return 'bad'
  if (/^(asked|suspended)$/.test(status)) return 'ask'
  if (/^(ok|completed)$/.test(status)) return 'good'
  if (/^(running)$/.test(status)) return 'change'
  return /^(stopped|cancelled)$/.test(status) ? 'stop' : 'plain'
}

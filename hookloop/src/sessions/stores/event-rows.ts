import type { NumberedEvent } from './open-writers.ts'

/** A row is not longer than this, unless a single text is. */
export const ROW_CHARACTERS = 32_768

/** Consecutive events that are all transient or all not. */
export type EventRow = { readonly first: number; count: number; readonly transient: boolean; text: string }

/** Events as they are stored: in rows of one or more, separated by newlines. */
export function eventRows(events: readonly NumberedEvent[]): readonly EventRow[] {
  const rows: EventRow[] = []
  let last: EventRow | undefined
  for (const { seq, text, transient } of events) {
    const fits = last?.transient === transient && last.first + last.count === seq
    if (last !== undefined && fits && last.text.length + text.length <= ROW_CHARACTERS) {
      last.text += `\n${text}`
      last.count++
    } else rows.push((last = { first: seq, count: 1, transient, text }))
  }
  return rows
}

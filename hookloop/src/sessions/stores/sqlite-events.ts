import type { DatabaseSync } from 'node:sqlite'
import { eventRows } from './event-rows.ts'
import type { Batch } from './open-writers.ts'
import { PAGE_CHARACTERS, type EventPage, type NumberedText } from './watch-events.ts'

/** The events of all sessions. Some may be in the middle of a row, because an append is one row. */
export class EventTable {
  readonly #insert
  readonly #deleteTransient
  readonly #select
  readonly #last
  readonly #dataVersion
  #lastDataVersion: unknown

  constructor(database: DatabaseSync) {
    this.#insert = database.prepare(
      `INSERT INTO events (place, transient, text)
       VALUES ((? << 32) + CAST(? AS INTEGER), ?, ?)`,
    )
    this.#deleteTransient = database.prepare(
      `DELETE FROM events WHERE transient = 1 AND place >= (:key << 32) AND place < (:key + 1) << 32`,
    )
    this.#select = database.prepare(
      `SELECT place - (:key << 32) AS n, text FROM events WHERE place < (:key + 1) << 32 AND place >= coalesce(
         (SELECT max(place) FROM events WHERE place >= (:key << 32) AND place <= (:key << 32) + CAST(:number AS INTEGER)), (:key << 32)
       ) ORDER BY place`,
    )
    this.#last = database.prepare(
      `SELECT place - (:key << 32) AS n, text FROM events WHERE place >= (:key << 32) AND place < (:key + 1) << 32
       ORDER BY place DESC LIMIT 1`,
    )
    this.#dataVersion = database.prepare('PRAGMA data_version')
  }

  /** Part of a transaction that has checked the lock. */
  add(key: number, { events, startsTurn }: Pick<Batch, 'events' | 'startsTurn'>): void {
    if (startsTurn !== undefined) this.#deleteTransient.run({ key })
    for (const { first, transient, text } of eventRows(events)) this.#insert.run(key, first, transient ? 1 : 0, text)
  }

  read(key: number, after: number): EventPage {
    if (after === Infinity) return { session: key, events: [], more: false, last: this.last(key) }
    const events: NumberedText[] = []
    let length = 0
    let more = false
    for (const row of this.#select.iterate({ key, number: after + 1 })) {
      const [first, text] = [Number(row['n']), String(row['text'])]
      for (const [i, each] of text.split('\n').entries())
        if (first + i > after) events.push({ seq: first + i, text: each })
      length += text.length
      more = events.length > 0 && length >= PAGE_CHARACTERS
      if (more) break
    }
    return { session: key, events, more, last: events.at(-1)?.seq ?? after }
  }

  last(key: number): number {
    const row = this.#last.get({ key })
    return row === undefined ? 0 : Number(row['n']) + String(row['text']).split('\n').length - 1
  }

  /** Whether another connection has committed something since the last call. */
  hasForeignChanges(): boolean {
    const version = this.#dataVersion.get()?.['data_version']
    const isChanged = version !== this.#lastDataVersion
    this.#lastDataVersion = version
    return isChanged
  }
}

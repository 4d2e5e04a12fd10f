import type { DatabaseSync } from 'node:sqlite'
import type { Json, JsonObject } from '../../state/json.ts'
import type { StopRequest } from '../../state/stop-request.ts'
import { describeLockOwner, isLocked, parseLockOwner, toLease, toSessionLock } from './lock-owner.ts'
import { storedStatuses, type Position } from './list-sessions.ts'
import type { Batch } from './open-writers.ts'
import { changedText, type ValueChange } from './shared-value.ts'
import { immediately } from './sqlite-database.ts'
import { StopTable } from './sqlite-stops.ts'
import {
  isOpenStatus,
  listedSession,
  readHead,
  sessionBusy,
  sessionCorrupt,
  sessionUnknown,
  type Facets,
  type HeadToStore,
  type ListedSession,
  type Piece,
  type SessionFilter,
  type ReadOptions,
  type StoredSession,
} from './store.ts'

type Lock = {
  readonly key: number
  readonly epoch: number
  readonly head: JsonObject
  readonly length: number
  readonly stop: StopRequest | undefined
  /** What lists sort and filter by, as this lock has stored it, and when. */
  listed: { readonly facets: Facets; readonly at: number } | undefined
}

type Row = {
  readonly key: number
  readonly id: string
  readonly epoch: number
  readonly owner: string | null
  readonly renewed_at: number
  readonly lease_ms: number
  readonly head: string
  readonly updated_at: number
  readonly status: string | null
}

/** A row is not longer than this, unless a single line is. */
const ROW_CHARACTERS = 32_768
/** The number of lines that a session can have. */
const MAX_LINES = 2 ** 32
/** While a session is locked, its place in lists is updated no more often: each time writes four indexes. */
const LISTED_MS = 1_000

/** All queries. Values from outside are bound, never part of the text of a query. */
export class Tables {
  readonly database: DatabaseSync
  readonly #find
  readonly #insert
  readonly #updateHead
  readonly #update
  readonly #begin
  readonly #commit
  readonly #epoch
  readonly #select
  readonly #last
  readonly #insertPiece
  readonly #selectPieces
  readonly #deletePieces
  readonly #dataVersion
  readonly #stops
  #lastDataVersion: unknown

  constructor(database: DatabaseSync) {
    this.database = database
    this.#stops = new StopTable(database)
    this.#find = database.prepare('SELECT * FROM sessions WHERE id = ?')
    this.#begin = database.prepare('BEGIN IMMEDIATE')
    this.#commit = database.prepare('COMMIT')
    this.#epoch = database.prepare('SELECT epoch FROM sessions WHERE key = ?')
    // One statement, so atomic: nothing is inserted unless the session still has this epoch.
    this.#insert = database.prepare(
      `INSERT INTO lines (place, at, line)
       SELECT (key << 32) + CAST(? AS INTEGER), ?, ? FROM sessions WHERE key = ? AND epoch = ?`,
    )
    this.#updateHead = database.prepare('UPDATE sessions SET head = ? WHERE key = ? AND epoch = ?')
    this.#update = database.prepare(
      'UPDATE sessions SET head = ?, updated_at = ?, status = ?, agent = ?, user = ? WHERE key = ? AND epoch = ?',
    )
    // Lines are appended in rows, so the first line to read may be in the middle of one. Names, because Node before 24
    // cannot bind numbered parameters.
    this.#select = database.prepare(
      `SELECT place - (:key << 32) AS n, line FROM lines WHERE place < (:key << 32) + CAST(:before AS INTEGER) AND place >= coalesce(
         (SELECT max(place) FROM lines WHERE place >= (:key << 32) AND place <= (:key << 32) + CAST(:number AS INTEGER)), (:key << 32)
       ) ORDER BY place`,
    )
    this.#insertPiece = database.prepare('INSERT INTO pieces (session, seq, text) VALUES (?, ?, ?)')
    this.#selectPieces = database.prepare(
      'SELECT seq, text FROM pieces WHERE session = ? AND seq > ? AND seq < ? ORDER BY seq',
    )
    this.#deletePieces = database.prepare('DELETE FROM pieces WHERE session = ?')
    this.#dataVersion = database.prepare('PRAGMA data_version')
    this.#last = database.prepare(
      `SELECT place - (:key << 32) AS n, line FROM lines WHERE place >= (:key << 32) AND place < (:key + 1) << 32
       ORDER BY place DESC LIMIT 1`,
    )
  }

  lock(id: string, by: { readonly create: boolean; readonly owner: string; readonly leaseMs: number }): Lock {
    return immediately(this.database, () => {
      const now = Date.now()
      if (by.create)
        this.database
          .prepare(
            `INSERT INTO sessions (id, epoch, renewed_at, lease_ms, head, updated_at) VALUES (?, 0, ?, ?, '{}', ?)
             ON CONFLICT (id) DO NOTHING`,
          )
          .run(id, now, by.leaseMs, now)
      const row = this.#row(id)
      if (row === undefined) throw sessionUnknown(id)
      checkUnlocked(row)
      const epoch = row.epoch + 1
      if (!Number.isSafeInteger(epoch)) throw sessionCorrupt(id, `its lock number ${row.epoch} is the last one`)
      const head = readHead(id, row.head) // first, so that a damaged session is not changed
      const length = this.#length(row)
      this.database
        .prepare('UPDATE sessions SET epoch = ?, owner = ?, renewed_at = ?, lease_ms = ? WHERE key = ?')
        .run(epoch, by.owner, now, by.leaseMs, row.key)
      const stop = this.#stops.take(row, isOpenStatus(row.status))
      return { key: row.key, epoch, head, length, stop, listed: undefined }
    })
  }

  /** False if another process has taken over the lock. */
  append(lock: Lock, next: number, batch: Batch): boolean {
    const { key, epoch } = lock
    const { head, pieces, startsTurn } = batch
    const now = Date.now()
    const insert = ({ first, text }: AppendedRow): boolean =>
      this.#insert.run(next + first, now, text, key, epoch).changes === 1
    const rows = toRows(batch.lines)
    const isOneRow = head === undefined && rows.length === 1 && pieces.length === 0 && !startsTurn
    if (isOneRow) return insert(rows[0]!) // a statement is a transaction
    this.#begin.run()
    try {
      // Each of these statements checks the lock, so it is read on its own only for pieces without a line.
      const mayAppend = head === undefined ? rows.length > 0 || this.#isOwn(lock) : this.#setHead(lock, head, now)
      const isOwn = mayAppend && rows.every(insert)
      if (isOwn) {
        if (startsTurn) this.#deletePieces.run(key)
        for (const { seq, text } of pieces) this.#insertPiece.run(key, seq, text)
        if (batch.endsRun) this.#stops.delete(key)
      }
      this.#commit.run()
      return isOwn
    } catch (error) {
      if (this.database.isTransaction) this.database.exec('ROLLBACK')
      throw error
    }
  }

  #isOwn({ key, epoch }: Lock): boolean {
    return this.#epoch.get(key)?.['epoch'] === epoch
  }

  #setHead(lock: Lock, { text, facets }: HeadToStore, now: number): boolean {
    const { key, epoch, listed } = lock
    const isListed =
      listed !== undefined &&
      Math.abs(now - listed.at) < LISTED_MS &&
      listed.facets.status === facets.status &&
      listed.facets.agent === facets.agent &&
      listed.facets.user === facets.user
    if (isListed) return this.#updateHead.run(text, key, epoch).changes === 1
    lock.listed = { facets, at: now }
    const { status, agent, user } = facets
    return this.#update.run(text, now, status, agent, user, key, epoch).changes === 1
  }

  renew({ key, epoch }: Lock): void {
    this.database.prepare('UPDATE sessions SET renewed_at = ? WHERE key = ? AND epoch = ?').run(Date.now(), key, epoch)
  }

  unlock({ key, epoch }: Lock, wasWritten: boolean): void {
    // Appends of lines alone do not update the session, so that they write one page only.
    this.database
      .prepare('UPDATE sessions SET owner = NULL, updated_at = iif(?, ?, updated_at) WHERE key = ? AND epoch = ?')
      .run(wasWritten ? 1 : 0, Date.now(), key, epoch)
  }

  read(id: string, options: ReadOptions): StoredSession | undefined {
    return this.#snapshot(() => {
      const row = this.#row(id)
      if (row === undefined) return undefined
      const part = { head: readHead(id, row.head), lines: this.#lines(row, options) }
      return options.pieces === undefined ? part : { ...part, ...this.#pieces(row, options.pieces) }
    })
  }

  #pieces({ key }: Row, { after, before }: NonNullable<ReadOptions['pieces']>): Pick<StoredSession, 'key' | 'pieces'> {
    const [first, end] = [after, before].map((seq) => Math.min(seq, Number.MAX_SAFE_INTEGER))
    const rows = this.#selectPieces.all(key, first!, end!) as unknown as readonly Piece[]
    return { key: String(key), pieces: rows.map(({ seq, text }) => ({ seq, text })) }
  }

  list({
    after,
    limit,
    ...filter
  }: SessionFilter & {
    readonly after: Position | undefined
    readonly limit: number | undefined
  }): readonly ListedSession[] {
    const { conditions: filters, values } = conditionsOf(filter)
    const conditions = [
      ...filters,
      ...(after === undefined ? [] : ['(updated_at < :at OR (updated_at = :at AND id > :id))']),
    ]
    // As REAL, because an integer that is too large for JavaScript would make the query fail for all sessions.
    const text = `SELECT id, head, owner, CAST(renewed_at AS REAL) AS renewed_at, CAST(lease_ms AS REAL) AS lease_ms,
      CAST(updated_at AS REAL) AS updated_at,
      (SELECT request FROM stops WHERE session = key AND stops.epoch = sessions.epoch) AS stop FROM sessions
      ${conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`} ORDER BY sessions.updated_at DESC, id LIMIT :limit`
    const rows = this.database.prepare(text).all({
      ...values,
      ...(after !== undefined && { at: after.updatedAt, id: after.id }),
      limit: limit ?? -1,
    }) as unknown as readonly (Row & { readonly stop: string | null })[]
    return rows.map(({ id, head, updated_at: updatedAt, stop, ...row }) => {
      const lock = hasOwner(row) ? toSessionLock(parseLockOwner(row.owner)) : undefined
      return listedSession({ id, head, updatedAt, lock, stop })
    })
  }

  count(filter: SessionFilter): number {
    const { conditions, values } = conditionsOf(filter)
    const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
    return Number(this.database.prepare(`SELECT count(*) AS n FROM sessions ${where}`).get(values)!['n'])
  }

  /** The number of sessions that are locked. */
  locked(filter: SessionFilter): number {
    const { conditions, values } = conditionsOf(filter)
    const text = `SELECT owner, CAST(renewed_at AS REAL) AS renewed_at, CAST(lease_ms AS REAL) AS lease_ms FROM sessions
      WHERE ${['owner IS NOT NULL', ...conditions].join(' AND ')}`
    return (this.database.prepare(text).all(values) as unknown as readonly Row[]).filter(hasOwner).length
  }

  position(id: string): Position | undefined {
    const row = this.database.prepare('SELECT CAST(updated_at AS REAL) AS at FROM sessions WHERE id = ?').get(id)
    return row && { id, updatedAt: Number(row['at']) }
  }

  delete(id: string, before: number): boolean {
    return immediately(this.database, () => {
      const row = this.#row(id)
      if (row === undefined || row.updated_at >= before) return false
      checkUnlocked(row)
      const key = row.key
      this.database.prepare('DELETE FROM lines WHERE place >= ? << 32 AND place < (? + 1) << 32').run(key, key)
      this.#deletePieces.run(key)
      this.#stops.delete(key)
      this.database.prepare('DELETE FROM sessions WHERE key = ?').run(key)
      return true
    })
  }

  /** False if there is no run to stop. */
  requestStop(id: string, request: StopRequest): boolean {
    return immediately(this.database, () => {
      const row = this.#row(id)
      if (row === undefined || !(hasOwner(row) || isOpenStatus(row.status))) return false
      this.#stops.add(row, request)
      return true
    })
  }

  stops(): ReadonlyMap<string, StopRequest> {
    return this.#stops.read()
  }

  update(name: string, change: ValueChange): Json {
    return immediately(this.database, () => {
      const found = this.database.prepare('SELECT value FROM shared WHERE name = ?').get(name)
      const { text, value } = changedText(found && String(found['value']), change)
      this.database.prepare('INSERT OR REPLACE INTO shared (name, value) VALUES (?, ?)').run(name, text)
      return value
    })
  }

  #row(id: string): Row | undefined {
    return this.#find.get(id) as Row | undefined
  }

  /** The lines after a number, from the row that has the first of them. */
  #lines({ id, key }: Row, { after = -1, before = MAX_LINES }: ReadOptions): readonly string[] {
    if (after === Infinity) return []
    const rows = this.#select.all({ key, number: after + 1, before }) as { n: number; line: string }[]
    const first = rows[0]?.n ?? 0
    const lines: string[] = []
    if (first > after + 1) throw sessionCorrupt(id, `its line ${after + 2} is missing`)
    for (const { n, line: text } of rows) {
      if (n !== first + lines.length || typeof text !== 'string')
        throw sessionCorrupt(id, `its line ${first + lines.length + 1} is missing`)
      for (const line of text.split('\n')) lines.push(line)
    }
    return lines.slice(Math.max(0, after + 1 - first), before - first)
  }

  #length({ key }: Row): number {
    const last = this.#last.get({ key }) as { n: number; line: string } | undefined
    return last === undefined ? 0 : last.n + last.line.split('\n').length
  }

  /** Whether another connection has committed something since the last call. */
  hasForeignChanges(): boolean {
    const version = this.#dataVersion.get()?.['data_version']
    const isChanged = version !== this.#lastDataVersion
    this.#lastDataVersion = version
    return isChanged
  }

  /** Several queries that see the same state of the database. */
  #snapshot<T>(work: () => T): T {
    this.database.exec('BEGIN')
    try {
      return work()
    } finally {
      this.database.exec('COMMIT')
    }
  }
}

/** What a filter means for a query, with the values to bind. */
function conditionsOf(filter: SessionFilter): { readonly conditions: readonly string[]; readonly values: Values } {
  const { agent, user } = filter
  const statuses = storedStatuses(filter)
  return {
    conditions: [
      ...(agent === undefined ? [] : ['agent = :agent']),
      ...(user === undefined ? [] : ['user = :user']),
      ...(statuses === undefined ? [] : ['status IN (SELECT value FROM json_each(:statuses))']),
    ],
    values: {
      ...(agent !== undefined && { agent }),
      ...(user !== undefined && { user }),
      ...(statuses !== undefined && { statuses: JSON.stringify(statuses) }),
    },
  }
}

type Values = { readonly [name: string]: string }

type AppendedRow = { readonly first: number; text: string }

/** Each row has one or more lines, and the number of the first of them. */
function toRows(lines: readonly string[]): readonly AppendedRow[] {
  const rows: AppendedRow[] = []
  for (let i = 0; i < lines.length; i++) {
    const [line, last] = [lines[i]!, rows.at(-1)]
    if (last === undefined || last.text.length + line.length > ROW_CHARACTERS) rows.push({ first: i, text: line })
    else last.text += `\n${line}`
  }
  return rows
}

function checkUnlocked(row: Row): void {
  if (hasOwner(row)) throw sessionBusy(row.id, describeLockOwner(parseLockOwner(row.owner)))
}

/** Whether a process has the session locked. */
function hasOwner(row: Pick<Row, 'owner' | 'renewed_at' | 'lease_ms'>): boolean {
  if (row.owner === null) return false
  return isLocked({ owner: parseLockOwner(row.owner), renewedAt: row.renewed_at, leaseMs: toLease(row.lease_ms) })
}

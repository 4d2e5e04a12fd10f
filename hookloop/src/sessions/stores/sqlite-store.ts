import type { DatabaseSync } from 'node:sqlite'
import { AgentError } from '../../errors.ts'
import {
  checkLease,
  describeLockOwner,
  isLocked,
  renewLease,
  newLockOwner,
  parseLockOwner,
  toLease,
} from './lock-owner.ts'
import { immediately, openDatabase, sqliteFailed } from './sqlite-database.ts'
import {
  checkLines,
  checkSessionId,
  headText,
  readHead,
  sessionBusy,
  sessionCorrupt,
  sessionFenced,
  sessionReleased,
  sessionUnknown,
  storeFailed,
  type ListedSession,
  type SessionStore,
  type SessionWriter,
} from './store.ts'

export type SqliteStoreOptions = {
  /** `full` waits for the disk, and survives a loss of power; `normal` survives the death of the process. */
  readonly durability?: 'normal' | 'full'
  /** How long a writer that cannot be looked at may be silent before its session is taken over. 30 seconds. */
  readonly leaseMs?: number
}

/** Sessions in one SQLite database, for the processes of one machine. SQLite is loaded and the file opened when needed. */
export function sqliteStore(path: string, options: SqliteStoreOptions = {}): SessionStore {
  const leaseMs = checkLease(options.leaseMs)
  if (path === '' || path.startsWith(':'))
    throw new AgentError('AGENT_INVALID_OPTION', 'sqliteStore needs the path of a file. In memory: memoryStore().', {
      value: path,
    })
  const file = process.getBuiltinModule('node:path').resolve(path)
  const open = new Set<SessionWriter>()
  let tables: Tables | undefined
  let closed = false
  const work = <T>(run: (tables: Tables) => T): T => {
    try {
      if (closed) throw storeFailed(`The store ${file} cannot be used`, 'it was closed')
      return run((tables ??= new Tables(openDatabase(file, options.durability ?? 'normal'))))
    } catch (error) {
      throw sqliteFailed(file, error)
    }
  }
  return {
    async open(id, { create = false } = {}) {
      checkSessionId(id)
      const owner = JSON.stringify(newLockOwner())
      const lock = work((tables) => tables.lock(id, { create, owner, leaseMs }))
      const writer = sqliteWriter({ id, lock, leaseMs, work, onRelease: () => void open.delete(writer) })
      open.add(writer)
      return writer
    },
    async read(id) {
      checkSessionId(id)
      return work((tables) => tables.read(id))
    },
    async list() {
      return work((tables) => tables.list())
    },
    async delete(id) {
      checkSessionId(id)
      work((tables) => tables.delete(id))
    },
    async close() {
      for (const writer of open) await writer.release()
      tables?.database.close()
      tables = undefined
      closed = true
    },
  }
}

type SessionLock = { readonly key: number; readonly epoch: number; readonly lines: readonly string[] }

function sqliteWriter(of: {
  readonly id: string
  readonly lock: SessionLock
  readonly leaseMs: number
  readonly work: <T>(run: (tables: Tables) => T) => T
  readonly onRelease: () => void
}): SessionWriter {
  const { id, lock, work } = of
  let released = false
  let next = lock.lines.length
  const stop = renewLease(of.leaseMs, () => {
    try {
      work((tables) => tables.renew(lock))
    } catch {
      // The lease runs out, and whoever takes the session over fences this writer.
    }
  })
  return {
    lines: lock.lines,
    append(lines, head) {
      if (released) throw sessionReleased(id)
      checkLines(lines)
      const text = head === undefined ? undefined : headText(head)
      if (!work((tables) => tables.append(lock, { next, lines, head: text }))) throw sessionFenced(id)
      next += lines.length
    },
    async release() {
      if (released) return
      released = true
      stop()
      of.onRelease()
      work((tables) => tables.release(lock))
    },
  }
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
}

/** What is appended at once is one row, unless it is longer than this: then several, so that none grows without limit. */
const ROW_CHARACTERS = 32_768

/** Every query there is; what comes from outside is bound, never part of one. */
class Tables {
  readonly database: DatabaseSync
  readonly #find
  readonly #insert
  readonly #update

  constructor(database: DatabaseSync) {
    this.database = database
    this.#find = database.prepare('SELECT * FROM sessions WHERE id = ?')
    // A transaction of its own: nothing is inserted unless the session still has this epoch.
    this.#insert = database.prepare(
      `INSERT INTO lines (place, at, line)
       SELECT (key << 32) + CAST(?3 AS INTEGER), ?4, ?5 FROM sessions WHERE key = ?1 AND epoch = ?2`,
    )
    this.#update = database.prepare(
      'UPDATE sessions SET head = coalesce(?, head), updated_at = ? WHERE key = ? AND epoch = ?',
    )
  }

  lock(id: string, by: { readonly create: boolean; readonly owner: string; readonly leaseMs: number }): SessionLock {
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
      checkFree(row)
      const epoch = row.epoch + 1
      if (!Number.isSafeInteger(epoch)) throw sessionCorrupt(id, `nobody can come after writer ${row.epoch}`)
      const lines = this.#lines(row) // before anything is changed, so that one that is damaged is left as it is
      this.database
        .prepare('UPDATE sessions SET epoch = ?, owner = ?, renewed_at = ?, lease_ms = ? WHERE key = ?')
        .run(epoch, by.owner, now, by.leaseMs, row.key)
      return { key: row.key, epoch, lines }
    })
  }

  /** False if the session is no longer the writer's. */
  append(
    { key, epoch }: SessionLock,
    what: { readonly next: number; readonly lines: readonly string[]; readonly head: string | undefined },
  ): boolean {
    const { next, lines, head } = what
    const now = Date.now()
    const insert = ({ first, text }: AppendedRow): boolean =>
      this.#insert.run(key, epoch, next + first, now, text).changes === 1
    const rows = toRows(lines)
    if (head === undefined && rows.length === 0) return true
    if (head === undefined && rows.length === 1) return insert(rows[0]!)
    return immediately(
      this.database,
      () => this.#update.run(head ?? null, now, key, epoch).changes === 1 && rows.every(insert),
    )
  }

  renew({ key, epoch }: SessionLock): void {
    this.database.prepare('UPDATE sessions SET renewed_at = ? WHERE key = ? AND epoch = ?').run(Date.now(), key, epoch)
  }

  release({ key, epoch }: SessionLock): void {
    this.database.prepare('UPDATE sessions SET owner = NULL WHERE key = ? AND epoch = ?').run(key, epoch)
  }

  read(id: string): { readonly head: ReturnType<typeof readHead>; readonly lines: readonly string[] } | undefined {
    return this.#steadily(() => {
      const row = this.#row(id)
      return row && { head: readHead(id, row.head), lines: this.#lines(row) }
    })
  }

  list(): readonly ListedSession[] {
    // As floating point numbers, because one that is too large would hide all other sessions.
    const rows = this.database
      .prepare(
        `SELECT id, head, CAST(max(updated_at, coalesce((
           SELECT at FROM lines WHERE place >= key << 32 AND place < (key + 1) << 32 ORDER BY place DESC LIMIT 1
         ), 0)) AS REAL) AS updated_at FROM sessions`,
      )
      .all() as unknown as readonly Row[]
    return rows
      .map((row) => ({ id: row.id, updatedAt: row.updated_at, ...headOrProblem(row) }))
      .toSorted((a, b) => b.updatedAt - a.updatedAt)
  }

  delete(id: string): void {
    immediately(this.database, () => {
      const row = this.#row(id)
      if (row === undefined) return
      checkFree(row)
      const key = row.key
      this.database.prepare('DELETE FROM lines WHERE place >= ? << 32 AND place < (? + 1) << 32').run(key, key)
      this.database.prepare('DELETE FROM sessions WHERE key = ?').run(key)
    })
  }

  #row(id: string): Row | undefined {
    return this.#find.get(id) as Row | undefined
  }

  #lines({ id, key }: Row): readonly string[] {
    const rows = this.database
      .prepare(
        'SELECT place - (? << 32) AS n, line FROM lines WHERE place >= ? << 32 AND place < (? + 1) << 32 ORDER BY place',
      )
      .all(key, key, key) as { n: number; line: string }[]
    const lines: string[] = []
    for (const { n, line: text } of rows) {
      if (n !== lines.length || typeof text !== 'string')
        throw sessionCorrupt(id, `its line ${lines.length + 1} is missing`)
      for (const line of text.split('\n')) lines.push(line)
    }
    return lines
  }

  /** Several queries that see the same moment. */
  #steadily<T>(work: () => T): T {
    this.database.exec('BEGIN')
    try {
      return work()
    } finally {
      this.database.exec('COMMIT')
    }
  }
}

type AppendedRow = { readonly first: number; text: string }

/** Lines as rows: each has one or more of them, and its place is that of the first. */
function toRows(lines: readonly string[]): readonly AppendedRow[] {
  const rows: AppendedRow[] = []
  for (let i = 0; i < lines.length; i++) {
    const [line, last] = [lines[i]!, rows.at(-1)]
    if (last === undefined || last.text.length + line.length > ROW_CHARACTERS) rows.push({ first: i, text: line })
    else last.text += `\n${line}`
  }
  return rows
}

function checkFree(row: Row): void {
  if (row.owner === null) return
  const owner = parseLockOwner(row.owner)
  if (isLocked({ owner, renewedAt: row.renewed_at, leaseMs: toLease(row.lease_ms) }))
    throw sessionBusy(row.id, describeLockOwner(owner))
}

function headOrProblem(row: Row): Pick<ListedSession, 'head' | 'problem'> {
  try {
    return { head: readHead(row.id, row.head) }
  } catch (error) {
    return { head: {}, problem: (error as AgentError).message }
  }
}

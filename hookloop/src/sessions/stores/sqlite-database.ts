import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { AgentError, messageOf } from '../../errors.ts'
import type { Sql } from './sql.ts'
import { otherVersion, storeFailed } from './store.ts'

/** The value of `PRAGMA user_version`: the version of the tables. */
const VERSION = 7
/** The value of `PRAGMA application_id`, "Hkl1" in ASCII: it distinguishes a session store from other databases. */
const APPLICATION = 0x486b6c31
const BUSY_TIMEOUT_MS = 5_000
/** Of a new file. An append writes a whole page: with pages of 8 KB it takes longer. */
const PAGE_BYTES = 4_096
/** About 8 MB, twice the default: checkpoints wait for the disk, so they should be rare. */
const CHECKPOINT_PAGES = 2_000
const [BUSY, CORRUPT, NOT_A_DATABASE] = [5, 11, 26]

// Rowids of lines are in reading order, and an append writes to the end of one page.
const TABLES = `
  CREATE TABLE sessions (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    epoch INTEGER NOT NULL DEFAULT 0,
    owner TEXT,
    locked_at REAL NOT NULL DEFAULT 0,
    expires_at REAL NOT NULL DEFAULT 0,
    head TEXT NOT NULL DEFAULT '{}',
    length INTEGER NOT NULL DEFAULT 0,
    updated_at REAL NOT NULL,
    status TEXT,
    agent TEXT,
    user_name TEXT,
    stop TEXT
  ) STRICT;
  CREATE INDEX sessions_by_time ON sessions (updated_at DESC, id);
  CREATE INDEX sessions_by_status ON sessions (status, updated_at DESC, id);
  CREATE INDEX sessions_by_agent ON sessions (agent, updated_at DESC, id);
  CREATE INDEX sessions_by_user ON sessions (user_name, updated_at DESC, id);
  CREATE TABLE lines (
    session INTEGER NOT NULL,
    n INTEGER NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (session, n)
  ) STRICT;
  CREATE TABLE pieces (
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (session, seq)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE shared (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
  ) STRICT;
  PRAGMA application_id = ${APPLICATION};
  PRAGMA user_version = ${VERSION};
`

/** Opens a database file, or creates it readable by its owner only. A file that is rejected is not changed. */
export function openDatabase(path: string, durability: 'normal' | 'full'): SqliteDatabase {
  const { DatabaseSync } = loadSqlite()
  makeFile(path)
  const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS })
  try {
    database.exec('PRAGMA trusted_schema = OFF')
    retryWhileBusy(() => prepare(database, path))
    database.exec(`PRAGMA synchronous = ${durability === 'full' ? 'FULL' : 'NORMAL'}`)
    database.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`)
    return new SqliteDatabase(path, database)
  } catch (error) {
    database.close()
    throw error
  }
}

/** An open database file. */
export class SqliteDatabase {
  readonly #path: string
  readonly #file: number
  readonly #database: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()

  constructor(path: string, database: DatabaseSync) {
    this.#path = path
    this.#database = database
    this.#file = inodeOf(path)!
  }

  /** SQLite itself does not notice that its file is gone: it continues with one that no other process finds. */
  checkFile(): void {
    const found = inodeOf(this.#path)
    if (found === this.#file) return
    const what = found === undefined ? 'deleted or moved' : 'replaced by another file'
    throw storeFailed(`The store ${this.#path} cannot be used`, `it was ${what} while it was in use`)
  }

  query({ text, values }: Sql): readonly unknown[] {
    return this.#prepared(text).all(...values)
  }

  queryAll(first: Sql, others: readonly Sql[]): readonly unknown[] {
    if (others.length === 0) return this.query(first)
    return inTransaction(this.#database, 'IMMEDIATE', () => {
      const rows = this.query(first) as readonly { readonly key: number }[]
      for (const { key } of rows)
        for (const { text, values } of others)
          this.#prepared(`WITH owned AS (SELECT CAST(? AS integer) AS key) ${text}`).run(key, ...values)
      return rows
    })
  }

  #prepared(text: string): StatementSync {
    const known = this.#statements.get(text)
    if (known !== undefined) return known
    if (this.#statements.size > MAX_STATEMENTS) this.#statements.clear()
    const statement = this.#database.prepare(text)
    this.#statements.set(text, statement)
    return statement
  }

  close(): void {
    this.#database.close()
  }
}

/** Texts differ by the number of values in them. */
const MAX_STATEMENTS = 200

function inodeOf(path: string): number | undefined {
  return process.getBuiltinModule('node:fs').lstatSync(path, { throwIfNoEntry: false })?.ino
}

/** Creates the tables in an empty file. */
function prepare(database: DatabaseSync, path: string): void {
  const isEmpty = inTransaction(database, 'DEFERRED', () => checkDatabase(database, path))
  if (isEmpty) database.exec(`PRAGMA page_size = ${PAGE_BYTES}`)
  if (pragma(database, 'journal_mode') !== 'wal') database.exec('PRAGMA journal_mode = WAL')
  if (!isEmpty) return
  inTransaction(database, 'IMMEDIATE', () => {
    if (checkDatabase(database, path)) database.exec(TABLES) // another process may have done so since
  })
}

export function isBusy(error: unknown): boolean {
  return (((error as { errcode?: number } | undefined)?.errcode ?? 0) & 0xff) === BUSY
}

/** SQLite itself waits for other processes, except when the journal mode of a new file is changed. */
function retryWhileBusy(work: () => void): void {
  for (const end = performance.now() + BUSY_TIMEOUT_MS; ;) {
    try {
      return work()
    } catch (error) {
      if (!isBusy(error) || performance.now() > end) throw error
      Atomics.wait(pause, 0, 0, 5 + Math.random() * 20)
    }
  }
}

const pause = new Int32Array(new SharedArrayBuffer(4))

/** `IMMEDIATE` takes the write lock first, so that what is read stays true until the commit. */
function inTransaction<T>(database: DatabaseSync, kind: 'IMMEDIATE' | 'DEFERRED', work: () => T): T {
  database.exec(`BEGIN ${kind}`)
  try {
    const result = work()
    database.exec('COMMIT')
    return result
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}

export function sqliteFailed(path: string, thrown: unknown): AgentError {
  if (thrown instanceof AgentError) return thrown
  const code = (thrown as { errcode?: number } | undefined)?.errcode ?? 0
  const isTooLarge = thrown instanceof RangeError // an integer that we never write
  if (isTooLarge || [CORRUPT, NOT_A_DATABASE].includes(code & 0xff)) return damaged(path, messageOf(thrown), thrown)
  return storeFailed(`The store ${path} cannot be read or written`, thrown)
}

/** Whether the database is empty. Throws if it is not a session store, or of another version. */
function checkDatabase(database: DatabaseSync, path: string): boolean {
  const version = Number(pragma(database, 'user_version'))
  const application = pragma(database, 'application_id')
  const found = database.prepare('SELECT type, name FROM sqlite_schema').all() as { type: string; name: string }[]
  if (found.length === 0 && application === 0 && version === 0) return true
  if (application !== APPLICATION) throw damaged(path, 'it is not a session store')
  if (version !== VERSION) throw otherVersion(path, version, VERSION)
  const tables = found.filter(({ type }) => type === 'table').map(({ name }) => name)
  if (!['sessions', 'lines', 'pieces', 'shared'].every((name) => tables.includes(name)))
    throw damaged(path, 'its tables are missing')
  // They would run with each of our statements.
  if (found.some(({ type }) => type === 'trigger' || type === 'view'))
    throw damaged(path, 'it has triggers or views, which a session store does not have')
  return false
}

function damaged(path: string, why: string, cause?: unknown): AgentError {
  return new AgentError('SESSION_CORRUPT', `The store ${path} cannot be used: ${why}. It was not changed.`, {
    value: path,
    ...(cause !== undefined && { cause }),
  })
}

/** SQLite would create the file readable for everyone. Its journal files get the mode of the file. */
export function makeFile(path: string): void {
  const fs = process.getBuiltinModule('node:fs')
  const found = fs.lstatSync(path, { throwIfNoEntry: false })
  if (found?.isFile()) return
  if (found !== undefined) throw new AgentError('STORE_FAILED', `${path} is not a file.`, { value: path })
  fs.mkdirSync(process.getBuiltinModule('node:path').dirname(path), { recursive: true, mode: 0o700 })
  fs.closeSync(fs.openSync(path, 'a', 0o600))
}

/** Suppresses the warning that SQLite is experimental, which older versions of Node write to stderr. */
export function loadSqlite(): typeof import('node:sqlite') {
  const emitWarning = Object.getOwnPropertyDescriptor(process, 'emitWarning')
  process.emitWarning = () => undefined
  try {
    const sqlite = process.getBuiltinModule('node:sqlite') as typeof import('node:sqlite') | undefined
    if (sqlite !== undefined) return sqlite
  } finally {
    if (emitWarning !== undefined) Object.defineProperty(process, 'emitWarning', emitWarning)
  }
  throw new AgentError(
    'STORE_FAILED',
    'This runtime has no module node:sqlite. Use Node.js 22.18 or Bun 1.4.4, or a later version.',
  )
}

function pragma(database: DatabaseSync, name: string): unknown {
  return database.prepare(`PRAGMA ${name}`).get()?.[name]
}

import type { DatabaseSync } from 'node:sqlite'
import { AgentError, messageOf } from '../../errors.ts'
import { sessionTooNew, sessionTooOld, storeFailed } from './store.ts'

/** The value of `PRAGMA user_version`: the version of the tables. */
const VERSION = 6
/** The value of `PRAGMA application_id`, "Hkl1" in ASCII: it distinguishes a session store from other databases. */
const APPLICATION = 0x486b6c31
const BUSY_TIMEOUT_MS = 5_000
/** Of a new file. An append writes a whole page: with pages of 8 KB it takes longer. */
const PAGE_BYTES = 4_096
/** About 8 MB, twice the default: checkpoints wait for the disk, so they should be rare. */
const CHECKPOINT_PAGES = 2_000
const [BUSY, CORRUPT, NOT_A_DATABASE] = [5, 11, 26]

// A row has the lines of one append, separated by newlines. Its place is the key of the session, shifted by 32 bits, plus the
// number of its first line: one B-tree in reading order, and an append touches a single page of it. Keys are never reused, so
// a writer whose session was deleted finds no row.
const TABLES = `
  CREATE TABLE sessions (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    epoch INTEGER NOT NULL,
    owner TEXT,
    renewed_at INTEGER NOT NULL,
    lease_ms INTEGER NOT NULL,
    head TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    status TEXT,
    agent TEXT,
    user TEXT
  ) STRICT;
  CREATE INDEX sessions_by_time ON sessions (updated_at DESC, id);
  CREATE INDEX sessions_by_status ON sessions (status, updated_at DESC, id);
  CREATE INDEX sessions_by_agent ON sessions (agent, updated_at DESC, id);
  CREATE INDEX sessions_by_user ON sessions (user, updated_at DESC, id);
  CREATE TABLE lines (
    place INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    line TEXT NOT NULL
  ) STRICT;
  CREATE TABLE pieces (
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (session, seq)
  ) WITHOUT ROWID;
  CREATE TABLE stops (
    session INTEGER PRIMARY KEY,
    epoch INTEGER NOT NULL,
    request TEXT NOT NULL
  ) STRICT;
  CREATE TABLE shared (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
  ) STRICT;
  PRAGMA application_id = ${APPLICATION};
  PRAGMA user_version = ${VERSION};
`

/** Opens a database file, or creates it readable by its owner only. A file that is rejected is not changed. */
export function openDatabase(path: string, durability: 'normal' | 'full'): DatabaseSync {
  const { DatabaseSync } = loadSqlite()
  makeFile(path)
  const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS })
  try {
    database.exec('PRAGMA trusted_schema = OFF')
    retryWhileBusy(() => prepare(database, path))
    database.exec(`PRAGMA synchronous = ${durability === 'full' ? 'FULL' : 'NORMAL'}`)
    database.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`)
    return database
  } catch (error) {
    database.close()
    throw sqliteFailed(path, error)
  }
}

/**
 * Returns a check that throws STORE_FAILED if a file of the database was deleted, replaced or truncated since. SQLite itself
 * does not notice: it continues with files that no other process finds.
 */
export function watchDatabase(path: string): () => void {
  const fs = process.getBuiltinModule('node:fs')
  const files = [path, `${path}-wal`].map((name) => ({
    name,
    ino: fs.lstatSync(name, { throwIfNoEntry: false })?.ino,
    size: 0,
  }))
  const isCutOff = watchLog(path)
  return () => {
    for (const file of files) {
      const found = fs.lstatSync(file.name, { throwIfNoEntry: false })
      file.ino ??= found?.ino // the log is created with the first write
      if (file.ino === undefined) continue
      const isShorter = (found?.size ?? 0) < file.size && (file.name === path || isCutOff(found?.size ?? 0))
      if (found?.ino === file.ino && !isShorter) {
        file.size = found.size
        continue
      }
      const what = found === undefined ? 'deleted or moved' : isShorter ? 'truncated' : 'replaced by another file'
      throw new AgentError(
        'STORE_FAILED',
        `The store ${path} cannot be used: ${file.name} was ${what} while it was in use.`,
        {
          value: file.name,
        },
      )
    }
  }
}

/**
 * Returns a check whether the log has less than SQLite has written to it, by the number of frames in its index. A checkpoint, also
 * of a program for backups, empties the log and sets the number to 0.
 */
function watchLog(path: string): (size: number) => boolean {
  const fs = process.getBuiltinModule('node:fs')
  const header = new DataView(new ArrayBuffer(INDEX_HEADER_BYTES))
  let index: OpenIndex | undefined
  return (size) => {
    try {
      if (index?.descriptor === undefined) index = openIndex(`${path}-shm`)
      fs.readSync(index.descriptor!, header, 0, INDEX_HEADER_BYTES, 0)
    } catch {
      return false // without an index SQLite reads the log again
    }
    const isLittleEndian = process.getBuiltinModule('node:os').endianness() === 'LE'
    const [pageBytes, frames] = [header.getUint16(14, isLittleEndian), header.getUint32(16, isLittleEndian)]
    return frames > 0 && size < LOG_HEADER_BYTES + frames * (FRAME_HEADER_BYTES + pageBytes)
  }
}

type OpenIndex = { descriptor: number | undefined }
const openIndexes = new Set<OpenIndex>()

/**
 * Opens the index of a log. It stays open: to close it would release the locks that SQLite has on it in this process, and other
 * processes would make a new one while it is in use. SQLite deletes it with the last connection, and then it can be closed.
 */
function openIndex(file: string): OpenIndex {
  const fs = process.getBuiltinModule('node:fs')
  for (const each of openIndexes) {
    if (fs.fstatSync(each.descriptor!).nlink > 0) continue
    openIndexes.delete(each)
    fs.closeSync(each.descriptor!)
    each.descriptor = undefined
  }
  const index = { descriptor: fs.openSync(file, 'r') }
  openIndexes.add(index)
  return index
}

const INDEX_HEADER_BYTES = 48
const [LOG_HEADER_BYTES, FRAME_HEADER_BYTES] = [32, 24]

/** Creates the tables in an empty file. */
function prepare(database: DatabaseSync, path: string): void {
  const isEmpty = inTransaction(database, 'DEFERRED', () => checkDatabase(database, path))
  if (isEmpty) database.exec(`PRAGMA page_size = ${PAGE_BYTES}`)
  if (pragma(database, 'journal_mode') !== 'wal') database.exec('PRAGMA journal_mode = WAL')
  if (!isEmpty) return
  immediately(database, () => {
    if (checkDatabase(database, path)) database.exec(TABLES) // another process may have done so since
  })
}

/**
 * Locks a file for this process and returns a function that unlocks it; undefined if another process has locked it for all of
 * the time. SQLite locks it, and nothing is written to it. A process that is stopped keeps its lock, and one that ends loses it.
 */
export function lockFile(path: string, timeoutMs: number): (() => void) | undefined {
  const { DatabaseSync } = loadSqlite()
  makeFile(path)
  const database = new DatabaseSync(path, { timeout: timeoutMs })
  try {
    database.exec('BEGIN IMMEDIATE')
    return () => database.close()
  } catch (error) {
    database.close()
    if (isBusy(error)) return undefined
    throw error
  }
}

function isBusy(error: unknown): boolean {
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

/** A transaction that takes the write lock first, so that what it reads stays true until it commits. */
export function immediately<T>(database: DatabaseSync, work: () => T): T {
  return inTransaction(database, 'IMMEDIATE', work)
}

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

/** The version of the tables, 0 if the database is empty. Throws if it is not a session store, or of another version. */
function checkDatabase(database: DatabaseSync, path: string): boolean {
  const version = pragma(database, 'user_version')
  const application = pragma(database, 'application_id')
  if (application === APPLICATION && typeof version === 'number' && version > VERSION)
    throw sessionTooNew(path, version, VERSION)
  const found = database.prepare('SELECT type, name FROM sqlite_schema').all() as { type: string; name: string }[]
  if (found.length === 0 && application === 0 && version === 0) return true
  if (application !== APPLICATION) throw damaged(path, 'it is not a session store')
  if (version !== VERSION) throw sessionTooOld(path, version, VERSION)
  const tables = found.filter(({ type }) => type === 'table').map(({ name }) => name)
  if (!['sessions', 'lines', 'pieces', 'stops', 'shared'].every((name) => tables.includes(name)))
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
function makeFile(path: string): void {
  const fs = process.getBuiltinModule('node:fs')
  const found = fs.lstatSync(path, { throwIfNoEntry: false })
  if (found?.isFile()) return
  if (found !== undefined) throw new AgentError('STORE_FAILED', `${path} is not a file.`, { value: path })
  fs.mkdirSync(process.getBuiltinModule('node:path').dirname(path), { recursive: true, mode: 0o700 })
  fs.closeSync(fs.openSync(path, 'a', 0o600))
}

/** Suppresses the warning that SQLite is experimental, which older versions of Node write to stderr. */
function loadSqlite(): typeof import('node:sqlite') {
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

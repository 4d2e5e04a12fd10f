import { checkChoice, checkOptions } from '../../values/check-options.ts'
import { AgentError } from '../../errors.ts'
import { checkLease } from './lock-owner.ts'
import { openDatabase, sqliteFailed, type SqliteDatabase } from './sqlite-database.ts'
import { sql } from './sql.ts'
import { sqlStore } from './sql-store.ts'
import type { SessionStore } from './store.ts'

/** Options of `sqliteStore`. */
export type SqliteStoreOptions = {
  /** `full` waits for the disk and survives a power loss; `normal` survives a crash of the process. Default `normal`. */
  readonly durability?: 'normal' | 'full'
  /** How long a lock stays in force after its owner last renewed it, if the owner cannot be checked. Default 30,000. */
  readonly leaseMs?: number
}

const names = {
  sessions: sql`sessions`,
  lines: sql`lines`,
  pieces: sql`pieces`,
  shared: sql`shared`,
  now: sql`round(unixepoch('subsec') * 1000)`,
}

/**
 * A session store in one SQLite database, for all processes of one machine. The database is opened with the first call;
 * it needs Node 22.18 or later and no package.
 *
 * @example
 * const store = sqliteStore('.hookloop/sessions.db')
 * const agent = createAgent({ model, store })
 * await agent.run('Hello.', { session: 'chat-1' })
 */
export function sqliteStore(path: string, options: SqliteStoreOptions = {}): SessionStore {
  checkOptions('sqliteStore', options, ['durability', 'leaseMs'])
  const { durability = 'normal' } = options
  checkChoice('sqliteStore', 'durability', durability, ['normal', 'full'])
  if (path === '' || path.startsWith(':'))
    throw new AgentError('AGENT_INVALID_OPTION', 'sqliteStore needs a file path. For memory, use memoryStore().', {
      value: path,
    })
  const file = process.getBuiltinModule('node:path').resolve(path)
  let database: SqliteDatabase | undefined
  const run = <T>(work: (database: SqliteDatabase) => T): T => {
    try {
      database ??= openDatabase(file, durability)
      database.checkFile()
      return work(database)
    } catch (error) {
      throw sqliteFailed(file, error)
    }
  }
  return sqlStore(
    {
      names,
      pollMs: 10,
      query: (statement) => run((each) => each.query(statement)),
      queryAll: (first, others) => run((each) => each.queryAll(first, others)),
      close: () => database?.close(),
    },
    checkLease(options.leaseMs),
  )
}

import { checkArgument, checkChoice, checkOptions } from '../../state/check-options.ts'
import { AgentError } from '../../errors.ts'
import { checkLease, newLockOwner } from './lock-owner.ts'
import { countSessions, selectPage } from './list-sessions.ts'
import { OpenWriters } from './open-writers.ts'
import { openDatabase, sqliteFailed, watchDatabase } from './sqlite-database.ts'
import { Tables } from './sqlite-tables.ts'
import { StopListeners } from './stop-listeners.ts'
import { checkSessionId, checkStoreCall, sessionFenced, storeFailed, type SessionStore } from './store.ts'
import { pollEvery, SessionWatchers } from './session-watchers.ts'

/** How often a store with watchers checks whether another process has written. */
const POLL_MS = 10
/** How often a store with runs checks whether another process has requested to stop one. */
const STOP_POLL_MS = 250

/** Options of `sqliteStore`. */
export type SqliteStoreOptions = {
  /** `full` waits for the disk and survives a power loss; `normal` survives a crash of the process. Default `normal`. */
  readonly durability?: 'normal' | 'full'
  /** How long a lock stays in force after its owner last renewed it, if the owner cannot be checked. Default 30,000. */
  readonly leaseMs?: number
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
  checkArgument('sqliteStore', ['path', path], typeof path === 'string', 'the path of a file')
  checkChoice('sqliteStore', 'durability', options.durability ?? 'normal', ['normal', 'full'])
  const leaseMs = checkLease(options.leaseMs)
  if (path === '' || path.startsWith(':'))
    throw new AgentError('AGENT_INVALID_OPTION', 'sqliteStore needs a file path. For memory, use memoryStore().', {
      value: path,
    })
  const file = process.getBuiltinModule('node:path').resolve(path)
  let tables: Tables | undefined
  let watch: (() => void) | undefined
  let closed = false
  const query = <T>(run: (tables: Tables) => T): T => {
    try {
      if (closed) throw storeFailed(`The store ${file} cannot be used`, 'it was closed')
      tables ??= new Tables(openDatabase(file, options.durability ?? 'normal'))
      watch ??= watchDatabase(file)
      watch()
      return run(tables)
    } catch (error) {
      throw sqliteFailed(file, error)
    }
  }
  const poll = (): void => {
    try {
      if (query((each) => each.hasForeignChanges())) watchers.changed()
    } catch {
      watchers.changed() // their reads report what is wrong
    }
  }
  const watchers = new SessionWatchers(pollEvery(() => POLL_MS, poll))
  const stops: StopListeners = new StopListeners(
    () => query((each) => each.stops()),
    pollEvery(
      () => STOP_POLL_MS,
      () => stops.check(),
      { ref: false },
    ),
  )
  const writers = new OpenWriters(watchers, stops, leaseMs)
  const store: SessionStore = {
    async open(id, given = {}) {
      checkStoreCall('open', id, given)
      const { create = false } = given
      await writers.releaseStale(id)
      const owner = JSON.stringify(newLockOwner())
      const lock = query((each) => each.lock(id, { create, owner, leaseMs }))
      let next = lock.length
      return writers.add({
        id,
        head: lock.head,
        length: lock.length,
        stop: lock.stop,
        append(batch) {
          if (!query((each) => each.append(lock, next, batch))) throw sessionFenced(id)
          next += batch.lines.length
        },
        renew: () => query((each) => each.renew(lock)),
        unlock: () => query((each) => each.unlock(lock, next > lock.length || lock.listed !== undefined)),
      })
    },
    async read(id, part = {}) {
      checkStoreCall('read', id, part)
      return query((each) => each.read(id, part))
    },
    async list(given = {}) {
      return selectPage(given, {
        find: (id) => query((each) => each.position(id)),
        select: (after, limit) => query((each) => each.list({ ...given, after, limit })),
      })
    },
    count: async (given = {}) =>
      countSessions(given, {
        count: (filter) => query((each) => each.count(filter)),
        locked: (filter) => query((each) => each.locked(filter)),
      }),
    async delete(id, given = {}) {
      checkStoreCall('delete', id, given)
      const { before = Infinity } = given
      const isDeleted = query((each) => each.delete(id, before))
      if (isDeleted) watchers.changed(id)
      return isDeleted
    },
    async update(name, change) {
      checkSessionId(name)
      return query((each) => each.update(name, change))
    },
    watch: (id, onChange, onEnd) => watchers.watch(id, onChange, onEnd),
    async requestStop(id, request) {
      checkStoreCall('requestStop', id, request)
      const isStored = query((each) => each.requestStop(id, request))
      if (isStored) await stops.check(id)
      return isStored
    },
    async close() {
      watchers.close()
      await writers.close()
      tables?.database.close()
      tables = undefined
      closed = true
    },
  }
  return store
}

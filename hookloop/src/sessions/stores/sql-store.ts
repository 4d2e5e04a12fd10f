import { messageOf } from '../../errors.ts'
import { exactJson, type Json } from '../../values/json.ts'
import { describeLockOwner } from './lock-owner.ts'
import { checkList, headNow, wantedStatuses } from './list-sessions.ts'
import { SessionWatchers } from './session-watchers.ts'
import type { Sql } from './sql.ts'
import { deadOwner, SqlLocks } from './sql-locks.ts'
import { queriesFor, type SessionRow, type SqlDatabase } from './sql-queries.ts'
import {
  checkDelete,
  checkSessionId,
  isOpenStatus,
  readHead,
  readStop,
  sessionCorrupt,
  storeFailed,
  type ListedSession,
  type ListOptions,
  type ReadOptions,
  type SessionStore,
  type StoredSession,
} from './store.ts'

const MAX_ATTEMPTS = 200
const MAX_PAUSE_MS = 20
type ValueChange = Parameters<SessionStore['update']>[1]

/** A session store in a database. */
export function sqlStore(database: SqlDatabase, leaseMs: number): SessionStore {
  const queries = queriesFor(database.names)
  let closed = false
  const open = (): SqlDatabase => {
    if (closed) throw storeFailed('The store cannot be used', 'it was closed')
    return database
  }
  const query = async <R>(statement: Sql): Promise<readonly R[]> => (await open().query(statement)) as readonly R[]
  const locks = new SqlLocks({ open, query, queries, leaseMs, onStored: (id) => watchers.changed(id) })
  const watchers = new SessionWatchers({
    ms: database.pollMs,
    async versions(ids) {
      const rows = await query<SessionRow & { readonly seq: number | null }>(queries.versions(ids))
      return new Map(rows.map((row) => [row.id, `${row.key} ${row.length} ${row.updated_at} ${row.seq}`]))
    },
  })
  const changeValue = async (name: string, change: ValueChange): Promise<Json> => {
    for (let i = 0; i < MAX_ATTEMPTS; i++) {
      const [row] = await query<{ readonly value: string | null; readonly now: number }>(queries.value(name))
      const { value: before, now } = row!
      const value = exactJson(change(before === null ? undefined : (JSON.parse(before) as Json), now), 'shared value')
      const text = JSON.stringify(value)
      if (text === before || (await query(queries.setValue(name, text, before))).length > 0) return value
      await new Promise((resolve) => setTimeout(resolve, Math.random() * Math.min(MAX_PAUSE_MS, 1 + i)))
    }
    throw storeFailed(`The value "${name}" cannot be changed`, 'other processes change it all the time')
  }
  /** The changes of this process wait for each other, so they compete only with those of others. */
  const changing = new Map<string, Promise<unknown>>()
  const list = async (options: ListOptions): Promise<readonly ListedSession[]> => {
    const { after, limit } = options
    const [found] = typeof after === 'string' ? await query<SessionRow>(queries.find(after)) : []
    let position = typeof after === 'string' ? found && { id: after, updatedAt: found.updated_at } : after
    if (after !== undefined && position === undefined) return []
    const statuses: readonly unknown[] | undefined = wantedStatuses(options)
    const page: ListedSession[] = []
    // More is selected if some are not wanted, because only their locks tell whether they are interrupted.
    for (;;) {
      const rows = await query<SessionRow>(queries.list(options, position, limit))
      const listed = rows.map(toListed)
      page.push(...listed.filter(({ head }) => statuses === undefined || statuses.includes(head['status'])))
      if (limit === undefined || page.length >= limit || rows.length < limit) return page.slice(0, limit)
      position = listed.at(-1)
    }
  }
  return {
    open: (id, options = {}) => locks.open(checkSessionId(id), options.create === true),
    async read(id, options = {}) {
      const [session, ...rows] = await query<ReadRow>(queries.read(checkSessionId(id), options))
      return session && toStored(id, session, rows, options)
    },
    async list(options = {}) {
      checkList(options)
      return list(options)
    },
    async delete(id, options = {}) {
      checkDelete(options)
      const { before = Number.MAX_SAFE_INTEGER } = options
      const isDeleted = await locks.whenFree(checkSessionId(id), async (found, dead) => {
        if (found === undefined || found.updated_at >= before) return false
        const { length } = await open().queryAll(...queries.delete(found, dead, before))
        return length === 0 ? undefined : true
      })
      if (isDeleted) watchers.changed(id)
      return isDeleted
    },
    async update(name, change) {
      const before = changing.get(checkSessionId(name))
      const changed = (before?.catch(() => undefined) ?? Promise.resolve()).then(() => changeValue(name, change))
      changing.set(name, changed)
      return changed.finally(() => changing.get(name) === changed && changing.delete(name))
    },
    watch: (id, onChange, onEnd) => watchers.watch(id, onChange, onEnd),
    async requestStop(id, request) {
      const [found] = await query<SessionRow>(queries.find(checkSessionId(id)))
      const dead = found === undefined ? null : deadOwner(found)
      const { length } = await query(queries.requestStop(id, JSON.stringify(request), dead))
      await locks.beat()
      return length > 0
    },
    async close() {
      if (closed) return
      watchers.close()
      await locks.close()
      closed = true
      await database.close()
    },
  }
}

/** A row of `read`: the session, lines, or a piece. */
type ReadRow = { readonly part: 0 | 1 | 2; readonly key: string | number; readonly n: number; readonly content: string }

function toStored(id: string, session: ReadRow, rows: readonly ReadRow[], options: ReadOptions): StoredSession {
  const { after = -1, before = Infinity, pieces: range } = options
  const linesRows = rows.filter(({ part }) => part === 1)
  const first = linesRows[0]?.n ?? 0
  const lines: string[] = []
  for (const { n, content } of linesRows) {
    if (n !== first + lines.length) throw sessionCorrupt(id, `its line ${first + lines.length + 1} is missing`)
    for (const line of content.split('\n')) lines.push(line)
  }
  const end = Math.min(session.n, before)
  const found = first + lines.length
  const isWhole = first <= after + 1 && found >= end && (before < session.n || found === session.n)
  if (after + 1 < end && !isWhole) throw sessionCorrupt(id, `it has not the lines ${after + 2} to ${end}`)
  const part = { head: readHead(id, session.content), lines: lines.slice(after + 1 - first, Math.max(0, end - first)) }
  if (range === undefined) return part
  const pieces = rows.filter((row) => row.part === 2).map(({ n, content }) => ({ seq: n, text: content }))
  return { ...part, key: String(session.key), pieces }
}

/** A session for a list. One that cannot be read does not hide the others. */
function toListed(row: SessionRow): ListedSession {
  const { id, updated_at: updatedAt } = row
  const isLocked = Boolean(row.held) && deadOwner(row) === null
  const stop = readStop(row.stop)
  try {
    const head = readHead(id, row.head)
    const isStopping = stop !== undefined && (isLocked || isOpenStatus(head['status']))
    return {
      id,
      updatedAt,
      ...(isLocked && { lock: { owner: describeLockOwner(row.owner), since: row.locked_at } }),
      ...(isStopping && { stop }),
      head: headNow(head, isLocked),
    }
  } catch (error) {
    return { id, updatedAt, head: {}, problem: messageOf(error) }
  }
}

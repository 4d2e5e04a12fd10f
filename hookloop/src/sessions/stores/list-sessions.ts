import { optionTypes, type OptionTypes } from '../../state/option-types.ts'
import type { JsonObject } from '../../state/json.ts'
import { AgentError } from '../../errors.ts'
import { checkOptions, invalidOption } from '../../state/check-options.ts'
import {
  checkStore,
  type Facets,
  type ListedSession,
  type ListOptions,
  type PruneOptions,
  type SessionFilter,
  type SessionStore,
} from './store.ts'

/** Every status that a session is listed with. */
export const sessionStatuses = [
  'running',
  'interrupted',
  'suspended',
  'completed',
  'stopped',
  'failed',
  'cancelled',
  'idle',
] as const

/** A place in a list: the session that the next page follows. */
export type Position = Pick<ListedSession, 'id' | 'updatedAt'>

const MAX_FACET_CHARS = 256

export function facetsOf(head: JsonObject): Facets {
  const facet = (name: string): string | null => {
    const value = head[name]
    const isShort = typeof value === 'string' && value.length <= MAX_FACET_CHARS && !value.includes('\0')
    return isShort ? value.toWellFormed() : null
  }
  return { status: facet('status'), agent: facet('agent'), user: facet('user') }
}

/** The statuses to look for in a store: a session that is listed as interrupted is stored as running. */
export function storedStatuses(filter: SessionFilter): readonly string[] | undefined {
  const wanted = wantedStatuses(filter)
  return wanted && [...new Set(wanted.map((each) => (each === 'interrupted' ? 'running' : each)))]
}

function wantedStatuses({ status }: SessionFilter): readonly string[] | undefined {
  return typeof status === 'string' ? [status] : status
}

/** Whether a listed session is one of those that were asked for. */
function isWanted({ head }: ListedSession, filter: SessionFilter): boolean {
  const { agent, user } = filter
  const statuses = wantedStatuses(filter)
  const facets = facetsOf(head)
  return (
    (statuses === undefined || statuses.includes(facets.status ?? '')) &&
    (agent === undefined || facets.agent === agent) &&
    (user === undefined || facets.user === user)
  )
}

/** A page of sessions that are all in memory. */
export function pageOf(all: readonly ListedSession[], options: ListOptions): readonly ListedSession[] {
  checkList(options)
  const sorted = all.toSorted((a, b) => b.updatedAt - a.updatedAt || (a.id < b.id ? -1 : 1))
  const position = typeof options.after === 'string' ? sorted.find(({ id }) => id === options.after) : options.after
  if (options.after !== undefined && position === undefined) return []
  const rest = position === undefined ? sorted : sorted.filter((each) => isBehind(each, position))
  return rest.filter((each) => isWanted(each, options)).slice(0, options.limit)
}

function isBehind(each: Position, { id, updatedAt }: Position): boolean {
  return each.updatedAt < updatedAt || (each.updatedAt === updatedAt && each.id > id)
}

/**
 * A page of sessions that a database selects. `select` returns the sessions after a position, in order; `find` a position by
 * id. More is selected if some of them are not wanted, because only their locks tell whether they are interrupted.
 */
export async function selectPage(
  options: ListOptions,
  database: {
    readonly find: (id: string) => Position | undefined | Promise<Position | undefined>
    readonly select: (
      after: Position | undefined,
      limit: number | undefined,
    ) => readonly ListedSession[] | Promise<readonly ListedSession[]>
  },
): Promise<readonly ListedSession[]> {
  checkList(options)
  const { after, limit } = options
  let position = typeof after === 'string' ? await database.find(after) : after
  if (after !== undefined && position === undefined) return []
  const page: ListedSession[] = []
  for (;;) {
    const listed = await database.select(position, limit)
    for (const each of listed)
      if (each.problem !== undefined ? isPlain(options) : isWanted(each, options)) page.push(each)
    if (limit === undefined || page.length >= limit || listed.length < limit) return page.slice(0, limit)
    position = listed.at(-1)
  }
}

function isPlain({ status, agent, user }: SessionFilter): boolean {
  return status === undefined && agent === undefined && user === undefined
}

/** The number of sessions that are all in memory. */
export function countOf(all: readonly ListedSession[], filter: SessionFilter): number {
  checkOptions('count', filter, filters)
  return all.filter((each) => isWanted(each, filter)).length
}

/**
 * Counts sessions in a database. `count` is their number by what is stored, and `locked` the number of those with the stored
 * status `running` that are locked: the others are interrupted.
 */
export async function countSessions(
  filter: SessionFilter,
  database: {
    readonly count: (filter: SessionFilter) => number | Promise<number>
    readonly locked: (filter: SessionFilter) => number | Promise<number>
  },
): Promise<number> {
  checkOptions('count', filter, filters)
  const stored = await database.count(filter)
  const wanted = wantedStatuses(filter) ?? []
  if (wanted.includes('running') === wanted.includes('interrupted')) return stored
  const running = { ...filter, status: 'running' }
  const locked = await database.locked(running)
  const others = wanted.includes('running') ? (await database.count(running)) - locked : locked
  return Math.max(0, stored - others)
}

const statuses: readonly unknown[] = sessionStatuses
const filters = {
  status: [
    (value) => [value].flat().every((each) => statuses.includes(each)),
    `one of ${sessionStatuses.join(', ')}, or a list of them`,
  ],
  agent: optionTypes.string,
  user: optionTypes.string,
} satisfies OptionTypes
const listTypes: OptionTypes = {
  ...filters,
  after: [isPosition, 'the id of a session, or a session as it was listed'],
  limit: optionTypes.count,
}
/** Of a list of sessions with a status that the caller does not choose. */
export const { status: _status, ...pageTypes } = listTypes
const pruneTypes: OptionTypes = {
  ...filters,
  olderThan: [(value) => isTime(value) || optionTypes.amount[0](value), 'a Date, or milliseconds from 0 up'],
}

function isPosition(value: unknown): boolean {
  if (typeof value === 'string') return true
  const { id, updatedAt } = Object(value) as Partial<Position>
  return typeof id === 'string' && typeof updatedAt === 'number'
}

function isTime(value: unknown): boolean {
  return value instanceof Date && !Number.isNaN(value.getTime())
}

function checkList(options: ListOptions): void {
  checkOptions('list', options, listTypes)
}

const ended: readonly string[] = ['idle', 'completed', 'stopped', 'failed', 'cancelled']
const PAGE = 100

/**
 * Deletes sessions that were not written for some time, and returns their ids. Sessions with a run that has not ended, such as one
 * that waits for an approval, stay unless `status` names them. Locked sessions stay.
 *
 * @example
 * await pruneSessions(store, { olderThan: 30 * 86_400_000 })
 */
export async function pruneSessions(store: SessionStore, options: PruneOptions): Promise<readonly string[]> {
  checkStore('pruneSessions', store)
  checkOptions('pruneSessions', options, pruneTypes) // a filter with another name would delete more
  const { olderThan, status = ended, agent, user } = options
  const before = typeof olderThan === 'number' ? Date.now() - olderThan : olderThan?.getTime()
  if (before === undefined || !Number.isFinite(before))
    throw invalidOption('pruneSessions', `"olderThan" must be ${pruneTypes['olderThan']![1]}`, olderThan)
  const filter = { status, ...(agent !== undefined && { agent }), ...(user !== undefined && { user }) }
  const deleted: string[] = []
  let after: Position | undefined = { id: '', updatedAt: before }
  while (after !== undefined) {
    const page: readonly ListedSession[] = await store.list({ ...filter, after, limit: PAGE })
    for (const { id } of page) if (await deleteUnlessUsed(store, id, before)) deleted.push(id)
    after = page.length < PAGE ? undefined : page.at(-1)
  }
  return deleted
}

async function deleteUnlessUsed(store: SessionStore, id: string, before: number): Promise<boolean> {
  try {
    return await store.delete(id, { before })
  } catch (error) {
    if (error instanceof AgentError && error.code === 'SESSION_BUSY') return false
    throw error
  }
}

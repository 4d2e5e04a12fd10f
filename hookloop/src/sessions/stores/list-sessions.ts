import type { JsonObject } from '../../values/json.ts'
import { AgentError } from '../../errors.ts'
import { checkOptions } from '../../values/check-options.ts'
import type { ListedSession, ListOptions, PruneOptions, SessionFilter, SessionStore } from './store.ts'

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

/** What lists filter by, from a head. */
export type Facets = { readonly [name in 'status' | 'agent' | 'user']: string | null }

const MAX_FACET_CHARS = 256

export function facetsOf(head: JsonObject): Facets {
  const facet = (name: string): string | null => {
    const value = head[name]
    const isShort = typeof value === 'string' && value.length <= MAX_FACET_CHARS && !value.includes('\0')
    return isShort ? value.toWellFormed() : null
  }
  return { status: facet('status'), agent: facet('agent'), user: facet('user') }
}

/** A head as it is true now: a run that no process works on has been interrupted. */
export function headNow(head: JsonObject, isLocked: boolean): JsonObject {
  return head['status'] === 'running' && !isLocked ? { ...head, status: 'interrupted' } : head
}

export function wantedStatuses({ status }: SessionFilter): readonly string[] | undefined {
  return typeof status === 'string' ? [status] : status
}

/** The statuses to look for in a store: a session that is listed as interrupted is stored as running. */
export function storedStatuses(filter: SessionFilter): readonly string[] | undefined {
  const wanted = wantedStatuses(filter)
  return wanted && [...new Set(wanted.map((each) => (each === 'interrupted' ? 'running' : each)))]
}

// A filter with an unknown name would list, and so delete, more.
const filterNames = ['status', 'agent', 'user'] as const satisfies readonly (keyof SessionFilter)[]
/** Of a list of sessions with a status that the caller does not choose. */
export const pageNames = ['agent', 'user', 'after', 'limit'] as const satisfies readonly (keyof ListOptions)[]

export function checkList(options: ListOptions): void {
  checkOptions('list', options, ['status', ...pageNames])
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
  checkOptions('pruneSessions', options, ['olderThan', ...filterNames])
  const { olderThan, status = ended, agent, user } = options
  const before = typeof olderThan === 'number' ? Date.now() - olderThan : olderThan.getTime()
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

import { isAbsolute, relative } from 'node:path'
import { sessionUnknown, type ListedSession, type SessionStore } from '../sessions/stores/store.ts'
import type { Json } from '../values/json.ts'
import type { SessionsChange, SessionsPage, SessionsRequest, SessionStatus, SessionSummary } from './api.types.ts'
import { TextSearch } from './text-search.ts'

const DEFAULT_COUNT = 50
/** Sessions that are looked at for one page, and sessions that are read for it. Beyond them, it ends early and has a `next`. */
const MAX_LISTED = 5000
const MAX_READ = 100
const BATCH = 200

type Scan = {
  readonly search?: TextSearch | undefined
  /** Nothing that is older is looked at. */
  readonly until?: SessionsPage['next']
}

/** A page of sessions, the latest first. It ends early if much had to be read for it, and has a `next` then. */
export async function listSessions(
  store: SessionStore,
  request: SessionsRequest,
  { search = searchFor(store, request), until }: Scan = {},
): Promise<SessionsPage> {
  const { status, agent, after, count = DEFAULT_COUNT } = request
  const mayRead = (search?.reads ?? 0) + MAX_READ
  const filter = { ...(status !== undefined && { status }), ...(agent !== undefined && { agent }) }
  const sessions: SessionSummary[] = []
  let position = after
  for (let scanned = 0; scanned < MAX_LISTED; scanned += BATCH) {
    const batch = await store.list({ ...filter, limit: BATCH, ...(position !== undefined && { after: position }) })
    for (const listed of batch) {
      if (until !== undefined && listed.updatedAt < until.updatedAt) return { sessions }
      position = { id: listed.id, updatedAt: listed.updatedAt }
      const summary = summaryOf(listed)
      if (await isWanted(summary, request, search)) sessions.push(summary)
      if (sessions.length === count || search?.reads === mayRead) return { sessions, next: position }
    }
    if (batch.length < BATCH) return { sessions }
  }
  return { sessions, next: position }
}

/** What lists show of a session. Throws if there is none. */
export async function readSummary(store: SessionStore, id: string): Promise<SessionSummary> {
  const stored = await store.read(id, { after: Infinity })
  if (stored === undefined) throw sessionUnknown(id)
  return summaryOf({ id, head: stored.head, updatedAt: 0 })
}

export function summaryOf({ id, head, updatedAt, problem }: ListedSession): SessionSummary {
  const { status, title, agent, cwd, steps, tokens, costUsd, pending } = head
  return {
    id,
    updatedAt,
    title: text(title) ?? '',
    agent: text(agent) ?? '',
    status: (text(status) ?? 'idle') as SessionStatus,
    live: status === 'running',
    steps: number(steps),
    tokens: number(tokens),
    costUsd: number(costUsd),
    pending: Array.isArray(pending) ? pending.length : 0,
    cwd: text(cwd),
    problem,
  }
}

async function isWanted(
  session: SessionSummary,
  { cwd, minCostUsd = 0, text: words = '' }: SessionsRequest,
  search: TextSearch | undefined,
): Promise<boolean> {
  const { id, title, agent, costUsd } = session
  if (costUsd < minCostUsd || (cwd !== undefined && !isBelow(cwd, session.cwd))) return false
  const isNamed = [id, title, agent].some((each) => each.toLowerCase().includes(words.toLowerCase()))
  return isNamed || (await search?.finds(session)) === true
}

function searchFor(store: SessionStore, { text: words = '' }: SessionsRequest): TextSearch | undefined {
  return words === '' ? undefined : new TextSearch(store, words)
}

function isBelow(folder: string, path: string | undefined): boolean {
  if (path === undefined) return false
  const rest = relative(folder, path)
  return rest !== '..' && !/^\.\.[/\\]/.test(rest) && !isAbsolute(rest)
}

/** A head may be damaged. */
function text(value: Json | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function number(value: Json | undefined): number {
  return typeof value === 'number' ? value : 0
}

/** A page of sessions, and then what changes in it, whenever `changed` resolves. */
export async function* watchSessions(
  store: SessionStore,
  request: SessionsRequest,
  changed: () => Promise<boolean>,
): AsyncGenerator<SessionsChange> {
  const search = searchFor(store, request)
  const page = await listSessions(store, request, { search })
  yield { type: 'page', ...page }
  let known = new Map(page.sessions.map((each) => [each.id, JSON.stringify(each)]))
  while (await changed()) {
    const { sessions } = await listSessions(store, request, { search, until: page.next })
    const now = new Map(sessions.map((each) => [each.id, JSON.stringify(each)]))
    const different = sessions.filter(({ id }) => known.get(id) !== now.get(id))
    const deleted: string[] = []
    for (const id of known.keys()) if (!now.has(id) && (await isGone(store, id, { request, search }))) deleted.push(id)
    known = now
    if (different.length + deleted.length > 0) yield { type: 'changed', sessions: different, deleted }
  }
}

/** A session that is no longer in the page: deleted or no longer matching, and not only moved to a later page. */
async function isGone(
  store: SessionStore,
  id: string,
  { request, search }: { readonly request: SessionsRequest; readonly search: TextSearch | undefined },
): Promise<boolean> {
  const stored = await store.read(id, { after: Infinity })
  if (stored === undefined || request.status !== undefined) return true
  return !(await isWanted(summaryOf({ id, head: stored.head, updatedAt: 0 }), request, search))
}

const POLL_MS = 500

/** Notices changes in the list of sessions by looking at it. One timer, however many wait; none while nothing waits. */
export class ListPoller {
  readonly #store: SessionStore
  readonly #waiting = new Set<() => void>()
  #seen = ''
  #version = 0
  #isLooking = false

  constructor(store: SessionStore) {
    this.#store = store
  }

  /** A function that resolves with true at the next change since it resolved last, and with false when the signal aborts. */
  follow(signal: AbortSignal): () => Promise<boolean> {
    let version = this.#version
    return async () => {
      while (!signal.aborted && version === this.#version) await this.#wait(signal)
      version = this.#version
      return !signal.aborted
    }
  }

  #wait(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const done = (): void => {
      signal.removeEventListener('abort', done)
      this.#waiting.delete(done)
      resolve()
    }
    signal.addEventListener('abort', done)
    this.#waiting.add(done)
    if (!this.#isLooking) setTimeout(() => void this.#look(), POLL_MS)
    this.#isLooking = true
    return promise
  }

  async #look(): Promise<void> {
    const seen = await this.#store.list({ limit: BATCH }).then(
      (sessions) => JSON.stringify(sessions.map(({ id, updatedAt, head }) => [id, updatedAt, head['status']])),
      () => this.#seen, // the store may be back the next time
    )
    this.#isLooking = false
    if (seen !== this.#seen) this.#version++
    this.#seen = seen
    for (const done of this.#waiting) done()
  }
}

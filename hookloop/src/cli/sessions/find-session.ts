import { loadSession as readSession } from '../../sessions/log/read-session.ts'
import type { SessionReader } from '../../sessions/log/session-reader.ts'
import { checkSessionId, sessionUnknown, type SessionStore } from '../../sessions/stores/store.ts'
import { UsageError } from '../usage-error.ts'

const ALPHABET = 'abcdefghjkmnpqrstuvwxyz23456789' // without characters that look alike
const ID_LENGTH = 8

/** The id of an existing session, from an id or an unambiguous prefix. Without one, the latest session. */
export async function findSession(store: SessionStore, given: string | undefined): Promise<string> {
  if (given !== undefined) checkSessionId(given)
  if (given !== undefined && (await store.read(given, { after: Infinity }).catch(() => undefined)) !== undefined)
    return given
  const all = await store.list()
  if (given === undefined) {
    if (all[0] !== undefined) return all[0].id
    throw new UsageError('No sessions yet.')
  }
  if (all.some(({ id }) => id === given)) return given // it cannot be read
  const matches = all.filter(({ id }) => id.startsWith(given))
  if (matches.length === 1) return matches[0]!.id
  if (matches.length === 0) throw sessionUnknown(given)
  throw new UsageError(`"${given}" matches ${matches.length} sessions: ${matches.map(({ id }) => id).join(', ')}.`)
}

type FoundSession = { readonly id: string; readonly saved: SessionReader }

/** The content of an existing session, found like `findSession`. */
export async function loadSession(store: SessionStore, given: string | undefined): Promise<FoundSession> {
  const id = await findSession(store, given)
  const saved = await loadIfPresent(store, id)
  if (saved === undefined) throw sessionUnknown(id)
  return { id, saved }
}

/** The content of a session; undefined if it does not exist yet. */
export async function loadIfPresent(store: SessionStore, id: string): Promise<SessionReader | undefined> {
  const saved = await readSession(store, id)
  return saved?.createdAt === undefined ? undefined : saved
}

/** An unused id that is short enough to type. */
export async function newSessionId(store: SessionStore): Promise<string> {
  for (;;) {
    const letters = [...crypto.getRandomValues(new Uint8Array(ID_LENGTH))].map(
      (byte) => ALPHABET[byte % ALPHABET.length],
    )
    const id = `${letters.slice(0, 4).join('')}-${letters.slice(4).join('')}`
    if ((await store.read(id)) === undefined) return id
  }
}

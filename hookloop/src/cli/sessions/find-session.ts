import { readSession, type SessionSnapshot } from '../../sessions/log/read-session.ts'
import { checkSessionId, sessionUnknown, type SessionStore } from '../../sessions/stores/store.ts'
import { UsageError } from '../usage-error.ts'

const ALPHABET = 'abcdefghjkmnpqrstuvwxyz23456789' // without what looks alike
const ID_LENGTH = 8

/** The id of a session that exists: as it was given, or the only one that begins like that. Without one, the latest. */
export async function findSession(store: SessionStore, given: string | undefined): Promise<string> {
  if (given !== undefined) checkSessionId(given)
  const all = await store.list()
  if (given === undefined) {
    if (all[0] !== undefined) return all[0].id
    throw new UsageError('There are no sessions yet.')
  }
  if (all.some(({ id }) => id === given)) return given
  const fitting = all.filter(({ id }) => id.startsWith(given))
  if (fitting.length === 1) return fitting[0]!.id
  if (fitting.length === 0) throw sessionUnknown(given)
  throw new UsageError(`"${given}" fits ${fitting.length} sessions: ${fitting.map(({ id }) => id).join(', ')}.`)
}

/** What is kept of a session; nothing if there is none. */
export async function readKept(store: SessionStore, id: string): Promise<SessionSnapshot | undefined> {
  const stored = await store.read(id)
  return stored === undefined || stored.lines.length === 0 ? undefined : readSession(stored.lines, id)
}

/** An id that is short enough to be typed, and that nobody has. */
export async function newSessionId(store: SessionStore): Promise<string> {
  for (;;) {
    const letters = [...crypto.getRandomValues(new Uint8Array(ID_LENGTH))].map(
      (byte) => ALPHABET[byte % ALPHABET.length],
    )
    const id = `${letters.slice(0, 4).join('')}-${letters.slice(4).join('')}`
    if ((await store.read(id)) === undefined) return id
  }
}

import { AgentError } from '../errors.ts'
import { HttpError } from './http.ts'

// The id of a session in the store is made of the user and of the id of the chat, both encoded, so that neither can contain the
// separator. A client names only the chat.

const PREFIX = 'chat'
const MAX_USER_CHARS = 160
const MAX_CHAT_CHARS = 80

/** The session of a chat. Two users never have the same one, whatever ids they send. */
export function sessionOf({ user, chat }: { readonly user: string; readonly chat: unknown }): string {
  const encoded = typeof chat === 'string' ? encode(chat, MAX_CHAT_CHARS) : undefined
  if (encoded !== undefined) return `${prefixOf(user)}${encoded}`
  throw new HttpError(400, `The id of a chat must be a text of 1 to ${MAX_CHAT_CHARS} characters.`)
}

/** What the ids of all sessions of a user start with. */
export function prefixOf(user: string): string {
  const encoded = typeof user === 'string' ? encode(user, MAX_USER_CHARS) : undefined
  if (encoded !== undefined) return `${PREFIX}/${encoded}/`
  throw new AgentError(
    'AGENT_INVALID_OPTION',
    `serve: "user" must return an id of 1 to ${MAX_USER_CHARS} characters, counted as in a URL.`,
    { value: user },
  )
}

/** The user and the chat of a session; undefined if it is the session of something else. */
export function chatOf(session: string): { readonly user: string; readonly chat: string } | undefined {
  const [prefix, user, chat, ...more] = session.split('/')
  if (prefix !== PREFIX || user === undefined || chat === undefined || more.length > 0) return undefined
  try {
    const place = { user: decodeURIComponent(user), chat: decodeURIComponent(chat) }
    return sessionOf(place) === session ? place : undefined
  } catch {
    return undefined
  }
}

/** Undefined if it is empty, too long, or has a lone surrogate. */
function encode(text: string, maxChars: number): string | undefined {
  const encoded = text.length <= maxChars && text.isWellFormed() ? encodeURIComponent(text) : ''
  return encoded !== '' && encoded.length <= maxChars ? encoded : undefined
}

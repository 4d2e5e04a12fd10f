import { exactJson, isJsonObject, storedJson, type JsonObject } from '../../state/json.ts'
import { AgentError, messageOf } from '../../errors.ts'

/**
 * Where sessions are kept: lines of text that only ever grow, and one small head per session for lists. What is in the
 * lines is not the store's business.
 */
export interface SessionStore {
  /**
   * Takes a session for writing; with `create`, one that is not there yet is made. There is one writer at a time:
   * rejects with SESSION_BUSY while another holds it and lives. A writer that died is taken over from at once where that
   * can be known, otherwise when its lease is over; whatever it still writes is refused.
   */
  open(id: string, options?: { readonly create?: boolean }): Promise<SessionWriter>
  /** The session as it is now, for reading. Nothing when there is none. */
  read(id: string): Promise<StoredSession | undefined>
  /** Every session, the latest first. One that cannot be read is listed as such and hides no other. */
  list(): Promise<readonly ListedSession[]>
  /** Rejects with SESSION_BUSY while somebody writes to it. Where there is none, nothing is done. */
  delete(id: string): Promise<void>
  /** Lets go of every session that is still open for writing. */
  close(): Promise<void>
}

export interface SessionWriter {
  /** What was there when the session was taken. */
  readonly lines: readonly string[]
  /**
   * All of the lines, or none, are stored when it returns or resolves; the head, if given, with them. Appends that are
   * not waited for are stored in the order they were called. Throws SESSION_FENCED when somebody else has taken the
   * session over or it was released, and STORE_FAILED when it cannot be written: what was appended may then be stored or
   * not, so the writer is of no more use, and whoever wants to go on opens the session again. Throws JSON_INVALID, and
   * nothing else has happened, for what is not a line (it has a newline or a NUL, or half of a surrogate pair) or a head
   * that is not JSON.
   */
  append(lines: readonly string[], head?: JsonObject): void | Promise<void>
  /** Lets go of the session. */
  release(): Promise<void>
}

export type StoredSession = { readonly head: JsonObject; readonly lines: readonly string[] }

export type ListedSession = {
  readonly id: string
  readonly head: JsonObject
  readonly updatedAt: number
  /** Why it cannot be read, if it cannot. */
  readonly problem?: string
}

const SESSION_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/

/** An id that is safe as the name of a file and in a query. Every store checks it first. */
export function checkSessionId(id: unknown): string {
  if (typeof id === 'string' && SESSION_ID.test(id)) return id
  throw new AgentError(
    'SESSION_ID_INVALID',
    'The id of a session is 1 to 128 letters, digits, _ and -, beginning with a letter or digit.',
    { value: typeof id === 'string' ? id.slice(0, 200) : id },
  )
}

export function sessionBusy(id: string, owner: string): AgentError {
  return new AgentError('SESSION_BUSY', `The session "${id}" is being written to by ${owner}. Try again later.`, {
    value: id,
  })
}

export function sessionFenced(id: string): AgentError {
  return new AgentError(
    'SESSION_FENCED',
    `The session "${id}" was taken over by another process; this one must stop.`,
    {
      value: id,
    },
  )
}

export function sessionUnknown(id: string): AgentError {
  return new AgentError('SESSION_UNKNOWN', `There is no session "${id}".`, { value: id })
}

export function sessionReleased(id: string): AgentError {
  return new AgentError('SESSION_FENCED', `The session "${id}" was let go of. Open it again to write to it.`, {
    value: id,
  })
}

export function sessionCorrupt(id: string, why: string, cause?: unknown): AgentError {
  return new AgentError('SESSION_CORRUPT', `The session "${id}" cannot be used: ${why}. It is left as it is.`, {
    value: id,
    ...(cause !== undefined && { cause }),
  })
}

export function sessionTooNew(id: string, version: unknown, known: number): AgentError {
  return new AgentError(
    'STATE_VERSION',
    `"${id}" was written by a newer Hookloop (version ${String(version)} of the store; this one reads up to ${known}). Use a newer one.`,
    { value: version },
  )
}

/** What went wrong while a store was at work, as an error with a code. */
export function storeFailed(what: string, thrown: unknown): AgentError {
  if (thrown instanceof AgentError) return thrown
  return new AgentError('STORE_FAILED', `${what}: ${messageOf(thrown)}`, { value: messageOf(thrown), cause: thrown })
}

/** Every store takes the same lines, so that what one has kept can be moved to any other. */
export function checkLines(lines: readonly string[]): void {
  for (const line of lines) {
    const problem = problemOfLine(line)
    if (problem !== undefined)
      throw new AgentError('JSON_INVALID', `A line cannot be kept: it ${problem}.`, { value: problem })
  }
}

function problemOfLine(line: unknown): string | undefined {
  if (typeof line !== 'string') return 'is not a text'
  if (line.includes('\n')) return 'has a newline in it'
  if (line.includes('\0')) return 'has a NUL in it'
  return line.isWellFormed() ? undefined : 'has half of a surrogate pair in it'
}

/** A head as text that `readHead` takes back; throws JSON_INVALID for what is not JSON. */
export function headText(head: JsonObject): string {
  return JSON.stringify(exactJson(head, 'head'))
}

export function readHead(id: string, text: unknown): JsonObject {
  try {
    const head = storedJson(JSON.parse(text as string), 'head')
    if (isJsonObject(head)) return head
  } catch {
    // said below
  }
  throw sessionCorrupt(id, 'its head is not a JSON object')
}

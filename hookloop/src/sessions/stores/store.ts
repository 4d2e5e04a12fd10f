import { checkOptions } from '../../values/check-options.ts'
import { isJsonObject, storedJson, type Json, type JsonObject } from '../../values/json.ts'
import { toStopRequest, type StopRequest } from '../../core/state/stop-request.ts'
import { AgentError, messageOf, clause, type ErrorCode } from '../../errors.ts'

/**
 * Stores sessions: append-only lines of text, and one small head per session for lists. A store does not interpret them. To write
 * your own, implement this interface and run `storeContract` from `hookloop/testing` against it.
 */
export interface SessionStore {
  /**
   * Locks a session for writing; with `create`, a missing session is created. A session has one writer at a time: rejects
   * with SESSION_BUSY while another process has it locked. If the lock owner died, the lock is taken over at once where
   * that can be detected, otherwise when its lease has expired; later writes of the old owner are rejected.
   */
  open(id: string, options?: { readonly create?: boolean }): Promise<SessionWriter>
  /** The current content of a session, without a lock, or a part of it. Undefined if there is no such session. */
  read(id: string, options?: ReadOptions): Promise<StoredSession | undefined>
  /**
   * All sessions, the latest first. One that cannot be read has a `problem` and does not hide the others. A head with the
   * status `running` is listed as `interrupted` if no process has the session locked.
   */
  list(options?: ListOptions): Promise<readonly ListedSession[]>
  /**
   * Deletes a session if it exists, and returns whether it did. With `before`, only if it was last written before that time.
   * Rejects with SESSION_BUSY while it is locked.
   */
  delete(id: string, options?: { readonly before?: number }): Promise<boolean>
  /**
   * Changes a small value that all processes share, such as a budget, and returns it. `change` gets the current value, or
   * undefined, and may be called several times: if another process changed the value in the meantime, it is called again.
   * It also gets the time in milliseconds since 1970 by a clock that all processes share. Without it, the clock of the machine
   * is used.
   */
  update(name: string, change: (value: Json | undefined, now?: number) => Json): Promise<Json>
  /**
   * Calls `onChange` whenever a session may have changed, also if another process has written to it or deleted it, until the
   * returned function is called. The session need not exist. Calls `onEnd` once if the store is closed before.
   */
  watch(id: string, onChange: () => void, onEnd: () => void): () => void
  /**
   * Requests that the run of a session stops, without locking it: `onStop` of its writer is called in whatever process has the
   * session open, within about a second, and at once in a process that opens it later. The request is stored until the run has
   * ended: it is deleted with the append of a head whose status is neither `running` nor `suspended`. Of several requests the
   * first one counts. Returns false and stores nothing if there is no run: the head has another status, or there is no session,
   * and no process has it locked. A request that is left from such a lock is deleted when the session is opened.
   */
  requestStop(id: string, request: StopRequest): Promise<boolean>
  /** Releases all sessions that this store has open for writing, and ends all watchers. */
  close(): Promise<void>
}

/** Which sessions to list or to delete. */
export type SessionFilter = {
  /** Only sessions with this status, or one of these. */
  readonly status?: string | readonly string[]
  /** Only sessions of this agent, by its name. */
  readonly agent?: string
  /** Only sessions of this user: the metadata `user` of their runs. */
  readonly user?: string
}

/**
 * Which sessions to list.
 *
 * @interface
 */
export type ListOptions = SessionFilter & {
  /** The last session of the page before: as it was listed, or its id. Default: from the latest on. */
  readonly after?: string | Pick<ListedSession, 'id' | 'updatedAt'>
  /** The number of sessions. Default: all. */
  readonly limit?: number
}

/**
 * Which sessions to delete.
 *
 * @interface
 */
export type PruneOptions = SessionFilter & {
  /** Sessions that were last written before this time, or longer ago than so many milliseconds. */
  readonly olderThan: Date | number
}

/** A session that is locked for writing. */
export interface SessionWriter {
  /** The head and the number of lines, when the session was opened. */
  readonly head: JsonObject
  readonly length: number
  /**
   * Stores lines atomically, with the head and the pieces if given: when it returns or resolves, all of them are stored. It is
   * called again only then. Throws SESSION_FENCED when another process has taken over the lock or
   * the writer was released. Throws STORE_FAILED when the write fails: the lines may or may not be stored then, so open
   * the session again. Lines and pieces are texts without newlines, NULs and lone surrogates, such as those of `JSON.stringify`.
   */
  append(lines: readonly string[], options?: AppendOptions): void | Promise<void>
  /**
   * Sets the function to call when the run is to stop, with the request: at once if there is one already. It is called once.
   */
  onStop(listener: (request: StopRequest) => void): void
  /** Unlocks the session. */
  release(): Promise<void>
}

/** What an append stores together with its lines. */
export type AppendOptions = {
  /** Replaces the head. Default: it stays. */
  readonly head?: JsonObject | undefined
  /** Pieces to add, in order. Default none. */
  readonly pieces?: readonly Piece[] | undefined
  /** A turn starts: all pieces that were stored before are deleted. Default false. */
  readonly startsTurn?: boolean | undefined
}

/**
 * A text that is of use only during its turn, such as a piece of an answer. Its number is higher than that of every other piece
 * of the session.
 */
export type Piece = { readonly seq: number; readonly text: string }

/** Which part of a session to read. */
export type ReadOptions = {
  /** Only the lines after this one. The first line is line 0. Default: all lines. */
  readonly after?: number
  /** Only the lines before this one. Default: all lines. */
  readonly before?: number
  /** Also the pieces whose numbers are between these. Default: none. */
  readonly pieces?: { readonly after: number; readonly before: number }
}

/** What a store has of a session: its lines, and the head that was stored last. */
export type StoredSession = {
  readonly head: JsonObject
  readonly lines: readonly string[]
  /** In order, if the options ask for pieces. */
  readonly pieces?: readonly Piece[]
  /** The same, if the options ask for pieces. A session that was deleted and created again has another key. */
  readonly key?: string
}

/** A session in a list. `head` is a {@link SessionHead} if an agent wrote it. */
export type ListedSession = {
  readonly id: string
  readonly head: JsonObject
  /** When it was last written. Of a locked session it may be up to a second older. */
  readonly updatedAt: number
  /** The process that has it locked, if one has. */
  readonly lock?: SessionLock
  /** The request to stop its run, if there is one. */
  readonly stop?: StopRequest
  /** Why the session cannot be read. */
  readonly problem?: string
}

/** Which process has a session locked. */
export type SessionLock = {
  /** The process and its machine, such as `process 4711 on build-3`. */
  readonly owner: string
  /** When it locked the session. */
  readonly since: number
}

const MAX_ID_CHARS = 256

/** An unknown name would delete a session that is in use. */
export function checkDelete(options: object): void {
  checkOptions('delete', options, ['before'])
}

/** Throws SESSION_ID_INVALID unless the id is a text that every store can hold. Every store checks it first. */
export function checkSessionId(id: unknown): string {
  const problem = problemOfId(id)
  if (problem === undefined) return id as string
  throw new AgentError(
    'SESSION_ID_INVALID',
    `A session id must be a text of 1 to ${MAX_ID_CHARS} characters without control characters: ${problem}.`,
    { value: typeof id === 'string' ? id.slice(0, 200) : id },
  )
}

function problemOfId(id: unknown): string | undefined {
  if (typeof id !== 'string') return `it is ${id === null ? 'null' : typeof id}`
  if (id.trim() === '') return 'it is empty'
  if (id.length > MAX_ID_CHARS) return `it has ${id.length}`
  if (/[\p{Cc}\u2028\u2029]/u.test(id)) return 'it contains a control character'
  return id.isWellFormed() ? undefined : 'it contains a lone surrogate'
}

export function sessionBusy(id: string, owner: string): AgentError {
  return ofSession(id, 'SESSION_BUSY', `is locked by ${owner}. Try again later.`)
}

export function sessionFenced(id: string): AgentError {
  return new AgentError('SESSION_FENCED', `Another process has taken over the lock of the session "${id}".`, {
    value: id,
  })
}

export function sessionReleased(id: string): AgentError {
  return ofSession(id, 'SESSION_FENCED', 'was released. Open it again to write to it.')
}

export function sessionUnknown(id: string): AgentError {
  return new AgentError('SESSION_UNKNOWN', `There is no session "${id}".`, { value: id })
}

export function sessionCorrupt(id: string, why: string): AgentError {
  return ofSession(id, 'SESSION_CORRUPT', `cannot be read: ${clause(why)}. It was not changed.`)
}

function ofSession(id: string, code: ErrorCode, what: string): AgentError {
  return new AgentError(code, `The session "${id}" ${what}`, { value: id })
}

export function otherVersion(place: string, version: number, known: number): AgentError {
  const [by, how] = version > known ? ['a newer', 'Use that one'] : ['an older', 'Export its sessions with that one']
  return new AgentError(
    'STATE_VERSION',
    `"${place}" was written by ${by} Hookloop (store version ${version}; this one reads version ${known}). ${how}.`,
    { value: version },
  )
}

/** An error that a store failed with, as STORE_FAILED; an error that has a code already is returned as it is. */
export function storeFailed(what: string, thrown: unknown): AgentError {
  if (thrown instanceof AgentError) return thrown
  const message = messageOf(thrown)
  return new AgentError('STORE_FAILED', `${what}: ${message}`, { value: message, cause: thrown })
}

export function readHead(id: string, text: unknown): JsonObject {
  try {
    const head = storedJson(JSON.parse(text as string), 'head')
    if (isJsonObject(head)) return head
  } catch {
    // reported below
  }
  throw sessionCorrupt(id, 'its head is not a JSON object')
}

/** A request to stop, from its text. Undefined if there is none. */
export function readStop(text: string | null | undefined): StopRequest | undefined {
  try {
    return text === null || text === undefined ? undefined : toStopRequest(JSON.parse(text))
  } catch {
    return undefined
  }
}

/** Whether a session with this status has a run that has not ended. */
export function isOpenStatus(status: unknown): boolean {
  return status === 'running' || status === 'suspended'
}

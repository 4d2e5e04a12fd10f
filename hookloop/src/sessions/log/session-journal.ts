import type { JsonObject } from '../../state/json.ts'
import { AgentError, messageOf } from '../../errors.ts'
import type { Journal } from './journaled-effects.ts'
import { LineEncoder } from './session-log.ts'
import type { SessionRecord } from './session-records.ts'
import type { SessionWriter } from '../stores/store.ts'

/** The lines of a session, sealed one to the next and stored in as few writes as possible. */
export class SessionJournal implements Journal {
  readonly #writer: SessionWriter
  readonly #encoder: LineEncoder
  #lines: string[] = []
  #head: JsonObject | undefined
  #storing: Promise<void> | undefined
  #failure: AgentError | undefined
  #isSoon = false

  constructor(writer: SessionWriter, end: { readonly seq: number; readonly sum: string }) {
    this.#writer = writer
    this.#encoder = new LineEncoder(end)
  }

  append(record: SessionRecord): void {
    this.#lines.push(this.#encoder.encode(record))
  }

  /** What lists show of the session, stored with the next lines. */
  setHead(head: JsonObject): void {
    this.#head = head
  }

  /** One write at a time, in order. After a failure none follows: a line would be missing. */
  store(): void | Promise<void> {
    if (this.#failure !== undefined) throw this.#failure
    if (this.#storing !== undefined) return this.#storing.then(() => this.store())
    if (this.#lines.length === 0 && this.#head === undefined) return undefined
    const [lines, head] = [this.#lines, this.#head]
    this.#lines = []
    this.#head = undefined
    try {
      const storing = this.#writer.append(lines, head)
      if (!(storing instanceof Promise)) return undefined
      this.#storing = storing.then(
        () => void (this.#storing = undefined),
        (thrown: unknown) => this.#fail(thrown),
      )
      return this.#storing
    } catch (thrown) {
      return this.#fail(thrown)
    }
  }

  /** A model takes its time: what is stored meanwhile costs a run nothing, and a fast one shares the next write. */
  flushSoon(): void {
    if (this.#isSoon) return
    this.#isSoon = true
    setImmediate(() => {
      this.#isSoon = false
      try {
        this.store()?.catch(() => undefined)
      } catch {
        // told by the next one that asks
      }
    })
  }

  #fail(thrown: unknown): never {
    this.#storing = undefined
    this.#failure = thrown instanceof AgentError ? thrown : storeFailed(thrown)
    throw this.#failure
  }
}

function storeFailed(thrown: unknown): AgentError {
  return new AgentError('STORE_FAILED', `The session cannot be stored: ${messageOf(thrown)}`, { cause: thrown })
}

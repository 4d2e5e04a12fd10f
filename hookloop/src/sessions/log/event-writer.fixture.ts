import type { JsonObject } from '../../values/json.ts'
import type { SessionStore, SessionWriter } from '../stores/store.ts'
import { encodeLine, noLine, type LineEnd } from './session-log.ts'
import { readSession } from './read-session.ts'
import { SESSION_VERSION } from './session-records.ts'
import { eventSeq, pieceSeq } from './watch-session.ts'

/** Writes events to a session as its runs do: answers of approvers, as records, and pieces of an answer. */
export class EventWriter {
  readonly #writer: SessionWriter
  #end: LineEnd
  #pieces = 0
  /** The number of the last event. */
  last = 0

  private constructor(writer: SessionWriter, after = noLine) {
    this.#writer = writer
    this.#end = after
  }

  /** A new session with the id `x`, or another one. */
  static async open(store: SessionStore, id = 'x'): Promise<EventWriter> {
    const made = new EventWriter(await store.open(id, { create: true }))
    const start = { t: 'session', version: SESSION_VERSION, id, at: 1, agent: 'a' }
    await made.#writer.append([made.#encode(start)])
    return made
  }

  /** The session `x`, which exists. */
  static async continue(store: SessionStore): Promise<EventWriter> {
    const writer = await store.open('x')
    const { lines } = (await store.read('x'))!
    return new EventWriter(writer, readSession(lines).end)
  }

  /** Appends answers to approvals with these ids in one write. */
  async add(...messages: readonly (string | number)[]): Promise<void> {
    const lines = messages.map((message) => {
      return this.#encode({ t: 'answer', at: 1, approval: String(message), answer: 'allow' })
    })
    this.#pieces = 0
    this.last = eventSeq(this.#end.seq, 0)
    await this.#writer.append(lines)
  }

  async addPieces(...deltas: readonly string[]): Promise<void> {
    const pieces = deltas.map((delta) => {
      const seq = pieceSeq(this.#end.seq, this.#pieces++)
      this.last = seq
      return { seq, text: JSON.stringify({ type: 'text', step: 0, at: 1, delta }) }
    })
    await this.#writer.append([], { pieces })
  }

  async startTurn(run: string): Promise<void> {
    const message = { role: 'user', content: [{ type: 'text', text: 'Go.' }] }
    const line = this.#encode({ t: 'input', at: 1, run, message, hooks: [] })
    this.#pieces = 0
    this.last = eventSeq(this.#end.seq, 0)
    await this.#writer.append([line], { startsTurn: true })
  }

  #encode(record: JsonObject): string {
    const { line, end } = encodeLine(record, this.#end)
    this.#end = end
    return line
  }

  release(): Promise<void> {
    return this.#writer.release()
  }
}

import { GrowingBuffer } from '../../system/processes/capped-output.ts'

const NEW_LINE = 10

/** Splits a stream of bytes into lines of limited length. Characters that are split between chunks are joined. */
export class LineReader {
  readonly #maxBytes: number
  /** The start of a line. It grows in place: chunks of one byte must not cost an object each. */
  #pending: GrowingBuffer

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
    this.#pending = new GrowingBuffer(maxBytes)
  }

  /** The lines that end in this chunk, or undefined if the current line is too long. */
  read(chunk: Buffer): readonly string[] | undefined {
    const lines: string[] = []
    let from = 0
    for (let at = chunk.indexOf(NEW_LINE); at !== -1; at = chunk.indexOf(NEW_LINE, from)) {
      const start = this.#pending.bytes
      if (start.length + at - from > this.#maxBytes) return undefined
      const line = start.length === 0 ? chunk.subarray(from, at) : Buffer.concat([start, chunk.subarray(from, at)])
      lines.push(line.toString('utf8').replace(/\r$/, ''))
      if (start.length > 0) this.#pending = new GrowingBuffer(this.#maxBytes)
      from = at + 1
    }
    const rest = this.#pending.fill(chunk.subarray(from))
    return rest.length === 0 ? lines : undefined
  }
}

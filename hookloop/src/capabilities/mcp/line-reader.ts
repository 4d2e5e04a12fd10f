import { GrowingBuffer } from '../../system/processes/capped-output.ts'

const NEW_LINE = 10

/** Splits a stream of bytes into lines of limited length. The SDK's own buffer copies all of a long line with every chunk. */
export class LineReader {
  readonly #maxBytes: number
  #start: GrowingBuffer

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
    this.#start = new GrowingBuffer(maxBytes)
  }

  /** The lines that end in this chunk, or undefined if one is too long. */
  read(chunk: Buffer): readonly string[] | undefined {
    const lines: string[] = []
    let from = 0
    for (let at = chunk.indexOf(NEW_LINE); at !== -1; at = chunk.indexOf(NEW_LINE, from)) {
      if (this.#start.fill(chunk.subarray(from, at)).length > 0) return undefined
      lines.push(this.#start.bytes.toString('utf8'))
      this.#start = new GrowingBuffer(this.#maxBytes)
      from = at + 1
    }
    return this.#start.fill(chunk.subarray(from)).length > 0 ? undefined : lines
  }
}

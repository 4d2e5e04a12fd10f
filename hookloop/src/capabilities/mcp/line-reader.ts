const NEW_LINE = 10
const EMPTY = Buffer.alloc(0)

/** Cuts a stream of bytes into lines, of bounded length. A character that was cut by a chunk is whole again in its line. */
export class LineReader {
  readonly #maxBytes: number
  /** The beginning of a line, with room to grow: pieces of one byte each must not cost an object each. */
  #kept = EMPTY
  #length = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** The lines that end in this chunk, or undefined when the one under way has become too long. */
  read(chunk: Buffer): readonly string[] | undefined {
    const lines: string[] = []
    let from = 0
    for (let at = chunk.indexOf(NEW_LINE); at !== -1; at = chunk.indexOf(NEW_LINE, from)) {
      const piece = chunk.subarray(from, at)
      if (this.#length + piece.length > this.#maxBytes) return undefined
      lines.push(this.#whole(piece).toString('utf8').replace(/\r$/, ''))
      from = at + 1
    }
    return this.#keep(chunk.subarray(from)) ? lines : undefined
  }

  #whole(piece: Buffer): Buffer {
    if (this.#length === 0) return piece
    const line = Buffer.concat([this.#kept.subarray(0, this.#length), piece])
    this.#kept = EMPTY
    this.#length = 0
    return line
  }

  #keep(piece: Buffer): boolean {
    const length = this.#length + piece.length
    if (length > this.#maxBytes) return false
    if (length > this.#kept.length) {
      const larger = Buffer.allocUnsafe(Math.max(length, this.#kept.length * 2))
      this.#kept.copy(larger, 0, 0, this.#length)
      this.#kept = larger
    }
    piece.copy(this.#kept, this.#length)
    this.#length = length
    return true
  }
}

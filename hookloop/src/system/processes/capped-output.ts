export type OutputCap = { readonly head: number; readonly tail: number }

/**
 * The stored part of a stream. If nothing was dropped, `head` is the complete text. Cuts are between characters: the bytes of a
 * character that was cut in two count as dropped.
 */
export type CappedText = {
  readonly head: string
  readonly tail: string
  readonly totalBytes: number
  readonly droppedBytes: number
}

/** Takes any number of bytes and stores the first and the last of them. Its memory is bounded by the cap. */
export class CappedOutput {
  readonly #head: GrowingBuffer
  readonly #tail: GrowingBuffer
  /** Where the next byte goes once the tail is full and used as a ring buffer. */
  #next = 0
  #total = 0

  constructor({ head, tail }: OutputCap) {
    this.#head = new GrowingBuffer(head)
    this.#tail = new GrowingBuffer(tail)
  }

  push(chunk: Uint8Array): void {
    this.#total += chunk.length
    const afterHead = this.#head.fill(chunk)
    const rest = this.#tail.fill(afterHead)
    if (rest.length > 0) this.#overwrite(rest)
  }

  #overwrite(chunk: Uint8Array): void {
    const ring = this.#tail.bytes
    if (ring.length === 0) return
    const last = chunk.subarray(Math.max(0, chunk.length - ring.length))
    const first = last.subarray(0, ring.length - this.#next)
    ring.set(first, this.#next)
    ring.set(last.subarray(first.length), 0)
    this.#next = (this.#next + last.length) % ring.length
  }

  result(): CappedText {
    const [head, ring] = [this.#head.bytes, this.#tail.bytes]
    const tail = Buffer.concat([ring.subarray(this.#next), ring.subarray(0, this.#next)])
    const totalBytes = this.#total
    if (head.length + tail.length === totalBytes) {
      return { head: Buffer.concat([head, tail]).toString('utf8'), tail: '', totalBytes, droppedBytes: 0 }
    }
    const trimmedHead = trimCutEnd(head)
    const trimmedTail = trimCutStart(tail)
    const droppedBytes = totalBytes - trimmedHead.length - trimmedTail.length
    return { head: trimmedHead.toString('utf8'), tail: trimmedTail.toString('utf8'), totalBytes, droppedBytes }
  }
}

/** The stored text in one piece, with a line that says how much was left out. */
export function joinCapped({ head, tail, droppedBytes }: CappedText): string {
  return droppedBytes === 0 ? head : `${head}\n[… ${droppedBytes} bytes left out …]\n${tail}`
}

const FIRST_CAPACITY = 1_024

/** Bytes up to a limit, in memory that grows by doubling: most output is short. */
export class GrowingBuffer {
  readonly #limit: number
  #buffer = Buffer.alloc(0)
  #length = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  /** Takes what fits and returns the rest. */
  fill(chunk: Uint8Array): Uint8Array {
    const taken = chunk.subarray(0, this.#limit - this.#length)
    if (taken.length === 0) return chunk
    const needed = this.#length + taken.length
    if (needed > this.#buffer.length) this.#grow(needed)
    this.#buffer.set(taken, this.#length)
    this.#length = needed
    return chunk.subarray(taken.length)
  }

  #grow(needed: number): void {
    const capacity = Math.min(this.#limit, Math.max(FIRST_CAPACITY, needed, this.#buffer.length * 2))
    const larger = Buffer.alloc(capacity)
    larger.set(this.bytes)
    this.#buffer = larger
  }
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

/** Drops the first bytes of a UTF-8 character that was cut off. It has at most four bytes, so it starts within the last three. */
export function trimCutEnd(bytes: Buffer): Buffer {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!
    if (isContinuation(byte)) continue
    const needs = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return needs > back ? bytes.subarray(0, bytes.length - back) : bytes
  }
  return bytes
}

function trimCutStart(bytes: Buffer): Buffer {
  let start = 0
  while (start < 3 && isContinuation(bytes[start])) start++
  return bytes.subarray(start)
}

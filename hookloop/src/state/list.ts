const CHUNK = 64

/** Results of `fold` by chunk, with the number of items they include. */
export type FoldCache<T, A> = WeakMap<Chunk<T>, { readonly value: A; readonly count: number }>

type Chunk<T> = readonly T[] | LazyChunk<T>

/** 64 items that are loaded when one of them is first read: a long conversation is opened without parsing all of it. */
class LazyChunk<T> {
  #load: (() => readonly T[]) | undefined
  #items: readonly T[] = []

  constructor(load: () => readonly T[]) {
    this.#load = load
  }

  get items(): readonly T[] {
    if (this.#load !== undefined) this.#items = this.#load()
    this.#load = undefined
    return this.#items
  }
}

function itemsOf<T>(chunk: Chunk<T>): readonly T[] {
  return chunk instanceof LazyChunk ? chunk.items : chunk
}

/**
 * An immutable list. Appending costs O(1) amortized and shares all items with the original; appending twice to the same list
 * copies at most one chunk. It iterates, spreads and prints like an array.
 */
export class List<T> implements Iterable<T> {
  /** Full chunks, shared with other versions of the list; only the first `#full` belong to this one. */
  readonly #chunks: Chunk<T>[]
  readonly #full: number
  /** Shared as well: another version may have pushed beyond what this one sees. */
  readonly #tail: T[]
  readonly #length: number

  private constructor(length: number, chunks: Chunk<T>[], full: number, tail: T[]) {
    this.#length = length
    this.#chunks = chunks
    this.#full = full
    this.#tail = tail
  }

  /** A getter for a private field: the length cannot be changed, and the list need not be frozen. */
  get length(): number {
    return this.#length
  }

  static empty<T>(): List<T> {
    return new List<T>(0, [], 0, [])
  }

  static from<T>(items: Iterable<T>): List<T> {
    if (items instanceof List) return items as List<T>
    let list = List.empty<T>()
    for (const item of items) list = list.append(item)
    return list
  }

  /** The number of items that `loaded` expects of each chunk. */
  static readonly chunkLength = CHUNK

  /** A list whose first chunks are loaded when they are needed, followed by fewer than a chunk of items. */
  static loaded<T>(chunks: readonly (() => readonly T[])[], rest: readonly T[]): List<T> {
    const lazy = chunks.map((load) => new LazyChunk(load))
    return new List<T>(lazy.length * CHUNK + rest.length, lazy, lazy.length, rest.slice())
  }

  append(item: T): List<T> {
    const used = this.length - this.#full * CHUNK
    if (used === CHUNK) return new List(this.length + 1, this.#sealed(), this.#full + 1, [item])
    const tail = this.#tail.length === used ? this.#tail : this.#tail.slice(0, used)
    tail.push(item)
    return new List(this.length + 1, this.#chunks, this.#full, tail)
  }

  concat(items: Iterable<T>): List<T> {
    return [...items].reduce<List<T>>((list, item) => list.append(item), this)
  }

  /** Whether this list starts with all items of the other one, compared by identity. */
  extends(other: List<T>): boolean {
    if (other.length > this.length) return false
    if (this.#tail === other.#tail && this.#chunks === other.#chunks) return true // it grew inside its last chunk
    for (let i = 0; i < other.length;) {
      const chunk = Math.floor(i / CHUNK)
      if (chunk < other.#full && this.#chunks[chunk] === other.#chunks[chunk]) {
        i += CHUNK // a shared chunk is not compared
      } else {
        if (this.at(i) !== other.at(i)) return false
        i++
      }
    }
    return true
  }

  /** The first `count` items, as a list that shares them. */
  take(count: number): List<T> {
    if (count >= this.length) return this
    const full = Math.floor(count / CHUNK)
    return new List(count, this.#chunks, full, full < this.#full ? (itemsOf(this.#chunks[full]!) as T[]) : this.#tail)
  }

  at(index: number): T | undefined {
    const i = index < 0 ? this.length + index : index
    if (i < 0 || i >= this.length) return undefined
    const chunk = Math.floor(i / CHUNK)
    return chunk < this.#full ? itemsOf(this.#chunks[chunk]!)[i % CHUNK] : this.#tail[i - this.#full * CHUNK]
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let i = 0; i < this.length; i++) yield this.at(i)!
  }

  slice(start = 0, end = this.length): T[] {
    const from = start < 0 ? Math.max(0, this.length + start) : start
    const to = Math.min(this.length, end < 0 ? this.length + end : end)
    const items: T[] = []
    for (let i = from; i < to; i++) items.push(this.at(i)!)
    return items
  }

  map<U>(change: (item: T, index: number) => U): U[] {
    return this.slice().map(change)
  }

  filter(keep: (item: T, index: number) => boolean): T[] {
    return this.slice().filter(keep)
  }

  find(wanted: (item: T) => boolean): T | undefined {
    for (let i = 0; i < this.length; i++) if (wanted(this.at(i)!)) return this.at(i)
    return undefined
  }

  findLast(wanted: (item: T) => boolean): T | undefined {
    for (let i = this.length - 1; i >= 0; i--) if (wanted(this.at(i)!)) return this.at(i)
    return undefined
  }

  some(wanted: (item: T) => boolean): boolean {
    return this.find(wanted) !== undefined
  }

  /**
   * Folds the list and remembers the result at the end of every chunk, so that folding a list that has grown costs only
   * what is new. The cache must be used with one `step` only.
   */
  fold<A>(cache: FoldCache<T, A>, initial: A, step: (sum: A, item: T) => A): A {
    const used = this.length - this.#full * CHUNK
    const last = cache.get(this.#tail)
    if (last !== undefined && last.count <= used) return this.#foldTail(cache, last, step)
    let chunk = this.#full
    let known: { readonly value: A; readonly count: number } | undefined
    while (known === undefined && chunk > 0) known = cache.get(this.#chunks[--chunk]!)
    let { value, count } = known ?? { value: initial, count: 0 }
    for (; chunk < this.#full; chunk++, count = 0) {
      if (count === CHUNK) continue
      const items = itemsOf(this.#chunks[chunk]!)
      for (let i = count; i < CHUNK; i++) value = step(value, items[i]!) // a part of it may have been folded while it was the last chunk
      cache.set(this.#chunks[chunk]!, { value, count: CHUNK })
    }
    return this.#foldTail(cache, { value, count: 0 }, step)
  }

  /** The result of folding the full chunks is known, so that folding the list does not load them. */
  knownFold<A>(cache: FoldCache<T, A>, value: A): void {
    const last = this.#chunks[this.#full - 1]
    if (last !== undefined) cache.set(last, { value, count: CHUNK })
  }

  /** The first items of a chunk never change, even if another list appends to it. */
  #foldTail<A>(cache: FoldCache<T, A>, from: { value: A; count: number }, step: (sum: A, item: T) => A): A {
    const used = this.length - this.#full * CHUNK
    let { value } = from
    for (let i = from.count; i < used; i++) value = step(value, this.#tail[i]!)
    if (used > from.count) cache.set(this.#tail, { value, count: used })
    return value
  }

  toJSON(): T[] {
    return this.slice()
  }

  [Symbol.for('nodejs.util.inspect.custom')](): T[] {
    return this.slice()
  }

  #sealed(): Chunk<T>[] {
    if (this.#chunks[this.#full] === this.#tail) return this.#chunks // another version has sealed this chunk
    const chunks = this.#chunks.length === this.#full ? this.#chunks : this.#chunks.slice(0, this.#full)
    chunks.push(this.#tail)
    return chunks
  }
}

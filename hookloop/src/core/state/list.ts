/** The result of folding a list whose last item was `last`, by the array that stores its items. */
export type FoldCache<T, A> = WeakMap<
  readonly T[],
  { readonly value: A; readonly length: number; readonly last: T | undefined }
>

/**
 * An immutable list that costs O(1) to append to: lists that grew from each other share one array. Each has its last item
 * apart, so that lists with different last items share it as well. Users see its `items`.
 */
export class List<T> {
  readonly length: number
  /** The items before the last one, and maybe items of longer lists. */
  #shared: T[]
  readonly #last: T | undefined
  #items: readonly T[] | undefined

  private constructor(length: number, shared: T[], last: T | undefined) {
    this.length = length
    this.#shared = shared
    this.#last = last
  }

  static from<T>(items: Iterable<T>): List<T> {
    const all = [...items]
    return new List(all.length, all, all.at(-1))
  }

  append(item: T): List<T> {
    return new List(this.length + 1, this.#stored(), item)
  }

  concat(items: readonly T[]): List<T> {
    return items.reduce<List<T>>((list, item) => list.append(item), this)
  }

  /** The first `count` items. */
  take(count: number): List<T> {
    return count >= this.length ? this : new List(count, this.#shared, this.#shared[count - 1])
  }

  at(index: number): T | undefined {
    const i = index < 0 ? this.length + index : index
    return i === this.length - 1 ? this.#last : i < this.length ? this.#shared[i] : undefined
  }

  find(wanted: (item: T) => boolean): T | undefined {
    for (let i = 0; i < this.length; i++) if (wanted(this.at(i)!)) return this.at(i)
    return undefined
  }

  /** The items from an index on; from the end if it is negative. */
  slice(start: number): T[] {
    if (this.length === 0) return []
    const items = this.#shared.slice(start < 0 ? Math.max(0, this.length + start) : start, this.length - 1)
    return start < this.length ? [...items, this.#last!] : items
  }

  /** All items as a frozen array, which is made at the first read. */
  get items(): readonly T[] {
    return (this.#items ??= Object.freeze(this.#stored().slice(0, this.length)))
  }

  /** Whether this list starts with all items of the other one, compared by identity. */
  extends(other: List<T>): boolean {
    if (other.length === 0) return true
    if (other.length > this.length || this.at(other.length - 1) !== other.at(-1)) return false
    return this.#shared === other.#shared || other.items.every((item, i) => this.at(i) === item)
  }

  /** Folds the list. With the same cache, folding a list that has grown costs only what is new. */
  fold<A>(cache: FoldCache<T, A>, initial: A, step: (sum: A, item: T) => A): A {
    const stored = this.#stored()
    const known = cache.get(stored)
    const isPart = known !== undefined && known.length <= this.length && this.at(known.length - 1) === known.last
    let value = isPart ? known.value : initial
    for (let i = isPart ? known.length : 0; i < this.length; i++) value = step(value, stored[i]!)
    cache.set(stored, { value, length: this.length, last: this.#last })
    return value
  }

  /** The shared array with the last item in its place; a copy if another list has stored a different one there. */
  #stored(): T[] {
    if (this.length === 0) return []
    const at = this.length - 1
    if (this.#shared.length === at) this.#shared.push(this.#last!)
    if (this.#shared[at] !== this.#last) this.#shared = [...this.#shared.slice(0, at), this.#last!]
    return this.#shared
  }
}

/** A record with the items of a list as a field: an array that is made at the first read. */
class ListField {
  readonly #list: List<unknown>

  constructor(record: object, field: string, list: List<unknown>) {
    this.#list = list
    Object.assign(this, record)
    Object.defineProperty(this, field, ListField.#items)
    Object.freeze(this)
  }

  /** An own property, so that `{ ...record }` has it too. */
  static readonly #items = {
    get(this: ListField): readonly unknown[] {
      return this.#list.items
    },
    enumerable: true,
  }

  static listOf(record: object): List<unknown> | undefined {
    return #list in record ? record.#list : undefined
  }

  [Symbol.for('nodejs.util.inspect.custom')](): object {
    return Object.fromEntries(Object.entries(this))
  }
}

/** A frozen copy of a record, with the items of a list as a field. */
export function withItems<R extends object, F extends string, T>(
  record: R,
  field: F,
  list: List<T>,
): Readonly<Omit<R, F>> & { readonly [_ in F]: readonly T[] } {
  return new ListField(record, field, list) as never
}

/** The list of a record from `withItems`. */
export function listIn(record: object): List<unknown> | undefined {
  return ListField.listOf(record)
}

/** A map with a maximum size. It drops the entry whose last `set` or `getOrAdd` was the longest time ago. */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #maxEntries: number
  readonly #onDrop: (value: V) => void

  constructor(maxEntries = 1_000, onDrop: (value: V) => void = () => {}) {
    super()
    this.#maxEntries = maxEntries
    this.#onDrop = onDrop
  }

  override set(key: K, value: V): this {
    this.delete(key)
    super.set(key, value)
    if (this.size > this.#maxEntries) {
      const [oldest, dropped] = this.entries().next().value!
      this.delete(oldest)
      this.#onDrop(dropped)
    }
    return this
  }

  /** Returns the value and removes it. */
  take(key: K): V | undefined {
    const value = this.get(key)
    this.delete(key)
    return value
  }

  getOrAdd(key: K, create: () => V): V {
    const value = this.has(key) ? this.get(key)! : create()
    this.set(key, value)
    return value
  }
}

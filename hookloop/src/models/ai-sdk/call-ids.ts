const MAX_LENGTH = 64

/**
 * Ids of calls as every provider takes them: letters, digits, _ and -, 64 at most, and no two the same in a whole
 * conversation, although it may come from another provider, or from one that counts its calls anew in every answer.
 */
export class CallIds {
  readonly #taken = new Set<string>()
  readonly #counts = new Map<string, number>()

  /** The id a call is sent with. Asked in the order of the conversation, so that it is the same each time. */
  next(id: string): string {
    const safe = id.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, MAX_LENGTH) || '_'
    let [unique, n] = [safe, this.#counts.get(safe) ?? 1]
    while (this.#taken.has(unique)) unique = `${safe.slice(0, MAX_LENGTH - 9)}_${++n}`
    this.#counts.set(safe, n)
    this.#taken.add(unique)
    return unique
  }
}

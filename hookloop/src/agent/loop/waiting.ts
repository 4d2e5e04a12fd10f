/** Work that is waited for until it ends, or until all of it is given up. */
export class Waiting {
  /** Not a Set: it mostly holds one, and a Set that loses its only member is made anew. */
  readonly #rejects: ((reason: unknown) => void)[] = []

  for<T>(work: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#rejects.push(reject)
      work.then(
        (value) => {
          this.#forget(reject)
          resolve(value)
        },
        (error: unknown) => {
          this.#forget(reject)
          reject(error)
        },
      )
    })
  }

  giveUp(reason: unknown): void {
    for (const reject of this.#rejects) reject(reason)
  }

  #forget(reject: (reason: unknown) => void): void {
    const last = this.#rejects.pop()! // takes the place of the one that goes: their order does not matter
    if (last !== reject) this.#rejects[this.#rejects.indexOf(reject)] = last
  }
}

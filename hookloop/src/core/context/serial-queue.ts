/** Runs one task at a time, in the order in which they were added. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve()

  run<T>(task: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(task)
    this.#last = turn.catch(() => undefined)
    return turn
  }
}

const PER_SECOND = 10_000

/** How many messages a server may send. One that sends without end keeps this process from everything else. */
export class MessageBudget {
  #second = 0
  #spent = 0

  /** Counts one message; false when there were too many in this second. */
  spend(): boolean {
    const second = Math.floor(performance.now() / 1_000)
    if (second !== this.#second) {
      this.#second = second
      this.#spent = 0
    }
    return ++this.#spent <= PER_SECOND
  }
}

export const floodWords = `it sent more than ${PER_SECOND.toLocaleString('en')} messages in a second`

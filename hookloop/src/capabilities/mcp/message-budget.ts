import type { JSONRPCMessage } from '@modelcontextprotocol/client'

const AT_ONCE = 10_000
const PER_SECOND = 1_000

/**
 * How much a server may say that nobody asked for. Answers are free, one for each request; whoever sends anything else
 * without end would keep this process from everything else.
 */
export class MessageBudget {
  readonly #asked = new Set<unknown>()
  #left = AT_ONCE
  #since = performance.now()

  /** Takes note of what is sent: a request may be answered once. */
  sent(message: JSONRPCMessage): void {
    if ('id' in message && 'method' in message) this.#asked.add(message.id)
  }

  /** Counts what was received, a message or something that is none; false when it was too much. */
  received(message?: JSONRPCMessage): boolean {
    if (message !== undefined && !('method' in message) && this.#asked.delete(message.id)) return true
    const now = performance.now()
    this.#left = Math.min(AT_ONCE, this.#left + ((now - this.#since) / 1_000) * PER_SECOND)
    this.#since = now
    this.#left -= 1
    return this.#left >= 0
  }
}

export const floodWords = 'it sent too many messages that nobody asked for'

import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'

/** A transport of the SDK that can say why it ended. */
export type McpTransport = Transport & {
  /** Why it ended, as text that can follow a colon; undefined while it is open, and after `close`. */
  readonly ended: string | undefined
  /** The end of what the server wrote to stderr. */
  readonly stderrText: string
  /** The process id, for a server that was started as a process. */
  readonly pid?: number | null
}

const BURST = 10_000
const PER_SECOND = 1_000

/**
 * Limits the messages of a server that are not responses. Responses are free, one for each request; an endless stream of other
 * messages would keep this process busy.
 */
export class MessageBudget {
  readonly #requested = new Set<unknown>()
  #left = BURST
  #since: number
  readonly #now: () => number

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
    this.#since = now()
  }

  /** Remembers a request, which may be answered once. */
  sent(message: JSONRPCMessage): void {
    if ('id' in message && 'method' in message) this.#requested.add(message.id)
  }

  /** Counts a message, or a line that is not one. Returns false when there were too many. */
  received(message?: JSONRPCMessage): boolean {
    if (message !== undefined && !('method' in message) && this.#requested.delete(message.id)) return true
    const now = this.#now()
    this.#left = Math.min(BURST, this.#left + ((now - this.#since) / 1_000) * PER_SECOND)
    this.#since = now
    this.#left -= 1
    return this.#left >= 0
  }
}

export const FLOODED = 'it sent too many unsolicited messages'

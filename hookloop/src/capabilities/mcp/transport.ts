import type { Transport } from '@modelcontextprotocol/client'

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

/** Counts the messages of a server: an endless stream of them would keep this process busy. */
export class MessageRate {
  #left = BURST
  #since = performance.now()

  /** Counts one message, and returns whether there were too many. */
  isExceeded(): boolean {
    const now = performance.now()
    this.#left = Math.min(BURST, this.#left + ((now - this.#since) / 1_000) * PER_SECOND) - 1
    this.#since = now
    return this.#left < 0
  }
}

/** The error code of a response that did not arrive, from the range that the protocol leaves free. */
export const MISSING_RESPONSE = -32_099

export const FLOODED = 'it sent too many messages'

import type { Json } from '../../data/json.ts'

/** What is told to a channel: what happened, in which execution of which agent, and when. */
export type Envelope = {
  readonly type: string
  readonly sessionId?: string
  readonly executionId: string
  readonly agentId: string
  /** Milliseconds since 1970. */
  readonly at: number
  readonly payload: { readonly [name: string]: Json }
}

/** Where envelopes go: a socket, a queue, a log. One at a time, in order. */
export type Channel = {
  publish(envelope: Envelope): void | Promise<void>
}

type Limits = { readonly maxQueue: number; readonly publishTimeoutMs: number }

/**
 * Stands between runs and one channel, so that neither waits for the other. What the channel has no time for is kept up to a
 * limit, and dropped beyond it; how many were lost is said in an envelope of its own before the next one that is told.
 */
export class Mailbox {
  readonly #channel: Channel
  readonly #limits: Limits
  readonly #waiting: Envelope[] = []
  #dropped = 0
  #isPublishing = false

  constructor(channel: Channel, limits: Limits) {
    this.#channel = channel
    this.#limits = limits
  }

  put(envelope: Envelope): void {
    if (this.#waiting.length >= this.#limits.maxQueue) {
      this.#dropped++
      return
    }
    this.#waiting.push(envelope)
    if (!this.#isPublishing) void this.#publishAll()
  }

  async #publishAll(): Promise<void> {
    this.#isPublishing = true
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      await this.#tellDropped(next)
      if (!(await this.#publish(next))) this.#dropped++
    }
    this.#isPublishing = false
  }

  async #tellDropped(next: Envelope): Promise<void> {
    const count = this.#dropped
    if (count === 0) return
    if (await this.#publish({ ...next, type: 'broadcast.dropped', payload: { count } })) this.#dropped -= count
  }

  /** Whether the channel took it, in time. */
  async #publish(envelope: Envelope): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined
    const over = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(reject, this.#limits.publishTimeoutMs)
      timer.unref() // nobody stays for a channel that does not answer
    })
    try {
      await Promise.race([this.#channel.publish(envelope), over])
      return true
    } catch {
      return false
    } finally {
      clearTimeout(timer)
    }
  }
}

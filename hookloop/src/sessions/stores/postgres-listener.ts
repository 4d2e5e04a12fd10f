import { hashText } from '../../state/json.ts'
import type { PostgresPool } from './postgres-queries.ts'

// Processes tell each other by NOTIFY which sessions have new events, and which runs are to stop. It is sent outside of the transaction that stores them,
// because commits that contain one wait for each other in the complete database, and for many appends at once. It may get lost:
// readers also look from time to time.

const NOTIFY_MS = 5
/** What precedes the id of a session whose run is to stop. No id starts with it, so older versions ignore it. */
export const STOP = '\n'
const MAX_PAUSE_MS = 5_000

/** What is needed of a connection that a pool lends. */
type Connection = {
  query(text: string): Promise<unknown>
  unref?(): void
  on(event: string, listener: (value?: { readonly payload?: string }) => void): unknown
  removeAllListeners?(event: string): unknown
  release(destroy?: boolean): void
}

type LendingPool = PostgresPool & {
  readonly connect?: () => Promise<Connection>
  readonly options?: { readonly max?: number }
}

/** The channel of the stores with the same schema. */
export function channelOf(schema: string): string {
  return `hookloop_${hashText(schema)}`
}

/** Sends the ids of sessions with new events, several at once. */
export class Notifier {
  readonly #send: (ids: readonly string[]) => Promise<unknown>
  #ids = new Set<string>()
  #sending: Promise<void> | undefined

  constructor(send: (ids: readonly string[]) => Promise<unknown>) {
    this.#send = send
  }

  changed(id: string): void {
    this.#ids.add(id)
    this.#sending ??= this.#sendAll()
  }

  /** Resolves when everything was sent. */
  async idle(): Promise<void> {
    await this.#sending
  }

  async #sendAll(): Promise<void> {
    await Promise.resolve() // what is changed at the same time is sent together
    while (this.#ids.size > 0) {
      const ids = [...this.#ids]
      this.#ids = new Set()
      await this.#send(ids).catch(() => undefined)
      await new Promise((resolve) => setTimeout(resolve, NOTIFY_MS))
    }
    this.#sending = undefined
  }
}

type ListenerOptions = {
  readonly pool: () => Promise<PostgresPool>
  readonly channel: string
  /** Called with the id of a session that has new events; without one when notifications may have been missed. */
  readonly onChange: (id?: string) => void
  /** The same for a session whose run is to stop. */
  readonly onStop: (id?: string) => void
}

/** Listens on one connection of a pool, and connects again when it is lost. */
export class Listener {
  readonly #of: ListenerOptions
  #users = 0
  #connection: Connection | undefined
  #failures = 0
  #timer: NodeJS.Timeout | undefined

  constructor(of: ListenerOptions) {
    this.#of = of
  }

  get isListening(): boolean {
    return this.#connection !== undefined
  }

  /** Listens until `stop` was called as often. It does not keep the process alive. */
  start(): void {
    if (this.#users++ === 0) void this.#connect()
  }

  stop(): void {
    if (--this.#users > 0) return
    clearTimeout(this.#timer)
    this.#lose(this.#connection)
  }

  async #connect(): Promise<void> {
    let connection: Connection | undefined
    try {
      const pool: LendingPool = await this.#of.pool()
      // Not the only connection of a pool: all queries would wait for it.
      if (typeof pool.connect !== 'function' || pool.options?.max === 1) return
      connection = await pool.connect()
      const mine = connection
      for (const end of ['error', 'end']) mine.on(end, () => this.#lose(mine))
      mine.on('notification', (message) => this.#notified(message?.payload ?? ''))
      await mine.query(`LISTEN ${this.#of.channel}`)
      if (this.#users === 0 || this.#connection !== undefined) return mine.release(true)
      mine.unref?.()
      this.#connection = mine
      this.#failures = 0
      this.#of.onChange()
      this.#of.onStop()
    } catch {
      connection?.release(true)
      this.#connectLater()
    }
  }

  #notified(payload: string): void {
    if (payload.startsWith(STOP)) this.#of.onStop(payload.slice(STOP.length))
    else this.#of.onChange(payload)
  }

  /** A connection that listened is not used for anything else. */
  #lose(connection: Connection | undefined): void {
    if (connection === undefined || connection !== this.#connection) return
    this.#connection = undefined
    connection.release(true)
    this.#connectLater()
  }

  #connectLater(): void {
    if (this.#users === 0) return
    const pause = Math.min(MAX_PAUSE_MS, 50 * 2 ** this.#failures++)
    this.#timer = setTimeout(() => void this.#connect(), pause).unref()
  }
}

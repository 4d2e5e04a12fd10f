import type { CallToolResult, Client } from '@modelcontextprotocol/client'
import type { JsonObject } from '../../state/json.ts'
import { abortable, MAX_TIMER_MS, withTimeout } from '../../system/timeout.ts'
import { messageOf } from '../../errors.ts'
import { failureOf, isForgotten } from './failure-words.ts'
import { HttpLink } from './http-link.ts'
import type { Link } from './link.ts'
import type { Sdk } from './load-sdk.ts'
import { plainRequest, readPages, type Listed } from './pages.ts'
import { fingerprintsOf, type ServerTool } from './server-tools.ts'
import type { ServerSettings } from './settings.ts'
import { StdioLink } from './stdio-link.ts'
import { cleaned, safeWords } from './words.ts'

/** A server that is spoken to. */
type Connected = {
  readonly client: Client
  readonly link: Link
  /** Its tools as it listed them last: names, and what each is recognised by. */
  known: ReturnType<typeof fingerprintsOf>
  /** The server says that its tools have changed. */
  isStale: boolean
  /** The server does not know this connection any more. */
  isForgotten: boolean
}

export type CallOptions = {
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((update: JsonObject) => void) | undefined
}

/** How long to wait for a process that is asked for the newest protocol and says nothing, as old ones may. */
const PROBE_MS = 10_000
const MAX_PROGRESS = 1_000
const MAX_PROGRESS_CHARS = 500
const NOT_MADE = 'The call was not made.'
const MAYBE = 'The call may have had its effect: look before you repeat it.'

/**
 * One server. It is connected once and, when it is gone, once more with the next call; a call that failed is never
 * repeated, because it may have had its effect.
 */
export class Connection {
  readonly settings: ServerSettings
  readonly #sdk: Sdk
  readonly #called: string
  #now: Connected | undefined
  #opening: Promise<Connected> | undefined
  #reconnects = 0
  #isClosed = false
  #calls = 0
  readonly #watchers = new Map<unknown, (progress: Progress) => void>()

  constructor(sdk: Sdk, settings: ServerSettings) {
    this.#sdk = sdk
    this.settings = settings
    this.#called = `The MCP server "${settings.name}"`
  }

  /** Connects for the first time, and gives what the server says about itself and its tools. */
  async open(): Promise<{ readonly client: Client; readonly listed: Listed }> {
    const { connected, listed } = await this.#connect()
    this.#now = connected
    return { client: connected.client, listed }
  }

  /** Calls a tool, if it still is the one that was offered. It takes as long as the signal lets it. */
  async callTool(tool: ServerTool, args: JsonObject, { signal, onProgress }: CallOptions): Promise<CallToolResult> {
    const connected = await this.#ready(signal)
    await this.#checkUnchanged(connected, tool, signal)
    const token = `call-${this.#calls++}`
    if (onProgress !== undefined) this.#watchers.set(token, boundedProgress(onProgress))
    const params = { name: tool.ownName, arguments: args, ...(onProgress && { _meta: { progressToken: token } }) }
    const options = { timeout: MAX_TIMER_MS, toolDefinition: tool.definition as never, ...(signal && { signal }) }
    try {
      return await this.#ask(connected, () => connected.client.callTool(params, options))
    } finally {
      this.#watchers.delete(token)
    }
  }

  /** Any other request, its answer as it came. */
  async request(method: string, params: JsonObject, { signal }: CallOptions = {}): Promise<JsonObject> {
    const connected = await this.#ready(signal)
    return this.#ask(connected, () => plainRequest(connected.client, { method, params }, this.#sendOptions(signal)))
  }

  async list(method: string, key: string, { signal }: CallOptions = {}): Promise<Listed> {
    const connected = await this.#ready(signal)
    return this.#ask(connected, () => readPages(connected.client, { method, key }, this.#sendOptions(signal)))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#opening?.catch(() => undefined)
    await this.#now?.link.close()
  }

  #sendOptions(signal: AbortSignal | undefined) {
    return { timeout: Math.min(this.settings.callTimeoutMs, MAX_TIMER_MS), ...(signal && { signal }) }
  }

  async #ask<T>(connected: Connected, ask: () => Promise<T>): Promise<T> {
    try {
      return await ask()
    } catch (thrown) {
      const { words, mayHaveActed } = failureOf(thrown, connected.link, this.settings.secrets)
      if (isForgotten(thrown, connected.link)) connected.isForgotten = true
      throw new Error(`${this.#called} ${words}.${mayHaveActed ? ` ${MAYBE}` : ''}`, { cause: thrown })
    }
  }

  /** The connection, made anew if it is gone. Whoever comes meanwhile waits for the same one. */
  async #ready(signal: AbortSignal | undefined): Promise<Connected> {
    signal?.throwIfAborted()
    if (this.#isClosed) throw new Error(`${this.#called} was closed. ${NOT_MADE}`)
    const now = this.#now
    if (now !== undefined && now.client.transport !== undefined && !now.isForgotten) return now
    if (this.#opening === undefined && this.#reconnects >= this.settings.maxReconnects) {
      const why = safeWords(now?.link.ended ?? 'the connection was closed', this.settings.secrets)
      throw new Error(`${this.#called} is gone: ${why}. It is not connected again. ${NOT_MADE}`)
    }
    this.#opening ??= this.#reconnect()
    return abortable(this.#opening, signal)
  }

  async #reconnect(): Promise<Connected> {
    this.#reconnects++
    try {
      await this.#now?.link.close()
      const { connected } = await this.#connect()
      this.#now = connected
      if (this.#isClosed) await connected.link.close()
      return connected
    } catch (thrown) {
      throw new Error(`${messageOf(thrown)} ${NOT_MADE}`, { cause: thrown })
    } finally {
      this.#opening = undefined
    }
  }

  async #connect(): Promise<{ readonly connected: Connected; readonly listed: Listed }> {
    try {
      return await this.#connectWith('auto')
    } catch (thrown) {
      // Servers built on old SDKs end when they are asked for anything before the handshake.
      if (thrown instanceof ConnectFailure && thrown.didEnd) return this.#connectWith('legacy')
      throw thrown
    }
  }

  async #connectWith(mode: 'auto' | 'legacy'): Promise<{ readonly connected: Connected; readonly listed: Listed }> {
    const { connectTimeoutMs: ms, roots } = this.settings
    const link = this.#newLink()
    const isProcess = 'command' in this.settings.place
    const client = new this.#sdk.Client(
      { name: 'hookloop', version: '1' },
      {
        capabilities: roots.length === 0 ? {} : { roots: {} },
        versionNegotiation: { mode, probe: { timeoutMs: isProcess ? Math.min(PROBE_MS, ms / 2) : ms } },
      },
    )
    this.#answerRequests(client)
    try {
      return await withTimeout(this.#handshake(client, link), ms, () => new ConnectTimeout())
    } catch (thrown) {
      const failure = this.#connectFailure(thrown, link)
      await link.close()
      throw failure
    }
  }

  async #handshake(client: Client, link: Link): Promise<{ readonly connected: Connected; readonly listed: Listed }> {
    const timeout = Math.min(this.settings.connectTimeoutMs, MAX_TIMER_MS)
    await client.connect(link, { timeout })
    const listed =
      client.getServerCapabilities()?.tools === undefined
        ? { items: [], isWhole: true }
        : await readPages(client, { method: 'tools/list', key: 'tools' }, { timeout })
    const connected = { client, link, known: fingerprintsOf(listed), isStale: false, isForgotten: false }
    client.setNotificationHandler('notifications/tools/list_changed', () => {
      connected.isStale = true
    })
    // Not the SDK's own: it forgets who watches as soon as the answer is there, and so loses the last steps before it.
    client.setNotificationHandler('notifications/progress', ({ params }) => {
      this.#watchers.get(params.progressToken)?.(params)
    })
    return { connected, listed }
  }

  #newLink(): Link {
    const { place, maxMessageBytes } = this.settings
    return 'command' in place
      ? new StdioLink(this.#sdk, place, { maxMessageBytes })
      : new HttpLink(this.#sdk, place, { maxMessageBytes })
  }

  /** A server may ask where to work. It gets no model to use and no person to question. */
  #answerRequests(client: Client): void {
    const { roots } = this.settings
    if (roots.length > 0) client.setRequestHandler('roots/list', () => ({ roots: roots.map((uri) => ({ uri })) }))
    client.fallbackRequestHandler = async ({ method }) => {
      throw Object.assign(new Error(`"${cleaned(method, 80)}" is not offered by this client.`), { code: -32_601 })
    }
  }

  #connectFailure(thrown: unknown, link: Link): ConnectFailure {
    const { secrets, connectTimeoutMs } = this.settings
    const { words } =
      thrown instanceof ConnectTimeout
        ? { words: `did not answer within ${connectTimeoutMs} ms` }
        : failureOf(thrown, link, secrets)
    const why = link.ended === undefined ? `it ${words}` : safeWords(link.ended, secrets)
    const complaints = safeWords(link.complaints, secrets)
    return new ConnectFailure(
      `${this.#called} cannot be connected: ${why.replace(/\.$/, '')}.${complaints === '' ? '' : ` It wrote: ${complaints}`}`,
      link.ended !== undefined && link.pid !== null,
    )
  }

  /** A server that says its tools have changed is asked again before the next call: what was offered is what is called. */
  async #checkUnchanged(connected: Connected, tool: ServerTool, signal: AbortSignal | undefined): Promise<void> {
    if (connected.isStale) {
      connected.known = fingerprintsOf(await this.list('tools/list', 'tools', { signal }))
      connected.isStale = false
    }
    const { names, fingerprints, isWhole } = connected.known
    if (fingerprints.has(tool.fingerprint)) return
    if (names.has(tool.ownName)) {
      throw new Error(`${this.#called} has changed this tool since it was offered. ${NOT_MADE}`)
    }
    if (isWhole) throw new Error(`${this.#called} has no such tool any more. ${NOT_MADE}`)
  }
}

class ConnectTimeout extends Error {}

class ConnectFailure extends Error {
  /** Whether the process was there and has ended. */
  readonly didEnd: boolean

  constructor(message: string, didEnd: boolean) {
    super(message)
    this.didEnd = didEnd
  }
}

type Progress = {
  readonly progress: number
  readonly total?: number | undefined
  readonly message?: string | undefined
}

function boundedProgress(tell: (update: JsonObject) => void): (progress: Progress) => void {
  let told = 0
  return ({ progress, total, message }) => {
    if (++told > MAX_PROGRESS) return
    tell({
      progress,
      ...(total !== undefined && { total }),
      ...(message !== undefined && { message: cleaned(message, MAX_PROGRESS_CHARS) }),
    })
  }
}

import type { Client } from '@modelcontextprotocol/client'
import { isJsonObject, type JsonObject } from '../../values/json.ts'
import { abortable, MAX_TIMER_MS, withTimeout } from '../../system/timeout.ts'
import { messageOf } from '../../errors.ts'
import { cleanText, redactMessage } from './clean-text.ts'
import { describeFailure, isSessionLost } from './describe-failure.ts'
import { httpTransport } from './http-transport.ts'
import type { Sdk } from './load-sdk.ts'
import { anything, plainRequest, readPages, type Listed } from './pages.ts'
import { compareTool, type ServerTool } from './server-tools.ts'
import type { ServerSettings } from './settings.ts'
import { StdioTransport } from './stdio-transport.ts'
import type { McpTransport } from './transport.ts'

/** A connected server. */
type Connected = {
  readonly client: Client
  readonly transport: McpTransport
  /** Its tools as listed last. */
  listed: Listed
  /** Whether the server has reported a change of its tools. */
  isStale: boolean
  /** Whether the server no longer knows the session. */
  isSessionLost: boolean
}

export type CallOptions = {
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((update: JsonObject) => void) | undefined
}

/** How long to wait for an answer to the newest protocol version, which old servers may ignore. */
const PROBE_MS = 10_000
const MAX_PROGRESS = 1_000
const MAX_PROGRESS_CHARS = 500
const NOT_MADE = 'The call was not made.'
const MAY_HAVE_ACTED = 'The call may have had an effect: check before you repeat it.'

/**
 * The connection to one server. After the server has disconnected, the next call connects again. A failed call is never
 * repeated, because it may have had an effect.
 */
export class Connection {
  readonly settings: ServerSettings
  readonly #sdk: Sdk
  readonly #title: string
  #now: Connected | undefined
  #opening: Promise<Connected> | undefined
  #reconnects = 0
  #isClosed = false
  #calls = 0
  readonly #progressListeners = new Map<unknown, (progress: Progress) => void>()

  constructor(sdk: Sdk, settings: ServerSettings) {
    this.#sdk = sdk
    this.settings = settings
    this.#title = `The MCP server "${settings.name}"`
  }

  /** Connects for the first time. */
  async open(): Promise<Pick<Connected, 'client' | 'listed'>> {
    return (this.#now = await this.#connect())
  }

  /** Calls a tool if it has not changed since it was offered. Only the signal limits its time. */
  async callTool(tool: ServerTool, args: JsonObject, { signal, onProgress }: CallOptions): Promise<JsonObject> {
    const connected = await this.#ready(signal)
    await this.#checkUnchanged(connected, tool, signal)
    const token = `call-${this.#calls++}`
    if (onProgress !== undefined) this.#progressListeners.set(token, boundedProgress(onProgress))
    const params = { name: tool.ownName, arguments: args, ...(onProgress && { _meta: { progressToken: token } }) }
    const options = { timeout: MAX_TIMER_MS, toolDefinition: tool.definition as never, ...(signal && { signal }) }
    try {
      return await this.#send(connected, async () => {
        const result: unknown = await connected.client.callTool(params, options)
        const problem = resultProblem(result)
        if (problem !== undefined) throw Object.assign(new Error(problem), { code: 'INVALID_RESULT' })
        return result as JsonObject
      })
    } finally {
      this.#progressListeners.delete(token)
    }
  }

  /** Sends any other request. */
  async request(method: string, params: JsonObject, { signal }: CallOptions = {}): Promise<JsonObject> {
    const connected = await this.#ready(signal)
    return this.#send(connected, () => plainRequest(connected.client, { method, params }, this.#sendOptions(signal)))
  }

  async list(method: string, key: string, { signal }: CallOptions = {}): Promise<Listed> {
    const connected = await this.#ready(signal)
    return this.#send(connected, () => readPages(connected.client, { method, key }, this.#sendOptions(signal)))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#opening?.catch(() => undefined)
    await this.#now?.transport.close()
  }

  #sendOptions(signal: AbortSignal | undefined) {
    return { timeout: Math.min(this.settings.callTimeoutMs, MAX_TIMER_MS), ...(signal && { signal }) }
  }

  async #send<T>(connected: Connected, send: () => Promise<T>): Promise<T> {
    try {
      return await send()
    } catch (thrown) {
      const { text, mayHaveActed } = describeFailure(thrown, connected.transport, this.settings.secrets)
      if (isSessionLost(thrown, connected.transport)) connected.isSessionLost = true
      throw new Error(`${this.#title} ${text}.${mayHaveActed ? ` ${MAY_HAVE_ACTED}` : ''}`, { cause: thrown })
    }
  }

  /** The connection, connected again if necessary. Concurrent calls wait for the same attempt. */
  async #ready(signal: AbortSignal | undefined): Promise<Connected> {
    signal?.throwIfAborted()
    if (this.#isClosed) throw new Error(`${this.#title} was closed. ${NOT_MADE}`)
    const now = this.#now
    if (now !== undefined && now.client.transport !== undefined && !now.isSessionLost) return now
    if (this.#opening === undefined && this.#reconnects >= this.settings.maxReconnects) {
      const why = redactMessage(now?.transport.ended ?? 'the connection was closed', this.settings.secrets)
      throw new Error(`${this.#title} has disconnected: ${why}. It is not connected again (maxReconnects). ${NOT_MADE}`)
    }
    this.#opening ??= this.#reconnect()
    return abortable(this.#opening, signal)
  }

  async #reconnect(): Promise<Connected> {
    this.#reconnects++
    try {
      await this.#now?.transport.close()
      const connected = await this.#connect()
      this.#now = connected
      if (this.#isClosed) await connected.transport.close()
      return connected
    } catch (thrown) {
      throw new Error(`${messageOf(thrown)} ${NOT_MADE}`, { cause: thrown })
    } finally {
      this.#opening = undefined
    }
  }

  async #connect(): Promise<Connected> {
    try {
      return await this.#connectWith('auto')
    } catch (thrown) {
      // Servers built on old SDKs exit on any request before the handshake.
      if (thrown instanceof ConnectFailure && thrown.didEnd) return this.#connectWith('legacy')
      throw thrown
    }
  }

  async #connectWith(mode: 'auto' | 'legacy'): Promise<Connected> {
    const { connectTimeoutMs: ms, roots } = this.settings
    const transport = this.#newTransport()
    const isProcess = 'command' in this.settings.endpoint
    const client = new this.#sdk.Client(
      { name: 'hookloop', version: '1' },
      {
        capabilities: roots.length === 0 ? {} : { roots: {} },
        versionNegotiation: { mode, probe: { timeoutMs: isProcess ? Math.min(PROBE_MS, ms / 2) : ms } },
      },
    )
    acceptAnyResult(client)
    this.#answerRequests(client)
    try {
      return await withTimeout(this.#handshake(client, transport), ms, () => new ConnectTimeout())
    } catch (thrown) {
      const failure = this.#connectFailure(thrown, transport)
      await transport.close()
      throw failure
    }
  }

  async #handshake(client: Client, transport: McpTransport): Promise<Connected> {
    const timeout = Math.min(this.settings.connectTimeoutMs, MAX_TIMER_MS)
    await client.connect(transport, { timeout })
    const listed =
      client.getServerCapabilities()?.tools === undefined
        ? { items: [], isComplete: true }
        : await readPages(client, { method: 'tools/list', key: 'tools' }, { timeout })
    const connected = { client, transport, listed, isStale: false, isSessionLost: false }
    client.setNotificationHandler('notifications/tools/list_changed', () => {
      connected.isStale = true
    })
    // Not the SDK's own handling: it drops progress that arrives right before the response.
    client.setNotificationHandler('notifications/progress', ({ params }) => {
      this.#progressListeners.get(params.progressToken)?.(params)
    })
    return connected
  }

  #newTransport(): McpTransport {
    const { endpoint, maxMessageBytes } = this.settings
    return 'command' in endpoint
      ? new StdioTransport(this.#sdk, endpoint, { maxMessageBytes })
      : httpTransport(this.#sdk, endpoint, { maxMessageBytes })
  }

  /** A server may request the roots, but neither sampling nor elicitation. */
  #answerRequests(client: Client): void {
    const { roots } = this.settings
    if (roots.length > 0) client.setRequestHandler('roots/list', () => ({ roots: roots.map((uri) => ({ uri })) }))
    client.fallbackRequestHandler = async ({ method }) => {
      throw Object.assign(new Error(`"${cleanText(method, 80)}" is not supported by this client.`), { code: -32_601 })
    }
  }

  #connectFailure(thrown: unknown, transport: McpTransport): ConnectFailure {
    const { secrets, connectTimeoutMs } = this.settings
    const text =
      thrown instanceof ConnectTimeout
        ? `did not answer within ${connectTimeoutMs} ms`
        : describeFailure(thrown, transport, secrets).text
    const why = transport.ended === undefined ? `it ${text}` : redactMessage(transport.ended, secrets)
    const stderr = redactMessage(transport.stderrText, secrets)
    return new ConnectFailure(
      `${this.#title} cannot be connected: ${why.replace(/\.$/, '')}.${stderr === '' ? '' : ` It wrote: ${stderr}`}`,
      transport.ended !== undefined && transport.pid !== null,
    )
  }

  /** After a change of the tools they are listed again before the next call, so that only the offered tool is called. */
  async #checkUnchanged(connected: Connected, tool: ServerTool, signal: AbortSignal | undefined): Promise<void> {
    if (connected.isStale) {
      connected.listed = await this.list('tools/list', 'tools', { signal })
      connected.isStale = false
    }
    const { items, isComplete } = connected.listed
    const found = compareTool(tool, items)
    if (found === 'changed') throw new Error(`${this.#title} has changed this tool since it was offered. ${NOT_MADE}`)
    if (found === 'gone' && isComplete) throw new Error(`${this.#title} no longer has this tool. ${NOT_MADE}`)
  }
}

/** Requests that the SDK sends by itself, such as a tool call, are answered without its validation too. */
function acceptAnyResult(client: Client): void {
  const send = client.request.bind(client) as (...given: readonly unknown[]) => Promise<unknown>
  const request = (message: unknown, ...[schema, ...rest]: readonly unknown[]): Promise<unknown> =>
    isJsonObject(schema) && '~standard' in schema ? send(message, schema, ...rest) : send(message, anything, schema)
  Object.assign(client, { request })
}

function resultProblem(result: unknown): string | undefined {
  if (!isJsonObject(result)) return 'it is not an object'
  const { content = [], isError = false } = result
  if (!Array.isArray(content) || !content.every(isJsonObject)) return 'its "content" is not a list of objects'
  return typeof isError === 'boolean' ? unfinished(result) : 'its "isError" is not a boolean'
}

/** What a result may have besides its content. */
const BESIDES = ['_meta', 'isError', 'resultType', 'ttlMs', 'cacheScope']

/** A task, a request for input or another result that is not one of a tool must not look like a call without output. */
function unfinished(result: JsonObject): string | undefined {
  const { resultType = 'complete', content, structuredContent } = result
  if (resultType !== 'complete') return 'its "resultType" is not "complete"'
  const other = content === undefined && structuredContent === undefined ? Object.keys(result) : []
  const unknown = other.find((key) => !BESIDES.includes(key))
  return unknown === undefined ? undefined : `it has no "content", but "${cleanText(unknown, 40)}"`
}

class ConnectTimeout extends Error {}

class ConnectFailure extends Error {
  /** Whether the process was started and has ended. */
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

function boundedProgress(report: (update: JsonObject) => void): (progress: Progress) => void {
  let count = 0
  return ({ progress, total, message }) => {
    if (++count > MAX_PROGRESS) return
    report({
      progress,
      ...(total !== undefined && { total }),
      ...(message !== undefined && { message: cleanText(message, MAX_PROGRESS_CHARS) }),
    })
  }
}

import type {
  AgentApp,
  AgentContext,
  ContentBlock,
  LoadSessionRequest,
  NewSessionRequest,
  SessionInfo,
  SessionUpdate,
  StopReason,
} from '@agentclientprotocol/sdk'
import type { AskedAnswer } from '../../core/agent/capability.ts'
import { explain } from '../../core/explain/explain.ts'
import type { Run } from '../../core/agent/run.ts'
import type { Session } from '../../core/agent/session.ts'
import { AgentError, messageOf } from '../../errors.ts'
import { readRuns } from '../../sessions/log/read-runs.ts'
import type { SessionStore } from '../../sessions/stores/store.ts'
import type { JsonObject } from '../../values/json.ts'
import type { Approval } from '../../core/state/tool-call.ts'
import { newSessionId } from '../sessions/find-session.ts'
import { chunk, historyOf, toMessage } from './content.ts'
import { TurnUpdates } from './turn-updates.ts'

type Sdk = typeof import('@agentclientprotocol/sdk')

/** A session with its agent, which asks the editor for approvals. */
export type EditorSession = { readonly session: Session<unknown>; readonly metadata: JsonObject }

export type AcpOptions = {
  readonly sdk: Sdk
  readonly store: SessionStore
  readonly version: string
  /** Opens a session in the current folder. `ask` asks the editor. */
  readonly open: (
    id: string,
    ask: (question: Approval, signal: AbortSignal) => Promise<AskedAnswer>,
  ) => Promise<EditorSession>
  /** For the log of the editor. */
  readonly note: (text: string) => void
}

type Turn = { readonly updates: TurnUpdates; readonly controller: AbortController; readonly ended: Promise<unknown> }
type Opened = EditorSession & { turn?: Turn | undefined }

const PAGE = 100

/** The agent side of the Agent Client Protocol: sessions of a store, each with an agent. */
export class AcpAgent {
  readonly #options: AcpOptions
  readonly #sessions = new Map<string, Opened>()
  /** The folder that this process works in, once an editor has named one. */
  #cwd: string | undefined

  constructor(options: AcpOptions) {
    this.#options = options
  }

  /** Registers what an editor can request. */
  register(app: AgentApp): AgentApp {
    const { methods, PROTOCOL_VERSION } = this.#options.sdk
    return app
      .onRequest(methods.agent.initialize, () => ({
        protocolVersion: PROTOCOL_VERSION,
        agentInfo: { name: 'hookloop', version: this.#options.version },
        agentCapabilities: {
          loadSession: true,
          promptCapabilities: { image: true, audio: true, embeddedContext: true },
          sessionCapabilities: { list: {} },
        },
        authMethods: [],
      }))
      .onRequest(methods.agent.session.new, ({ params, client }) => this.#create(params, client))
      .onRequest(methods.agent.session.load, ({ params, client }) => this.#load(params, client))
      .onRequest(methods.agent.session.list, ({ params }) =>
        this.#list(params.cwd ?? undefined, params.cursor ?? undefined),
      )
      .onRequest(methods.agent.session.prompt, ({ params, client }) =>
        this.#prompt(params.sessionId, params.prompt, client),
      )
      .onNotification(methods.agent.session.cancel, ({ params }) => this.#cancel(params.sessionId))
  }

  /** Cancels all turns, and resolves when they have ended. */
  async close(): Promise<void> {
    const turns = [...this.#sessions.values()].flatMap(({ turn }) => turn ?? [])
    for (const { controller } of turns) controller.abort()
    await Promise.allSettled(turns.map(({ ended }) => ended))
  }

  async #create({ cwd, mcpServers }: NewSessionRequest, client: AgentContext) {
    this.#enter(cwd, mcpServers)
    const sessionId = await newSessionId(this.#options.store)
    await this.#open(sessionId, client)
    return { sessionId }
  }

  async #load({ sessionId, cwd, mcpServers }: LoadSessionRequest, client: AgentContext) {
    const { store, sdk } = this.#options
    this.#enter(cwd, mcpServers)
    const stored = await store.read(sessionId, { after: Infinity })
    if (stored === undefined) throw sdk.RequestError.sessionNotFound(sessionId)
    await this.#open(sessionId, client)
    for (const update of historyOf(await readRuns(store, sessionId))) await this.#send(client, sessionId, update)
    return {}
  }

  /** An editor names a folder with each session, and tools work in the folder of their process: all must name the same. */
  #enter(cwd: string, mcpServers: readonly unknown[]): void {
    const { sdk, note } = this.#options
    if (this.#cwd !== undefined && this.#cwd !== cwd)
      throw sdk.RequestError.invalidParams({ cwd }, `This process works in ${this.#cwd}. Start another one for ${cwd}.`)
    try {
      process.chdir(cwd)
    } catch (error) {
      throw sdk.RequestError.invalidParams({ cwd }, messageOf(error))
    }
    this.#cwd = cwd
    if (mcpServers.length > 0) note('The MCP servers of the editor are not used. Name them in the agent file: mcp().')
  }

  async #open(id: string, client: AgentContext): Promise<void> {
    if (this.#sessions.has(id)) return
    const ask = (question: Approval, signal: AbortSignal): Promise<AskedAnswer> =>
      this.#ask(client, id, question, signal)
    this.#sessions.set(id, await this.#options.open(id, ask))
  }

  async #list(cwd: string | undefined, cursor: string | undefined) {
    const page = await this.#options.store.list({ limit: PAGE, ...(cursor !== undefined && { after: cursor }) })
    const sessions = page.flatMap(({ id, head, updatedAt }): readonly SessionInfo[] => {
      const { title, cwd: folder = '' } = head as { readonly title?: string; readonly cwd?: string }
      if (cwd !== undefined && folder !== cwd) return []
      return [{ sessionId: id, cwd: folder, title: title ?? null, updatedAt: new Date(updatedAt).toISOString() }]
    })
    return { sessions, ...(page.length === PAGE && { nextCursor: page.at(-1)!.id }) }
  }

  async #prompt(
    id: string,
    prompt: readonly ContentBlock[],
    client: AgentContext,
  ): Promise<{ stopReason: StopReason }> {
    const { sdk, store } = this.#options
    const opened = this.#sessions.get(id)
    if (opened === undefined) throw sdk.RequestError.sessionNotFound(id)
    if (opened.turn !== undefined)
      throw sdk.RequestError.invalidRequest({ sessionId: id }, 'A turn of this session is running. Cancel it first.')
    const controller = new AbortController()
    const before = (await store.read(id, { after: Infinity }))?.head['costUsd']
    const updates = new TurnUpdates(crypto.randomUUID(), typeof before === 'number' ? before : 0)
    const ended = this.#run(opened, { id, prompt, client, updates, signal: controller.signal })
    opened.turn = { updates, controller, ended }
    try {
      return { stopReason: await ended }
    } catch (error) {
      throw error instanceof AgentError ? sdk.RequestError.internalError({ code: error.code }, error.message) : error
    } finally {
      opened.turn = undefined
    }
  }

  async #run(
    { session, metadata }: Opened,
    {
      id,
      prompt,
      client,
      updates,
      signal,
    }: {
      readonly id: string
      readonly prompt: readonly ContentBlock[]
      readonly client: AgentContext
      readonly updates: TurnUpdates
      readonly signal: AbortSignal
    },
  ): Promise<StopReason> {
    // A question or a turn that the editor left behind is closed: it cannot answer it any more.
    const live = session.stream(toMessage(prompt), { signal, metadata, onNewInput: 'block' })
    for await (const event of live) for (const update of updates.of(event)) await this.#send(client, id, update)
    const run = await live.run
    if (run.status === 'stopped' || run.status === 'failed' || run.status === 'suspended')
      await this.#send(client, id, chunk('agent_message', `\n\n${explain(run)}`))
    return stopReasonOf(run)
  }

  #cancel(id: string): void {
    this.#sessions.get(id)?.turn?.controller.abort()
  }

  /** Asks the editor. If it cannot answer, the question stays open. */
  async #ask(client: AgentContext, id: string, question: Approval, signal: AbortSignal): Promise<AskedAnswer> {
    const turn = this.#sessions.get(id)?.turn
    if (turn === undefined) return 'suspend'
    const { before, toolCall } = turn.updates.asked(question)
    for (const update of before) await this.#send(client, id, update)
    const { methods } = this.#options.sdk
    const { outcome } = await client.request(
      methods.client.session.requestPermission,
      {
        sessionId: id,
        toolCall,
        options: [
          { optionId: 'allow', name: 'Allow', kind: 'allow_once' },
          { optionId: 'block', name: 'Block', kind: 'reject_once' },
        ],
      },
      { cancellationSignal: signal },
    )
    if (outcome.outcome === 'cancelled') return 'suspend'
    return outcome.optionId === 'allow' ? 'allow' : { block: 'The user blocked it.' }
  }

  #send(client: AgentContext, sessionId: string, update: SessionUpdate): Promise<void> {
    return client.notify(this.#options.sdk.methods.client.session.update, { sessionId, update })
  }
}

function stopReasonOf(run: Run<unknown>): StopReason {
  if (run.status === 'cancelled') return 'cancelled'
  switch (run.reason) {
    case 'stepsLimit':
    case 'toolCallLimit':
      return 'max_turn_requests'
    case 'tokenLimit':
      return 'max_tokens'
    case 'inputBlocked':
      return 'refusal'
    default:
      return 'end_turn'
  }
}

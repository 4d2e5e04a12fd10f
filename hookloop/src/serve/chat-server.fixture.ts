import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after } from 'node:test'
import {
  AbstractChat,
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type ChatInit,
  type ChatState,
  type UIMessage,
} from 'ai'
import type { Agent } from '../core/agent/agent.ts'
import type { Use } from '../core/agent/capability.ts'
import { approval } from '../capabilities/approval.ts'
import { createAgent } from '../create-agent.ts'
import { scriptedModel, type ScriptedTurn } from '../models/scripted.ts'
import { memoryStore } from '../sessions/stores/memory-store.ts'
import type { SessionStore } from '../sessions/stores/store.ts'
import type { LanguageModel } from '../core/state/inference.ts'
import { textOf } from '../core/state/message.ts'
import { toNodeListener } from './node-listener.ts'
import { serve, type ServeOptions } from './serve.ts'
import { agentRunner, type AgentRunner } from './session-runner.ts'
import { clerkOf, paying, payTool, spawn } from './turn.fixture.ts'

export const paid: string[] = []

export const pay = payTool((to) => paid.push(to))

/** An agent that pays Ann, and its subagent that pays Bob: both ask. */
export const payingBoth = () => ({
  model: scriptedModel([{ toolCalls: [paying('ann'), spawn] }, 'All done.']),
  use: [clerkOf(pay, [{ toolCalls: [paying('bob')] }, 'Bob is paid.'])],
})

/** Answers "n: …" to the n-th message of the user; pays who is named in a message "Pay …". */
export const clerk = (): LanguageModel =>
  scriptedModel(({ messages }): ScriptedTurn => {
    const said = messages.filter(({ role }) => role === 'user').map(({ content }) => textOf(content))
    const [, to] = /^Pay (\w+)/.exec(said.at(-1)!) ?? []
    if (to !== undefined && messages.at(-1)!.role === 'user') return { toolCalls: [paying(to)] }
    return `${said.length}: ${said.at(-1)}`
  })

/** A model that writes "One ", waits until it is allowed to go on or is aborted, and writes "two.". */
export function slowModel(): {
  readonly model: LanguageModel
  readonly finish: () => void
  readonly aborted: Promise<void>
} {
  const { promise: finished, resolve: finish } = Promise.withResolvers<void>()
  const { promise: aborted, resolve: abort } = Promise.withResolvers<void>()
  const model: LanguageModel = {
    provider: 'test',
    modelId: 'slow',
    infer: async (_request, { onDelta, signal }) => {
      onDelta?.({ type: 'text', delta: 'One ' })
      const stopped = new Promise<never>((_, reject) =>
        signal.addEventListener('abort', () => {
          abort()
          reject(new Error('aborted'))
        }),
      )
      await Promise.race([finished, stopped])
      onDelta?.({ type: 'text', delta: 'two.' })
      return { content: [{ type: 'text', text: 'One two.' }], finishReason: 'stop' }
    },
  }
  return { model, finish, aborted }
}

export type Served = {
  readonly url: string
  readonly store: SessionStore
  readonly runner: AgentRunner
  /** What clients must not see. */
  readonly errors: unknown[]
  readonly fetch: (user: string, path: string, init?: RequestInit) => Promise<Response>
  /** Closes the server and its connections, as if the process had ended. */
  readonly close: () => Promise<void>
}

type Serving = Omit<Partial<ServeOptions>, 'store'> & {
  readonly model?: LanguageModel
  readonly use?: readonly Use[]
  readonly agent?: Agent
  readonly store?: SessionStore
}

/** An agent behind `node:http`. The user is the one that a header names. */
export async function serving({
  model = clerk(),
  use = [],
  store = memoryStore(),
  ...given
}: Serving = {}): Promise<Served> {
  const { agent = createAgent({ model, use: [pay, approval('suspend'), ...use] }), ...options } = given
  const runner = agentRunner(agent, store)
  const errors: unknown[] = []
  const onError = (error: unknown): void => void errors.push(error)
  const user = (request: Request): string | undefined => request.headers.get('x-user') ?? undefined
  const server = createServer(toNodeListener(serve(runner, { user, onError, ...options })))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    if (server.listening) await new Promise((resolve) => server.close(resolve))
  }
  after(close)
  const send = (name: string, path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(`${url}/api/${path}`, {
      ...init,
      headers: { 'x-user': name, 'content-type': 'application/json', ...(init.headers as { [name: string]: string }) },
    })
  return { url, store, runner, errors, fetch: send, close }
}

/** The chat of the AI SDK, which is below `useChat` of every framework, without a framework. */
export class TestChat extends AbstractChat<UIMessage> {
  readonly #waiting: (() => void)[]

  constructor(
    { url }: Pick<Served, 'url'>,
    { user = 'ann', transport, ...init }: ChatInit<UIMessage> & { readonly user?: string } = {},
  ) {
    const waiting: (() => void)[] = []
    let messages = init.messages ?? []
    const changed = (): void => {
      for (const check of waiting.slice()) check()
    }
    let status: ChatState<UIMessage>['status'] = 'ready'
    const state: ChatState<UIMessage> = {
      get status() {
        return status
      },
      set status(given) {
        status = given
        changed()
      },
      error: undefined,
      get messages() {
        return messages
      },
      set messages(given) {
        messages = given
        changed()
      },
      pushMessage: (message) => {
        messages = [...messages, message]
        changed()
      },
      popMessage: () => {
        messages = messages.slice(0, -1)
      },
      replaceMessage: (index, message) => {
        messages = messages.with(index, structuredClone(message))
        changed()
      },
      snapshot: (thing) => structuredClone(thing),
    }
    super({
      transport: transport ?? new DefaultChatTransport({ api: `${url}/api/chat`, headers: { 'x-user': user } }),
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
      ...init,
      state,
    })
    this.#waiting = waiting
  }

  /** The text of each message. */
  get texts(): readonly string[] {
    return this.messages.map(({ parts }) =>
      parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('|'),
    )
  }

  /** The ids of the questions that are open. */
  get questions(): readonly string[] {
    return this.messages.flatMap(({ parts }) =>
      parts.flatMap((part) => ('approval' in part && part.state === 'approval-requested' ? [part.approval.id] : [])),
    )
  }

  /** The states of the calls of the last message. */
  get states(): readonly string[] {
    return this.messages.at(-1)!.parts.flatMap((part) => ('toolCallId' in part ? [part.state] : []))
  }

  /** Resolves when the messages fulfil a condition. */
  async until(isTrue: (chat: this) => boolean): Promise<void> {
    await new Promise<void>((resolve) => {
      const check = (): void => {
        if (!isTrue(this)) return
        this.#waiting.splice(this.#waiting.indexOf(check), 1)
        resolve()
      }
      this.#waiting.push(check)
      check()
    })
  }
}

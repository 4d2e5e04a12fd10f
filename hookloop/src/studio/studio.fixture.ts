import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { approval } from '../capabilities/approval.ts'
import { createAgent } from '../create-agent.ts'
import type { Agent } from '../core/agent/agent.ts'
import { tool } from '../core/agent/tool.ts'
import { guard, hook, shadow } from '../core/hooks/hook.ts'
import { scriptedModel } from '../models/scripted.ts'
import { sqliteStore } from '../sessions/stores/sqlite-store.ts'
import type { SessionStore } from '../sessions/stores/store.ts'
import type { ModelSource } from '../core/state/inference.ts'
import type { Api, ApiError, Streams } from './api.types.ts'
import type { StudioOptions } from './context.ts'
import { startStudio } from './studio.ts'

/** What the model and the tools of the agent were really asked to do. */
export type Done = { models: number; readonly tools: string[] }

/** An agent that looks, tries to push, removes a file if it is allowed to, and then is done. */
export function cleaner(store: SessionStore, done: Done = { models: 0, tools: [] }, other?: ModelSource): Agent {
  const input = { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] } as const
  const bash = tool({
    name: 'bash',
    description: 'Runs a command.',
    input,
    execute: (args) => {
      const { command } = args as { readonly command: string }
      done.tools.push(command)
      return `ran ${command}`
    },
  })
  const commandIn = (ctx: { readonly toolCall: { readonly args: unknown } }): string =>
    (ctx.toolCall.args as { readonly command: string }).command
  const script = [
    { text: 'Let me look.', toolCalls: [{ name: 'bash', args: { command: 'ls' } }] },
    { toolCalls: [{ name: 'bash', args: { command: 'git push' } }] },
    { toolCalls: [{ name: 'bash', args: { command: 'rm b.txt' } }] },
    'All done.',
  ]
  const model = scriptedModel(({ messages }) => {
    done.models++
    const start = messages.slice().findLastIndex(({ role }) => role === 'user')
    return script[messages.slice(start).filter(({ role }) => role === 'assistant').length] ?? 'Nothing is left.'
  })
  return createAgent({
    name: 'cleaner',
    model: other ?? model,
    store,
    use: [
      bash,
      approval('suspend'),
      shadow(
        guard('beforeToolUse', (ctx) => (commandIn(ctx) === 'ls' ? ctx.block('No listing.') : ctx), { name: 'no-ls' }),
      ),
      guard('beforeToolUse', (ctx) => (/push/.test(commandIn(ctx)) ? ctx.block('Agents never push.') : ctx), {
        name: 'no-push',
      }),
      guard('beforeToolUse', (ctx) => (commandIn(ctx).startsWith('rm') ? ctx.ask('Remove it?') : ctx), {
        name: 'ask-rm',
      }),
      hook('afterToolUse', (ctx) => ctx.withOutput(`${JSON.stringify(ctx.toolExecution.output)} [checked]`), {
        name: 'mark',
      }),
    ],
  })
}

const root = mkdtempSync(join(tmpdir(), 'hookloop-studio-'))
process.on('exit', () => rmSync(root, { recursive: true, force: true, maxRetries: 10 }))
let stores = 0

/** A new database in a temporary folder, and where it is. */
export function newStore(): { readonly store: SessionStore; readonly path: string } {
  const path = join(root, `${++stores}.db`)
  return { store: sqliteStore(path), path }
}

/** A store whose `read` is another one. */
export function reading(store: SessionStore, read: SessionStore['read']): SessionStore {
  const get = (target: SessionStore, name: keyof SessionStore): unknown =>
    name === 'read' ? read : target[name].bind(target)
  return new Proxy(store, { get: get as never })
}

export type TestStudio = AsyncDisposable & {
  readonly url: string
  readonly origin: string
  readonly host: string
  readonly port: number
  readonly token: string
  readonly errors: unknown[]
  /** Calls the API as the page does. */
  call<K extends keyof Api>(name: K, request: Api[K]['request']): Promise<Api[K]['response']>
  /** The status and the code of a call that fails. */
  failure<K extends keyof Api>(name: K, request: unknown): Promise<readonly [status: number, code: string]>
  lines<K extends keyof Streams>(name: K, request: Streams[K]['request']): AsyncGenerator<Streams[K]['line']>
}

/** A studio on a free port, closed by `await using`. It has a page without content. */
export async function studioFor(store: SessionStore, given: Partial<StudioOptions> = {}): Promise<TestStudio> {
  const errors: unknown[] = []
  const { agent } = given
  const { url, close } = await startStudio({
    store,
    page: async () => ({ script: 'void 0', style: 'body{}' }),
    info: { version: '0', store: 'test', dir: root, hookFiles: [], user: 'ann' },
    canJudge: () => (agent === undefined ? 'Start the studio with --agent.' : true),
    agentOf: async () => agent!,
    loadHooks: async () => [],
    redact: [],
    onError: (error) => errors.push(error),
    ...given,
  })
  const { origin, host, port, hash } = new URL(url)
  const token = hash.replace('#token=', '')
  const post = (path: string, request: unknown, signal?: AbortSignal): Promise<Response> =>
    fetch(`${origin}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify(request),
      ...(signal !== undefined && { signal }),
    })
  return {
    url,
    origin,
    host,
    port: Number(port),
    token,
    errors,
    async call(name, request) {
      const response = await post(`/api/${name}`, request)
      const body: unknown = await response.json()
      if (!response.ok) throw new Error(`${response.status}: ${(body as ApiError).error.message}`)
      return body as never
    },
    async failure(name, request) {
      const response = await post(`/api/${name}`, request)
      return [response.status, ((await response.json()) as ApiError).error.code]
    },
    async *lines(name, request) {
      const leaving = new AbortController()
      const response = await post(`/stream/${name}`, request, leaving.signal)
      let rest = ''
      try {
        for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
          const lines = (rest + piece).split('\n')
          rest = lines.pop()!
          for (const line of lines) if (line.startsWith('data: ')) yield JSON.parse(line.slice(6)) as never
        }
      } finally {
        leaving.abort()
      }
    },
    async [Symbol.asyncDispose]() {
      await close()
      await store.close()
    },
  }
}

export type RawResponse = { readonly status: number; readonly headers: string; readonly body: string }

/** Writes a request to a socket as it is, and reads the response until the server closes the connection. */
export async function raw(port: number, head: readonly string[], body = ''): Promise<RawResponse> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined) // the server may close it before all was written
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  let text = ''
  socket.setEncoding('utf8').on('data', (piece: string) => (text += piece))
  await once(socket, 'close')
  const [headers = '', ...rest] = text.split('\r\n\r\n')
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(headers)?.[1] ?? 0), headers, body: rest.join('\r\n\r\n') }
}

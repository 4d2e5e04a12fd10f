// A server made with the official SDK. As a program it serves stdio; imported, it is served over HTTP.
import { spawn } from 'node:child_process'
import { appendFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  acceptedContent,
  createMcpHandler,
  inputRequired,
  McpServer,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio'
import * as z from 'zod'

/** Writes a line for every call that reached the server to the file CALL_LOG, if that is set. */
function log(line: string): void {
  const file = process.env['CALL_LOG']
  if (file !== undefined) appendFileSync(file, `${line}\n`)
}

export function realServer(): McpServer {
  const server = new McpServer(
    { name: 'real', version: '1.0.0' },
    { instructions: 'Add before you multiply.', capabilities: { tools: {}, resources: {}, prompts: {} } },
  )
  const text = (words: string) => ({ content: [{ type: 'text' as const, text: words }] })

  server.registerTool(
    'add',
    {
      description: 'Adds two numbers.',
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      outputSchema: z.object({ sum: z.number() }),
      annotations: { readOnlyHint: true },
    },
    async ({ a, b }) => {
      log(`add ${a} ${b}`)
      return { ...text(String(a + b)), structuredContent: { sum: a + b } }
    },
  )
  server.registerTool('echo', { inputSchema: z.object({ text: z.string() }) }, async ({ text: words }) => {
    log(`echo ${words}`)
    return text(words)
  })
  server.registerTool('fail', { description: 'Fails.' }, async () => ({ ...text('The disk is full.'), isError: true }))
  server.registerTool('slow', { inputSchema: z.object({ ms: z.number() }) }, async ({ ms }, ctx) => {
    log('slow starts')
    await sleep(ms, undefined, { signal: ctx.mcpReq.signal }).catch(() => log('slow was cancelled'))
    return text('slow is done')
  })
  server.registerTool('picture', {}, async () => ({
    content: [
      { type: 'text' as const, text: 'Here it is:' },
      { type: 'image' as const, data: 'AAAA', mimeType: 'image/png' },
      { type: 'resource' as const, resource: { uri: 'memo://a', text: 'a memo' } },
    ],
  }))
  server.registerTool('steps', { inputSchema: z.object({ count: z.number() }) }, async ({ count }, ctx) => {
    const { _meta: { progressToken } = {} } = ctx.mcpReq
    for (let progress = 1; progress <= count; progress++) {
      const params = { progressToken: progressToken!, progress, total: count, message: `step ${progress}` }
      await ctx.mcpReq.notify({ method: 'notifications/progress', params })
    }
    return text('done')
  })
  server.registerTool('environment', {}, async () => text(JSON.stringify(process.env)))
  server.registerTool('folder', {}, async () => text(process.cwd()))
  server.registerTool('start_child', {}, async () => {
    const child = spawn('sleep', ['600'], { stdio: 'ignore' })
    return text(String(child.pid))
  })
  server.registerTool('die', {}, async () => {
    log('die')
    process.kill(process.pid, 'SIGKILL')
    return text('never')
  })
  server.registerTool('use_model', {}, async (ctx) => {
    const messages = [{ role: 'user' as const, content: { type: 'text' as const, text: 'Hi.' } }]
    return ctx.mcpReq
      .requestSampling({ messages, maxTokens: 10 })
      .then(() => text('It answered.'))
      .catch((thrown: unknown) => text(`Refused: ${String(thrown)}`))
  })
  server.registerTool('ask_person', {}, async (ctx) => {
    const requestedSchema = { type: 'object' as const, properties: {} }
    return ctx.mcpReq
      .elicitInput({ message: 'Your password?', requestedSchema })
      .then(() => text('It answered.'))
      .catch((thrown: unknown) => text(`Refused: ${String(thrown)}`))
  })
  server.registerTool('confirm', {}, async (ctx) => {
    log('confirm')
    const sure = z.object({ sure: z.boolean() })
    if (acceptedContent(ctx.mcpReq.inputResponses, 'sure', sure)?.sure === true) return text('confirmed')
    const asked = inputRequired.elicit({ message: 'Sure?', requestedSchema: sure })
    return inputRequired({ inputRequests: { sure: asked } })
  })
  server.registerTool('where', {}, async () => text(JSON.stringify((await server.server.listRoots()).roots)))

  server.registerResource('memo', 'memo://one', { mimeType: 'text/plain', description: 'A memo.' }, async (uri) => ({
    contents: [{ uri: uri.href, text: 'Buy milk.' }],
  }))
  server.registerResource('pixel', 'memo://pixel.png', { mimeType: 'image/png' }, async (uri) => ({
    contents: [{ uri: uri.href, blob: 'AAAA', mimeType: 'image/png' }],
  }))
  server.registerPrompt(
    'review',
    { description: 'Reviews something.', argsSchema: z.object({ topic: z.string() }) },
    ({ topic }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Review the ${topic}.` } }] }),
  )
  return server
}

export type Served = {
  readonly url: string
  readonly requests: readonly Request[]
  readonly close: () => Promise<void>
}

/** Both protocols, without sessions. */
export function serveModern(): Promise<Served> {
  const handler = createMcpHandler(realServer)
  return serve((request) => handler.fetch(request))
}

/** The protocol of 2025 with sessions. `forget` drops them. */
export async function serveSessions(): Promise<
  Served & { readonly forget: () => void; readonly sessions: () => number }
> {
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>()
  const served = await serve(async (request) => {
    const id = request.headers.get('mcp-session-id')
    const known = id === null ? undefined : sessions.get(id)
    if (known !== undefined) return known.handleRequest(request)
    if (id !== null) return new Response('Session not found', { status: 404 })
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (sessionId) => void sessions.set(sessionId, transport),
      onsessionclosed: (sessionId) => void sessions.delete(sessionId),
    })
    await realServer().connect(transport)
    return transport.handleRequest(request)
  })
  return { ...served, forget: () => sessions.clear(), sessions: () => sessions.size }
}

/** A web handler behind a real port of this machine. */
export async function serve(handle: (request: Request) => Response | Promise<Response>): Promise<Served> {
  const requests: Request[] = []
  const server: Server = createServer((incoming, outgoing) => {
    const { port } = server.address() as AddressInfo
    const left = new AbortController()
    outgoing.once('close', () => left.abort())
    const request = new Request(`http://127.0.0.1:${port}${incoming.url}`, {
      method: incoming.method!,
      signal: left.signal,
      headers: incoming.headers as { [name: string]: string },
      ...(incoming.method === 'POST' && { body: Readable.toWeb(incoming) as ReadableStream, duplex: 'half' }),
    })
    requests.push(request.clone())
    outgoing.once('close', () => void request) // keeps the request alive: its signal would not abort after garbage collection
    Promise.resolve(handle(request))
      .then((response) => {
        outgoing.writeHead(response.status, Object.fromEntries(response.headers))
        Readable.fromWeb((response.body ?? new Blob([]).stream()) as never)
          .on('error', () => outgoing.destroy())
          .pipe(outgoing)
      })
      .catch(() => outgoing.destroy())
  })
  server.keepAliveTimeout = 120_000 // on a busy machine a connection is idle for longer than the default of five seconds
  await new Promise<void>((resolve) => server.listen({ port: 0, host: '127.0.0.1', backlog: 2_048 }, resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

if (process.argv[1] === import.meta.filename) {
  if (process.argv[2] === 'legacy') await realServer().connect(new StdioServerTransport())
  else serveStdio(realServer)
}

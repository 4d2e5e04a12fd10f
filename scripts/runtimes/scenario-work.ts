// What the scenarios share, and what this program does in the processes that they start.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { approval, createAgent, guard, tool, type Agent, type Run } from 'hookloop'
import type { mcp } from 'hookloop/mcp'
import { answerApproval, listApprovals, sqliteStore, type SessionStore } from 'hookloop/sessions'
import { scriptedModel, type ScriptedTurn } from 'hookloop/testing'
import * as z from 'zod'

export const anything = { type: 'object' } as const
export const oneText = {
  type: 'object',
  properties: { text: { type: 'string', pattern: '^[a-z]+$' } },
  required: ['text'],
}

export const shout = tool({
  name: 'shout',
  description: 'Repeats a text in capitals.',
  input: oneText,
  execute: ({ text }) => (text as string).toUpperCase(),
})

/** What this program does in a process that a scenario starts. */
export const roles: { readonly [name: string]: (folder: string) => Promise<void> } = {
  async killed(folder) {
    await shippingAgent(folder, sqliteStore(join(folder, 'sessions.db'))).run('go', { session: 'order' })
  },

  async 'mcp-server'() {
    serveStdio(() => {
      const server = new McpServer({ name: 'it', version: '1.0.0' })
      const inputSchema = z.object({ a: z.number(), b: z.number() })
      server.registerTool('add', { description: 'Adds.', inputSchema }, async ({ a, b }) => ({
        content: [{ type: 'text', text: String(a + b) }],
      }))
      return server
    })
  },
}

type Call = { readonly name: string; readonly args: Record<string, unknown> }
type Uses = NonNullable<Parameters<typeof createAgent>[0]['use']>

/** An agent whose model makes these calls, one per step, and then says "done". */
export function agentCalling(use: Uses, calls: readonly Call[], store?: SessionStore): Agent {
  const model = scriptedModel(({ messages }): ScriptedTurn => {
    const all = messages.slice()
    const steps = all.slice(all.findLastIndex(({ role }) => role === 'user'))
    const call = calls[steps.filter(({ role }) => role === 'assistant').length]
    return call === undefined ? 'done' : ({ toolCalls: [call] } as ScriptedTurn)
  })
  return createAgent({ model, use, ...(store !== undefined && { store }) })
}

export function calling(use: Uses, calls: readonly Call[]): Promise<Run> {
  return agentCalling(use, calls).run('go')
}

function executions(run: Run) {
  return [...(run.state.execution?.steps ?? [])].flatMap(({ toolExecutions }) => toolExecutions)
}

export function statuses(run: Run): readonly string[] {
  return executions(run).map(({ status }) => status)
}

export function outputs(run: Run): readonly unknown[] {
  return executions(run).map(({ output }) => output)
}

export async function talk(store: SessionStore): Promise<void> {
  const ask = guard('beforeToolUse', (ctx) => ctx.ask('Really?'))
  const agent = agentCalling([shout, ask, approval('suspend')], [{ name: 'shout', args: { text: 'hello' } }], store)
  assert.equal((await agent.run('go', { session: 'chat' })).status, 'suspended')
  for (const { session, id } of await listApprovals(store))
    await answerApproval(store, { session, approval: id, answer: 'allow', by: 'jane' })
  const run = await agent.resume('chat')
  assert.deepEqual([run.status, ...outputs(run)], ['completed', 'HELLO'])
  const next = await agent.run('And now?', { session: 'chat' })
  assert.equal(next.status, 'suspended')
  assert.ok(next.state.messages.length >= run.state.messages.length)
  await store.close()
}

export function shippingAgent(folder: string, store: SessionStore): Agent {
  const log = (what: string): string => {
    writeFileSync(join(folder, 'log'), `${what}\n`, { flag: 'a' })
    return what
  }
  const named = (name: string, execute: () => unknown) => tool({ name, description: name, input: anything, execute })
  const pack = named('pack', () => log('pack'))
  const ship = named('ship', () => log('ship') && process.kill(process.pid, 'SIGKILL'))
  const calls = [
    { name: 'pack', args: {} },
    { name: 'ship', args: {} },
  ]
  return agentCalling([pack, ship], calls, store)
}

/** How a process with one of the roles ends: a signal, or an exit code with what it printed. */
export function ended([program, ...args]: readonly string[], ...role: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program!, [...args, ...role], { stdio: ['ignore', 'pipe', 'pipe'] })
    let printed = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (printed += text.toString()))
    child.on('error', reject)
    child.on('close', (code, signal) => resolve(signal ?? `${code}: ${printed}`))
  })
}

/** A server with one tool, by the protocol: the answer to a message, or nothing if it needs none. */
export function answerMcp(line: string): string | undefined {
  if (line.trim() === '') return undefined
  const { id, method, params } = JSON.parse(line) as {
    id?: number
    method: string
    params?: { protocolVersion?: string; arguments?: { a: number; b: number } }
  }
  if (id === undefined) return undefined
  const numbers = { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } }, required: ['a', 'b'] }
  const { a = 0, b = 0 } = params?.arguments ?? {}
  const results: { readonly [method: string]: object } = {
    initialize: {
      protocolVersion: params?.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: 'it', version: '1.0.0' },
    },
    'tools/list': { tools: [{ name: 'add', description: 'Adds.', inputSchema: numbers }] },
    'tools/call': { content: [{ type: 'text', text: String(a + b) }] },
  }
  const result = results[method]
  const error = { code: -32_601, message: 'Method not found' }
  return JSON.stringify({ jsonrpc: '2.0', id, ...(result === undefined ? { error } : { result }) })
}

/** Runs a server that answers each request by its body, as JSON. */
export async function served(
  answer: (body: string) => string | undefined,
  work: (url: string) => Promise<void>,
): Promise<void> {
  await listening((request, response) => {
    let body = ''
    request.on('data', (piece: Buffer) => (body += piece.toString()))
    request.on('end', () => {
      const text = request.method === 'POST' ? answer(body) : undefined
      const isAnswered = text === undefined ? 202 : 200
      response.writeHead(request.method === 'POST' ? isAnswered : 405, { 'content-type': 'application/json' })
      response.end(text)
    })
  }, work)
}

/** Runs `work` while a server listens. */
export async function listening(listener: RequestListener, work: (url: string) => Promise<void>): Promise<void> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`)
  } finally {
    server.close()
    server.closeAllConnections()
  }
}

export async function callMcp(servers: Awaited<ReturnType<typeof mcp>>): Promise<void> {
  const run = await calling(
    [servers, approval(() => 'allow')],
    [
      { name: 'mcp__it__add', args: { a: 2, b: 3 } },
      { name: 'mcp__it__add', args: { a: 'two' } },
    ],
  )
  assert.deepEqual(statuses(run), ['ok', 'failed'])
  assert.match(JSON.stringify(outputs(run)[0]), /5/)
}

export const noSpan = {
  spanContext: () => ({ traceId: '0'.repeat(32), spanId: '0'.repeat(16), traceFlags: 0 }),
  setAttribute: () => noSpan,
  setAttributes: () => noSpan,
  addEvent: () => noSpan,
  addLink: () => noSpan,
  addLinks: () => noSpan,
  setStatus: () => noSpan,
  updateName: () => noSpan,
  isRecording: () => true,
  recordException: () => undefined,
}

export function script(file: string, text: string): void {
  writeFileSync(file, `#!/bin/sh\n${text}\n`)
  chmodSync(file, 0o755)
}

/** An empty folder for one scenario. */
export async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'hookloop-scenario-')))
  try {
    await work(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

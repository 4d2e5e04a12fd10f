import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { breaking, served, type Answer } from './breaking-server.fixture.ts'
import { callOnce, connected, runCalls, until } from './mcp.fixture.ts'
import { mcp } from './mcp.ts'
import { serve, serveModern, serveSessions } from './real-server.fixture.ts'

const add = 'mcp__it__add'
const numbers = { a: 1, b: 2 }

const folder = mkdtempSync(join(tmpdir(), 'hookloop-mcp-'))
const CALL_LOG = join(folder, 'calls')
process.env['CALL_LOG'] = CALL_LOG // the servers are in this process
after(() => rmSync(folder, { recursive: true }))
const read = (file: string): string => readFileSync(file, 'utf8')

for (const [protocol, start] of Object.entries({ newest: serveModern, 'sessions of 2025': serveSessions })) {
  describe(`a server over HTTP, ${protocol}`, () => {
    test('gets the configured headers with every request', async (t) => {
      const server = await served(t, start())
      const servers = await connected(t, { url: server.url, headers: { authorization: 'Bearer its-token' } })
      const result = await callOnce(servers, add, numbers)
      const sent = new Set(server.requests.map(({ headers }) => headers.get('authorization')))
      assert.deepEqual([result.output, [...sent]], [{ sum: 3 }, ['Bearer its-token']])
    })

    test('cannot use sampling', async (t) => {
      const server = await served(t, start())
      const { output } = await callOnce(await connected(t, { url: server.url }), 'mcp__it__use_model')
      assert.match(output as string, /^Refused: /)
    })

    test('is notified when a run is cancelled', async (t) => {
      writeFileSync(CALL_LOG, '')
      const server = await served(t, start())
      const servers = await connected(t, { url: server.url })
      const cancel = new AbortController()
      const running = runCalls([servers], [{ name: 'mcp__it__slow', args: { ms: 60_000 } }], cancel.signal)
      await until(() => read(CALL_LOG) === 'slow starts\n')
      cancel.abort()
      const run = await running
      await until(() => read(CALL_LOG) === 'slow starts\nslow was cancelled\n')
      assert.equal(run.state.execution!.steps.at(0)!.toolExecutions[0]!.status, 'outcomeUnknown')
      assert.deepEqual((await callOnce(servers, add, numbers)).output, { sum: 3 })
    })
  })
}

test('after the server has lost the session the next call starts a new one, and close ends it', async (t) => {
  const server = await serveSessions()
  t.after(() => server.close())
  const servers = await connected(t, { url: server.url })
  server.forget()
  const lost = await callOnce(servers, add, numbers)
  const next = await callOnce(servers, add, numbers)
  await servers.close()
  assert.deepEqual(lost, {
    status: 'failed',
    output: 'The MCP server "it" no longer knows the session. The next call starts a new session.',
  })
  assert.deepEqual([next.output, server.sessions()], [{ sum: 3 }, 0])
})

test('a redirect to another origin is not followed, and the headers do not go there', async (t) => {
  const other = await served(t, serveModern())
  const server = await served(
    t,
    serve(() => Response.redirect(other.url, 307)),
  )
  const it = { url: server.url, headers: { authorization: 'Bearer its-token' } }
  await assert.rejects(mcp({ servers: { it } }), /answered 307: Redirect to .* not followed/)
  assert.equal(other.requests.length, 0)
})

const endless = (text: string, times = 10_000): ReadableStream =>
  new ReadableStream({ pull: (controller) => controller.enqueue(new TextEncoder().encode(text.repeat(times))) })
const json = { headers: { 'content-type': 'application/json' } }
const events = { headers: { 'content-type': 'text/event-stream' } }

const connectFailures: { readonly [what: string]: { answer: () => Response | Promise<Response>; says: RegExp } } = {
  'answers 500': { answer: () => new Response('key is its-token', { status: 500 }), says: /it answered 500\. Set/ },
  'answers 404': { answer: () => new Response('gone', { status: 404 }), says: /it answered 404: gone\./ },
  'answers 401': { answer: () => new Response('', { status: 401 }), says: /answered 401: it does not accept the cred/ },
  'is a web page': {
    answer: () => new Response('<p>', { headers: { 'content-type': 'text/html' } }),
    says: /text\/html/,
  },
  'never answers': { answer: () => new Promise(() => undefined), says: /it did not answer within 100 ms/ },
  'answers without end': { answer: () => new Response(endless('x'), json), says: /answer of more than 1000000 bytes/ },
  'fails without end': { answer: () => new Response(endless('x'), { status: 500 }), says: /it answered 500/ },
  'sends an event without end': {
    answer: () => new Response(endless('data: x\n'), events),
    says: /answer of more than 1000000 bytes/,
  },
  'ends its stream without an answer': {
    answer: () => new Response(': hello\n\n', events),
    says: /closed before the response/,
  },
}

for (const [what, { answer, says }] of Object.entries(connectFailures)) {
  test(`a server that ${what} cannot be connected, and the error says why`, async (t) => {
    const { url } = await served(t, serve(answer))
    const it = { url, headers: { authorization: 'Bearer its-token' } }
    const connectTimeoutMs = what === 'never answers' ? 100 : 60_000
    const options = { servers: { it }, connectTimeoutMs, maxMessageBytes: 1_000_000 }
    await assert.rejects(
      mcp(options),
      (thrown: Error) => says.test(thrown.message) && !/its-token/.test(thrown.message),
    )
  })
}

const cut = (text: string): ReadableStream => {
  return new ReadableStream({
    async start(controller) {
      controller.enqueue(new TextEncoder().encode(text))
      await sleep(100) // until it has arrived
      controller.error(new Error('cut'))
    },
  })
}
const notification = (id: number): string =>
  `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":${id}}}\n\n`

const breaks: { readonly [what: string]: { readonly answer: Answer; readonly says: RegExp } } = {
  'cuts its stream in the middle': {
    answer: (id) => new Response(cut(`data: {"jsonrpc":"2.0","id":${id},"re`), events),
    says: /did not answer: the connection was closed before the response arrived\. The call may have had/,
  },
  'cuts its answer in the middle': {
    answer: (id) => new Response(cut(`{"jsonrpc":"2.0","id":${id}`), json),
    says: /closed the connection: .*The call may have had an effect/,
  },
  'ends its stream without an answer': {
    answer: (id) => new Response(notification(id), events),
    says: /closed before the response/,
  },
  'notifies without end': {
    answer: (id) => new Response(endless(notification(id), 100), events),
    says: /did not answer: it sent too many messages/,
  },
  'answers 500': {
    answer: () => new Response('out of paper', { status: 500 }),
    says: /answered 500: out of paper\. The call may/,
  },
  'answers 404': { answer: () => new Response('', { status: 404 }), says: /answered 404/ },
  'answers 401': { answer: () => new Response('', { status: 401 }), says: /does not accept the credentials\.$/ },
  'answers something else': {
    answer: () => Response.json({ hello: 'world' }),
    says: /failed: |sent an invalid result/,
  },
  'answers nothing': { answer: () => new Response(null, { status: 202 }), says: /did not end within 100 ms/ },
  hangs: { answer: () => new Promise(() => undefined), says: /did not end within 100 ms/ },
}

for (const [what, { answer, says }] of Object.entries(breaks)) {
  test(`a call fails if the server ${what}`, async (t) => {
    const servers = await connected(t, {
      url: await breaking(t, answer),
      callTimeoutMs: what === 'answers nothing' || what === 'hangs' ? 100 : 60_000,
    })
    const { status, output } = await callOnce(servers, 'mcp__it__go')
    assert.equal(status, 'failed')
    assert.match(output as string, says)
  })
}

test('a request that timed out is closed', async (t) => {
  let closed = false
  const url = await breaking(t, (_id, { signal }) => {
    signal.addEventListener('abort', () => (closed = true))
    return new Promise(() => undefined)
  })
  const servers = await connected(t, { url, callTimeoutMs: 3_000 }) // long enough to have arrived
  await callOnce(servers, 'mcp__it__go')
  await until(() => closed)
})

test('a server that asks for an immediate reconnect has to wait', async (t) => {
  const timers = t.mock.method(globalThis, 'setTimeout')
  const delays = (): readonly unknown[] => timers.mock.calls.map(({ arguments: [, ms] }) => ms)
  const url = await breaking(
    t,
    () => Response.json({}),
    () => new Response('retry: 7\nid: 1\ndata:\n\n', events),
  )
  await connected(t, { url })
  await until(() => delays().includes(1_000))
  assert.equal(delays().includes(7), false)
})

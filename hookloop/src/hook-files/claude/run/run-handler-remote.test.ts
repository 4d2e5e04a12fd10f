import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, test } from 'node:test'
import type { Json, JsonObject } from '../../../values/json.ts'
import type { ClaudeEvent } from '../events/claude-events.ts'
import { bashCall, HookProject, saidOf } from '../hook-project.fixture.ts'
import { promptFor } from './run-handler.ts'

/** A server that answers every request the same way, and stores the requests. */
async function serving(status: number, body: string, headers: Record<string, string> = {}) {
  const posts: { readonly body: Json; readonly headers: NodeJS.Dict<string | string[]> }[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (piece: string) => (text += piece))
    request.on('end', () => {
      posts.push({ body: JSON.parse(text) as Json, headers: request.headers })
      response.writeHead(status, headers).end(body)
    })
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    posts,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

describe('http handlers', { concurrency: 4 }, () => {
  const rows: readonly (readonly [string, number, string, JsonObject, RegExp?])[] = [
    ['an empty answer is no opinion', 200, '', { decision: 'none' }],
    [
      'a JSON answer is read as what a command prints',
      200,
      '{"decision":"block","reason":"r"}',
      { decision: 'deny', reason: 'r' },
    ],
    ['any 2xx is an answer', 204, '', { decision: 'none' }],
    ['text is an error that stops nothing', 200, 'fine', { decision: 'none' }, /did not respond with a JSON object/],
    ['an array is an error that stops nothing', 200, '[]', { decision: 'none' }, /did not respond with a JSON object/],
    ['a status cannot block', 403, '{"decision":"block"}', { decision: 'none' }, /status 403/],
    ['an answer that does not fit is dropped', 200, '{"decision":"no"}', { decision: 'none' }, /its answer is invalid/],
  ]
  for (const [title, status, body, gives, problem] of rows) {
    test(title, async () => {
      await using server = await serving(status, body)
      using project = new HookProject()
      project.handlers('PreToolUse', [{ type: 'http', url: server.url }])
      const result = await project.fire('PreToolUse', bashCall)
      assert.deepEqual(saidOf(result), gives)
      assert.match(result.ran[0]!.answer.problem ?? '', problem ?? /^$/)
      assert.equal((server.posts[0]!.body as JsonObject)['tool_name'], 'Bash')
    })
  }

  test('a URL without a server stops nothing, unless onFailure is "block"', async () => {
    using project = new HookProject()
    project.handlers('PreToolUse', [{ type: 'http', url: 'http://127.0.0.1:9/' }])
    const open = await project.fire('PreToolUse', bashCall)
    project.handlers('PreToolUse', [{ type: 'http', url: 'http://127.0.0.1:9/', onFailure: 'block' }])
    const closed = await project.fire('PreToolUse', bashCall)
    assert.deepEqual([open.merged.decision, closed.merged.decision], ['none', 'deny'])
  })

  test('headers contain only listed variables', async () => {
    await using server = await serving(200, '')
    using project = new HookProject()
    const headers = { authorization: 'Bearer $LISTED', 'x-other': '${UNLISTED}!' }
    project.handlers('PreToolUse', [{ type: 'http', url: server.url, headers, allowedEnvVars: ['LISTED'] }])
    await project.fire('PreToolUse', bashCall, { env: { ...process.env, LISTED: 'yes', UNLISTED: 'no' } })
    const { authorization, 'x-other': other } = server.posts[0]!.headers
    assert.deepEqual([authorization, other], ['Bearer yes', '!'])
  })

  test('a redirect is not followed', async () => {
    await using server = await serving(302, '', { location: 'http://127.0.0.1:9/' })
    using project = new HookProject()
    project.handlers('PreToolUse', [{ type: 'http', url: server.url }])
    const { ran } = await project.fire('PreToolUse', bashCall)
    assert.match(ran[0]!.answer.problem!, /status 302/)
  })
})

describe('mcp_tool handlers', () => {
  const handler = {
    type: 'mcp_tool',
    server: 'policy',
    tool: 'check',
    input: { command: '${tool_input.command}', whole: ['${tool_input}', '${no.such}'] },
  }

  test('a tool gets fields of the event, and its text is read like the output of a command', async () => {
    using project = new HookProject()
    project.handlers('PreToolUse', [handler])
    let given: unknown
    const result = await project.fire('PreToolUse', bashCall, {
      callMcp: (server, tool, { input }) => {
        given = [server, tool, input]
        return Promise.resolve({ text: '{"decision":"block","reason":"policy"}', isError: false })
      },
    })
    assert.deepEqual(given, ['policy', 'check', { command: 'ls', whole: ['{"command":"ls"}', ''] }])
    assert.deepEqual(saidOf(result), { decision: 'deny', reason: 'policy' })
  })

  for (const [what, callMcp] of [
    ['an error', () => Promise.resolve({ text: 'down', isError: true })],
    ['a rejection', () => Promise.reject(new Error('down'))],
    ['no connection', undefined],
  ] as const) {
    test(`${what} stops nothing`, async () => {
      using project = new HookProject()
      project.handlers('PreToolUse', [handler])
      const result = await project.fire('PreToolUse', bashCall, { callMcp })
      assert.equal(result.merged.decision, 'none')
      assert.match(result.ran[0]!.answer.problem!, /down|not connected/)
    })
  }

  test('a tool that does not answer times out', async () => {
    using project = new HookProject()
    project.handlers('PreToolUse', [{ ...handler, timeout: 0.1 }])
    const { ran } = await project.fire('PreToolUse', bashCall, { callMcp: () => new Promise(() => undefined) })
    assert.equal(ran[0]!.answer.failed, 'timedOut')
  })
})

type VerdictRow = readonly [ClaudeEvent, more: JsonObject, verdict: JsonObject, gives: JsonObject]
const reason = 'r'

describe('prompt handlers', () => {
  const rows: readonly VerdictRow[] = [
    ['PreToolUse', {}, { ok: true }, { decision: 'none' }],
    ['Stop', {}, { ok: false, reason, impossible: true }, { decision: 'none' }],
    ['PreToolUse', {}, { ok: false, reason }, { decision: 'stop', reason, alsoDecided: { decision: 'deny', reason } }],
    ['PreToolUse', { type: 'agent' }, { ok: false, reason }, { decision: 'deny', reason }],
    ['PreToolUse', {}, { verdict: 'fine' }, { decision: 'none' }],
    [
      'PreToolUse',
      { onFailure: 'block' },
      { verdict: 'fine' },
      { decision: 'deny', reason: 'The hook "prompt" gave an invalid answer.' },
    ],
  ]
  for (const [event, more, verdict, gives] of rows) {
    test(`at ${event} ${JSON.stringify(more)}, ${JSON.stringify(verdict)} is merged to ${JSON.stringify(gives)}`, async () => {
      using project = new HookProject()
      project.handlers(event, [{ type: 'prompt', prompt: 'Is it?', ...more }])
      const result = await project.fire(event, bashCall, { askModel: () => Promise.resolve(verdict) })
      assert.deepEqual(saidOf(result), gives)
    })
  }

  test('the event replaces $ARGUMENTS, or is added to the prompt', () => {
    assert.equal(promptFor('Judge $ARGUMENTS now for \\$5', '{"a":"$&"}'), 'Judge {"a":"$&"} now for $5')
    assert.equal(promptFor('Judge it', '{}'), 'Judge it\n\n{}')
  })

  test('a missing model, or one that times out, stops nothing', async () => {
    using project = new HookProject()
    project.handlers('PreToolUse', [{ type: 'prompt', prompt: 'Is it?', timeout: 0.1 }])
    const absent = await project.fire('PreToolUse', bashCall)
    const slow = await project.fire('PreToolUse', bashCall, { askModel: () => new Promise(() => undefined) })
    assert.deepEqual(
      [absent.merged.decision, slow.merged.decision, slow.ran[0]!.answer.failed],
      ['none', 'none', 'timedOut'],
    )
  })
})

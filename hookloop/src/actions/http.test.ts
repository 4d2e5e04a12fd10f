import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { suite, test } from 'node:test'
import type { JsonObject } from '../values/json.ts'
import { guard, hook, observe } from '../core/hooks/hook.ts'
import type { HookOutcome } from '../core/hooks/outcome.ts'
import { fire } from '../testing/fire.ts'
import { expandHeaders, http, type HttpOptions } from './http.ts'

type Asked = { readonly options?: Partial<HttpOptions>; readonly timeoutMs?: number; readonly path?: string }

async function served<T>(listener: RequestListener, use: (url: string) => Promise<T>): Promise<T> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  try {
    return await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

function judge(listener: RequestListener, { options, timeoutMs, path = '/judge' }: Asked = {}): Promise<HookOutcome> {
  return served(listener, (url) =>
    fire(
      guard('beforeToolUse', http({ url: `${url}${path}`, allowPrivate: true, ...options }), {
        ...(timeoutMs !== undefined && { timeoutMs }),
      }),
      'beforeToolUse',
      { toolCall: { id: 'c1', name: 'work', args: { n: 1 } } },
    ),
  )
}

const answering =
  (text: string, status = 200): RequestListener =>
  (_request, response) =>
    void response.writeHead(status).end(text)

suite('http as a guard', () => {
  const answers: readonly [what: string, listener: RequestListener, decision: string | undefined, message: RegExp][] = [
    ['responds with nothing', answering(''), undefined, /^$/],
    ['responds with 204', answering('', 204), undefined, /^$/],
    ['responds with white space', answering(' \n'), undefined, /^$/],
    ['responds with an empty object', answering('{}'), undefined, /^$/],
    ['blocks', answering('{"decision":"block","reason":"never"}'), 'block', /^never$/],
    ['asks', answering('{"decision":"ask","reason":"sure?"}'), 'ask', /^sure\?$/],
    ['allows', answering('{"decision":"allow","reason":"ok"}'), 'allow', /^ok$/],
    ['responds with 201 and a block', answering('{"decision":"deny","reason":"x"}', 201), 'block', /^x$/],
    ['responds with text', answering('hello'), 'block', /not JSON/],
    ['responds with half of a JSON object', answering('{"decision":'), 'block', /not JSON/],
    ['responds with a list', answering('[]'), 'block', /JSON object/],
    [
      'responds with an unknown decision',
      answering('{"decision":"denny"}'),
      'block',
      /"decision" of the answer cannot be "denny"/,
    ],
    ['responds with 500', answering('{"decision":"allow"}', 500), 'block', /status 500/],
    ['responds with 404', answering('', 404), 'block', /status 404/],
    [
      'redirects',
      (_request, response) => void response.writeHead(302, { location: '/other' }).end('{"decision":"allow"}'),
      'block',
      /status 302/,
    ],
    ['closes the connection', (request) => void request.socket.destroy(), 'block', /hang up|ECONNRESET/],
    ['responds with too much', answering('x'.repeat(100_000)), 'block', /longer than 65536 bytes/],
  ]
  for (const [what, listener, decision, message] of answers) {
    test(`a server that ${what} ${decision === undefined ? 'has no opinion' : `means ${decision}`}`, async () => {
      const outcome = await judge(listener)
      assert.equal(outcome.decision, decision)
      assert.match(outcome.message ?? '', message)
    })
  }

  test('a server that times out blocks', async () => {
    const outcome = await judge(() => undefined, { timeoutMs: 60 })
    assert.deepEqual([outcome.decision, /no answer within 60 ms/.test(outcome.message!)], ['block', true])
  })

  test('a server receives the event', async () => {
    let text = ''
    await judge((request, response) => {
      request.setEncoding('utf8').on('data', (piece: string) => (text += piece))
      request.on('end', () => response.end())
    })
    const event = JSON.parse(text) as JsonObject
    assert.deepEqual(
      [event['trigger'], event['toolCall']],
      ['beforeToolUse', { id: 'c1', name: 'work', args: { n: 1 } }],
    )
  })

  test('the query of a URL is neither in its label nor in its errors', async () => {
    const outcome = await judge(answering('', 500), { path: '/judge?token=secret#secret' })
    assert.ok(!outcome.message!.includes('secret'))
  })

  test('a private address gets no request unless it is allowed', async () => {
    let isAsked = false
    const listener: RequestListener = (_request, response) => {
      isAsked = true
      response.end('{}')
    }
    const outcome = await judge(listener, { options: { allowPrivate: false } })
    assert.deepEqual([outcome.decision, isAsked], ['block', false])
    assert.match(outcome.message!, /this machine or its network/)
  })
})

suite('headers of http', () => {
  test('headers contain the listed variables and no others', async () => {
    process.env['HOOKLOOP_TEST_TOKEN'] = 'abc'
    let seen: unknown
    const listener: RequestListener = (request, response) => {
      seen = request.headers['authorization']
      response.end()
    }
    const options = {
      headers: { Authorization: 'Bearer ${HOOKLOOP_TEST_TOKEN}' },
      allowedEnvVars: ['HOOKLOOP_TEST_TOKEN'],
    }
    await judge(listener, { options })
    delete process.env['HOOKLOOP_TEST_TOKEN']
    assert.equal(seen, 'Bearer abc')
    assert.deepEqual(expandHeaders({ a: '$X ${Y} $Z' }, ['X', 'Y'], { X: '1', Z: 'secret' }), { a: '1  ' })
  })

  test('the value of a variable cannot start another header', () => {
    const made = expandHeaders({ a: '$X' }, ['X'], { X: 'one\r\nHost: evil\0' })
    assert.deepEqual(made, { a: 'oneHost: evil' })
  })
})

suite('invalid options of http', () => {
  const wrong: readonly [what: string, options: unknown][] = [
    ['is missing', {}],
    ['is not a string', { url: 7 }],
    ['is not a URL', { url: 'hooks.example' }],
    ['is a file', { url: 'file:///etc/passwd' }],
    ['is a javascript: URL', { url: 'javascript:alert(1)' }],
    ['contains a user name', { url: 'https://hooks.example@evil.example/' }],
    ['contains a line break', { url: 'https://hooks.example/\nx' }],
    ['contains a backslash', { url: 'https://evil.example\\@hooks.example/' }],
    ['contains a NUL', { url: 'https://evil.example/\0.hooks.example' }],
    ['has an unknown option', { url: 'https://hooks.example', header: {} }],
    ['has a header with a line break', { url: 'https://hooks.example', headers: { a: 'b\r\nHost: evil' } }],
    ['has a header with an invalid name', { url: 'https://hooks.example', headers: { 'a b': 'c' } }],
    ['has a reserved header', { url: 'https://hooks.example', headers: { 'Content-Length': '1' } }],
    ['has a host header', { url: 'https://hooks.example', headers: { HOST: 'evil.example' } }],
    ['has a variable that is not listed', { url: 'https://hooks.example', headers: { a: '$AWS_SECRET_ACCESS_KEY' } }],
  ]
  for (const [what, options] of wrong) {
    test(`http throws for a URL that ${what}`, () => {
      assert.throws(() => http(options as HttpOptions), { code: 'AGENT_INVALID_OPTION' })
    })
  }
})

test('http as a hook changes arguments, and as an observer it decides nothing', async () => {
  const listener = answering('{"updatedInput":{"n":2},"metadata":{"seen":true}}')
  const [changed, watched] = await served(listener, async (url) => [
    await fire(hook('beforeToolUse', http({ url, allowPrivate: true })), 'beforeToolUse'),
    await fire(observe('beforeToolUse', http({ url, allowPrivate: true })), 'beforeToolUse'),
  ])
  assert.deepEqual([changed.args, changed.state?.metadata, watched], [{ n: 2 }, { seen: true }, {}])
})

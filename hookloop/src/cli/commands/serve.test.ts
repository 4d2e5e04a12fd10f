import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, before, suite, test } from 'node:test'
import { serve, type Started } from '../cli.fixture.ts'
import { ScriptedProject } from '../scripted-project.fixture.ts'

type Line = { readonly event: string; readonly url?: string; readonly path?: string; readonly status?: number }

const project = new ScriptedProject()
let server: Started
let url: URL
let token: string

before(async () => {
  server = project.start(['serve', 'agent.ts', '--port', '0', '--json'])
  url = new URL((JSON.parse(await server.firstLine()) as Line).url!)
  token = new URLSearchParams(url.hash.slice(1)).get('token')!
})
after(() => server.kill('SIGKILL'))

/** A request with any headers, also with those that `fetch` sets itself. */
function send(
  path: string,
  {
    method = 'GET',
    headers = {},
    body = '',
  }: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<{ readonly status: number; readonly text: string; readonly headers: NodeJS.Dict<string | string[]> }> {
  return new Promise((resolve, reject) => {
    const given = { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers }
    const sent = request({ host: '127.0.0.1', port: url.port, path, method, headers: given }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (piece: string) => (text += piece))
      response.on('end', () => resolve({ status: response.statusCode!, text, headers: response.headers }))
    })
    sent.on('error', reject).end(body)
  })
}

const message = JSON.stringify({
  id: 'c',
  trigger: 'submit-message',
  messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'hello' }] }],
})

test('hookloop serve answers the page with a token on loopback, stores chats as sessions, and logs JSON', async () => {
  assert.deepEqual([url.hostname, token.length >= 22], ['127.0.0.1', true])
  const { status, text } = await send('/api/chat', { method: 'POST', body: message })
  assert.equal(status, 200)
  assert.match(text, /"delta":"I "/)
  const { stdout } = await project.hookloop(['sessions', '--json'])
  assert.match(stdout, /chat\/local\/c/)
  await server.wrote(/"event":"request","method":"POST","path":"\/api\/chat","status":200/)
})

test('the page has a strict CSP and no inline script', async () => {
  const { text, headers } = await send('/')
  assert.match(String(headers['content-security-policy']), /default-src 'none'.*require-trusted-types-for 'script'/)
  assert.doesNotMatch(text, /<script(?![^>]*src=)|onclick|style=/)
  for (const path of ['/chat.js', '/chat.css']) assert.equal((await send(path)).status, 200)
  assert.doesNotMatch((await send('/chat.js')).text, /innerHTML|insertAdjacentHTML|document\.write|eval\(/)
})

suite('what hookloop serve rejects', () => {
  const post = { method: 'POST', body: message }
  for (const [title, expected, path, options] of [
    ['no token', 401, '/api/chat', { ...post, headers: { authorization: '' } }],
    ['a wrong token', 401, '/api/chat', { ...post, headers: { authorization: 'Bearer x' } }],
    ['a token in the address', 401, '/api/chat?token=', { ...post, headers: { authorization: '' } }],
    ['a host name that leads here', 421, '/api/chat', { ...post, headers: { host: 'evil.example' } }],
    ['the page under a host name that leads here', 421, '/', { headers: { host: 'evil.example' } }],
    ['another port in the host', 421, '/', { headers: { host: '127.0.0.1:1' } }],
    ['an origin of another site', 403, '/api/chat', { ...post, headers: { origin: 'https://evil.example' } }],
    ['an origin of another port', 403, '/api/chat', { ...post, headers: { origin: 'http://127.0.0.1:1' } }],
    ['an opaque origin', 403, '/api/chat', { ...post, headers: { origin: 'null' } }],
    ['a request of another site', 403, '/api/chat', { ...post, headers: { 'sec-fetch-site': 'cross-site' } }],
    ['a request of a sister site', 403, '/api/chat', { ...post, headers: { 'sec-fetch-site': 'same-site' } }],
    ['a form', 415, '/api/chat', { ...post, headers: { 'content-type': 'text/plain' } }],
    ['a preflight', 405, '/api/chat', { method: 'OPTIONS' }],
    ['a file that is not part of the page', 404, '/../../etc/passwd', {}],
  ] as const)
    test(title, async () => {
      const { status, headers } = await send(path, options)
      assert.equal(status, expected)
      assert.equal(headers['access-control-allow-origin'], undefined)
    })
})

test('Ctrl-C ends hookloop serve with exit code 0', async () => {
  const other = project.start(['serve', 'agent.ts', '--port', '0', '--json'])
  await other.wrote(/"listening"/)
  other.kill('SIGINT')
  const { code, stdout } = await other.ended
  assert.deepEqual(
    [
      code,
      stdout
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as Line).event),
    ],
    [0, ['listening', 'stopping', 'stopped']],
  )
})

test('a port that is in use is a usage error that says what to do', async () => {
  await using taken = await serve(() => undefined)
  const { code, stderr } = await project.hookloop(['serve', 'agent.ts', '--port', taken.host.split(':')[1]!])
  assert.equal(code, 2)
  assert.match(stderr, /Port \d+ is in use\. Use --port 0/)
})

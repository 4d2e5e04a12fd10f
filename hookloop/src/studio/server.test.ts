import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { suite, test } from 'node:test'
import { newStore, raw, studioFor, type RawResponse, type TestStudio } from './studio.fixture.ts'

// Every rule for a page on loopback, attacked over a real socket.

type Attack = {
  readonly method?: string
  readonly path?: string
  /** Replaces headers, or removes those that are undefined. */
  readonly headers?: { readonly [name: string]: string | undefined }
  readonly body?: string
}

/** A request as the page sends it, with changes. */
function attack(
  studio: TestStudio,
  { method = 'POST', path = '/api/inbox', headers, body = '{}' }: Attack,
): Promise<RawResponse> {
  const all: { readonly [name: string]: string | undefined } = {
    host: studio.host,
    origin: studio.origin,
    'sec-fetch-site': 'same-origin',
    authorization: `Bearer ${studio.token}`,
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
    ...headers,
  }
  const lines = Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}`]))
  return raw(studio.port, [`${method} ${path} HTTP/1.1`, ...lines], body)
}

async function withStudio(use: (studio: TestStudio) => Promise<void>): Promise<void> {
  await using studio = await studioFor(newStore().store)
  await use(studio)
}

const rejected: readonly (readonly [title: string, attack: Attack, status: number])[] = [
  ['a host name that resolves to this machine (DNS rebinding)', { headers: { host: 'evil.example' } }, 421],
  ['the right name with another port', { headers: { host: '127.0.0.1:1' } }, 421],
  ['no host', { headers: { host: undefined } }, 400],
  ['the page itself under another name', { method: 'GET', path: '/', headers: { host: 'evil.example' } }, 421],
  ['a page of another origin', { headers: { origin: 'https://evil.example' } }, 403],
  ['a sandboxed frame, whose origin is null', { headers: { origin: 'null' } }, 403],
  ['another port of this machine', { headers: { origin: 'http://127.0.0.1:1', 'sec-fetch-site': 'same-site' } }, 403],
  ['another site that sends no origin', { headers: { origin: undefined, 'sec-fetch-site': 'cross-site' } }, 403],
  [
    'a script of another site that loads the page',
    { method: 'GET', path: '/page.js', headers: { origin: undefined, 'sec-fetch-site': 'cross-site' } },
    403,
  ],
  [
    'a frame of another site',
    {
      method: 'GET',
      path: '/',
      headers: {
        origin: undefined,
        'sec-fetch-site': 'cross-site',
        'sec-fetch-mode': 'navigate',
        'sec-fetch-dest': 'iframe',
      },
    },
    403,
  ],
  ['no token', { headers: { authorization: undefined } }, 401],
  ['another token', { headers: { authorization: 'Bearer x' } }, 401],
  ['the token as basic authentication', { headers: { authorization: 'Basic eDp5' } }, 401],
  ['the token in a cookie', { headers: { authorization: undefined, cookie: 'token=$TOKEN' } }, 401],
  ['the token in the query', { path: '/api/inbox?token=$TOKEN', headers: { authorization: undefined } }, 401],
  ['a form', { headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'a=b' }, 415],
  ['a form of plain text that contains JSON', { headers: { 'content-type': 'text/plain' } }, 415],
  ['no content type', { headers: { 'content-type': undefined } }, 415],
  ['an answer by GET', { method: 'GET', path: '/api/answer' }, 405],
  ['an answer by HEAD', { method: 'HEAD', path: '/api/answer' }, 405],
  ['a preflight of another site', { method: 'OPTIONS', headers: { 'access-control-request-method': 'POST' } }, 405],
  ['a stream by GET', { method: 'GET', path: '/stream/run' }, 405],
  ['a body that says that it is too large', { headers: { 'content-length': String(2 ** 21) } }, 413],
  ['a body that is not JSON', { body: '{' }, 400],
  ['a body that is no object', { body: '[]' }, 400],
  [
    'an upgrade to a web socket',
    {
      method: 'GET',
      path: '/',
      headers: {
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-key': 'eA==',
        'sec-websocket-version': '13',
      },
    },
    400,
  ],
  ['a path out of the page', { method: 'GET', path: '/../../etc/passwd' }, 404],
  ['an encoded path out of the page', { method: 'GET', path: '/%2e%2e/%2e%2e/etc/passwd' }, 404],
  ['a path of an object', { method: 'GET', path: '/constructor' }, 404],
  ['a call with the name of a method of objects', { path: '/api/constructor' }, 404],
  ['a complete URL of another host', { method: 'GET', path: 'http://evil.example/' }, 421],
  ['a call that does not exist', { path: '/api/other' }, 404],
]

suite('the studio rejects', () => {
  for (const [title, given, status] of rejected)
    test(title, () =>
      withStudio(async (studio) => {
        const fill = (text: string): string => text.replace('$TOKEN', studio.token)
        const headers = Object.fromEntries(
          Object.entries(given.headers ?? {}).map(([name, value]) => [name, value && fill(value)]),
        )
        const path = given.path === undefined ? {} : { path: fill(given.path) }
        const response = await attack(studio, { ...given, ...path, headers })
        assert.equal(response.status, status)
        assert.doesNotMatch(response.headers, /set-cookie|access-control-allow/i)
        assert.ok(!response.headers.includes(studio.token) && !response.body.includes(studio.token))
      }),
    )

  test('a body without an end, as soon as it is too large', () =>
    withStudio(async (studio) => {
      const { promise, resolve } = Promise.withResolvers<string>()
      const socket = connect(studio.port, '127.0.0.1')
      let text = ''
      socket.on('error', () => undefined)
      socket.on('data', (piece: Buffer) => (text += piece.toString()))
      socket.on('close', () => resolve(text))
      const head = [
        'POST /api/inbox HTTP/1.1',
        `host: ${studio.host}`,
        `authorization: Bearer ${studio.token}`,
        'content-type: application/json',
        'transfer-encoding: chunked',
      ]
      socket.write(`${head.join('\r\n')}\r\n\r\n`)
      const chunk = `10000\r\n${' '.repeat(0x10000)}\r\n`
      const write = (): void => {
        while (socket.writable && socket.write(chunk));
        if (socket.writable) socket.once('drain', write)
      }
      write()
      assert.match(await promise, /^HTTP\/1\.1 413 |^$/) // the connection may be reset before the response is read
    }))

  test('requests from another machine, because it listens at 127.0.0.1 only', async (t) => {
    const other = Object.values(networkInterfaces())
      .flatMap((all) => all ?? [])
      .find(({ internal, family }) => !internal && family === 'IPv4')
    if (other === undefined) return t.diagnostic('This machine has no other address.')
    await withStudio(async ({ port }) => {
      const { promise, resolve } = Promise.withResolvers<string | undefined>()
      const socket = connect(port, other.address)
      socket.on('error', ({ code }: NodeJS.ErrnoException) => resolve(code))
      socket.on('connect', () => resolve('connected'))
      const result = await promise
      socket.destroy()
      assert.equal(result, 'ECONNREFUSED')
    })
  })
})

suite('the studio serves', () => {
  test('its page, without a token in it, under a policy that allows only its own files', () =>
    withStudio(async (studio) => {
      const response = await fetch(`${studio.origin}/`)
      const body = await response.text()
      const policy = response.headers.get('content-security-policy') ?? ''
      assert.equal(response.status, 200)
      assert.ok(!body.includes(studio.token))
      assert.match(policy, /default-src 'none'/)
      assert.match(policy, /require-trusted-types-for 'script'/)
      assert.match(policy, /frame-ancestors 'none'/)
      assert.doesNotMatch(policy, /unsafe|\*|https?:/)
      assert.equal(response.headers.get('x-content-type-options'), 'nosniff')
      assert.equal(response.headers.get('referrer-policy'), 'no-referrer')
      assert.equal(response.headers.get('cache-control'), 'no-store')
      assert.equal(
        (await fetch(`${studio.origin}/page.js`)).headers.get('content-type'),
        'text/javascript; charset=utf-8',
      )
    }))

  test('its own page and programs with the token, under both names of this machine', () =>
    withStudio(async (studio) => {
      const local = `localhost:${studio.port}`
      const requests: readonly Attack[] = [
        {},
        { headers: { origin: undefined, 'sec-fetch-site': undefined } },
        { headers: { host: local, origin: `http://${local}` } },
      ]
      for (const each of requests) {
        const { status, body } = await attack(studio, each)
        assert.deepEqual([status, /\{.*\}/.exec(body)?.[0]], [200, '{"questions":[]}'])
      }
    }))

  test('its page to a user who follows a link', () =>
    withStudio(async (studio) => {
      const headers = {
        origin: undefined,
        'sec-fetch-site': 'cross-site',
        'sec-fetch-mode': 'navigate',
        'sec-fetch-dest': 'document',
      }
      assert.equal((await attack(studio, { method: 'GET', path: '/', headers, body: '' })).status, 200)
      assert.equal((await attack(studio, { method: 'GET', path: '/page.js', headers, body: '' })).status, 403)
    }))

  test('other machines only if it listens at another address, and then under numeric addresses only', async () => {
    await using studio = await studioFor(newStore().store, { host: '0.0.0.0' })
    for (const { address, family } of Object.values(networkInterfaces()).flatMap((all) => all ?? [])) {
      if (family !== 'IPv4') continue
      const host = `${address}:${studio.port}`
      assert.equal((await attack(studio, { headers: { host, origin: `http://${host}` } })).status, 200)
    }
    assert.equal((await attack(studio, { headers: { host: `evil.example:${studio.port}` } })).status, 421)
  })

  test('at most 100 streams, so that a page which opens them in a loop does not stop it', () =>
    withStudio(async (studio) => {
      const opened = await Promise.all(
        Array.from({ length: 100 }, async () => {
          const stream = studio.lines('inbox', {})
          await stream.next()
          return stream
        }),
      )
      assert.equal((await attack(studio, { path: '/stream/inbox' })).status, 503)
      await Promise.all(opened.map((stream) => stream.return(undefined)))
      assert.deepEqual(await studio.call('inbox', {}), { questions: [] })
    }))

  test('nothing after it was closed, and a stream that is open ends', async () => {
    const studio = await studioFor(newStore().store)
    const stream = studio.lines('inbox', {})
    assert.deepEqual((await stream.next()).value, { questions: [] })
    await studio[Symbol.asyncDispose]()
    assert.equal(
      await stream.next().then(
        ({ done }) => done,
        () => true,
      ),
      true,
    )
    await assert.rejects(fetch(studio.origin))
  })
})

import assert from 'node:assert/strict'
import { createServer, request as send } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { readJson } from './http.ts'
import { toNodeListener } from './node-listener.ts'

const servers: { close(): unknown; closeAllConnections(): void }[] = []
after(() => {
  for (const server of servers) {
    server.close()
    server.closeAllConnections()
  }
})

async function listen(handle: (request: Request) => Response | Promise<Response>): Promise<number> {
  const server = createServer(toNodeListener(handle))
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

test('method, address, headers, body, status and cookies pass through node:http', async () => {
  const port = await listen(async (request) => {
    const { pathname, search } = new URL(request.url)
    const headers = new Headers({ 'x-seen': request.headers.get('x-sent') ?? '' })
    for (const cookie of ['a=1', 'b=2; Path=/']) headers.append('set-cookie', cookie)
    return new Response(`${request.method} ${pathname}${search} ${await request.text()}`, { status: 201, headers })
  })
  const options = { method: 'POST', headers: { 'x-sent': 'yes' }, body: 'héllo' }
  const response = await fetch(`http://127.0.0.1:${port}/a%2Fb?c=d`, options)
  assert.equal(await response.text(), 'POST /a%2Fb?c=d héllo')
  assert.deepEqual(
    [response.status, response.headers.get('x-seen'), response.headers.getSetCookie()],
    [201, 'yes', ['a=1', 'b=2; Path=/']],
  )
})

test('a response is taken from its source only as fast as the client reads it', async () => {
  let taken = 0
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  const port = await listen(
    () =>
      new Response(
        new ReadableStream({
          pull: (controller) => {
            taken++
            controller.enqueue(new Uint8Array(65_536))
          },
          cancel: resolve,
        }),
      ),
  )
  const socket = connect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'))
  await new Promise((done) => socket.once('readable', done))
  socket.pause()
  let before = -1
  while (before !== taken) {
    before = taken
    for (let i = 0; i < 200; i++) await new Promise((done) => setImmediate(done))
  }
  assert.ok(taken < 2_000, `${taken} pieces of 64 KiB were taken`)
  socket.destroy()
  await closed
})

test('a client that leaves aborts the request and cancels the response', async () => {
  const aborted = Promise.withResolvers<void>()
  const cancelled = Promise.withResolvers<void>()
  const port = await listen((request) => {
    request.signal.addEventListener('abort', () => aborted.resolve())
    const start = (controller: ReadableStreamDefaultController): void =>
      controller.enqueue(new TextEncoder().encode('hi'))
    return new Response(new ReadableStream({ start, cancel: () => cancelled.resolve() }))
  })
  const leaving = new AbortController()
  const response = await fetch(`http://127.0.0.1:${port}/`, { signal: leaving.signal })
  await response.body!.getReader().read()
  leaving.abort()
  await Promise.all([aborted.promise, cancelled.promise])
})

test('a response to a client that has left before it is cancelled', async () => {
  const [asked, cancelled] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const port = await listen(async ({ signal }) => {
    asked.resolve()
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    return new Response(new ReadableStream({ cancel: () => cancelled.resolve() }))
  })
  const socket = connect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'))
  await asked.promise
  socket.destroy()
  await cancelled.promise
})

test('numbers of a request that JavaScript would round are read as strings', async () => {
  const headers = { 'content-type': 'application/json' }
  const body = '{"answer":{"allow":{"id":9007199254740993,"far":[1e400],"near":12}}}'
  assert.deepEqual(await readJson(new Request('http://localhost/', { method: 'POST', headers, body }), 1_000), {
    answer: { allow: { id: '9007199254740993', far: ['1e400'], near: 12 } },
  })
})

test('a request that is too large is answered with 413 while it is still being sent', async () => {
  const port = await listen(async (request) => {
    try {
      await readJson(request, 1_000)
      return new Response('read')
    } catch (thrown) {
      return new Response('', { status: (thrown as { status: number }).status })
    }
  })
  const headers = { 'content-type': 'application/json' }
  const outgoing = send({ port, host: '127.0.0.1', method: 'POST', headers })
  outgoing.on('error', () => undefined)
  outgoing.write('x'.repeat(2_000)) // and the rest never comes
  const status = await new Promise((resolve) => outgoing.once('response', ({ statusCode }) => resolve(statusCode)))
  assert.equal(status, 413)
  outgoing.destroy()
})

test('a request with a host that is none is answered with 400, and one that fails with 500 without details', async () => {
  const port = await listen(() => {
    throw new Error('secret /etc/passwd')
  })
  const status = (lines: string): Promise<string> =>
    new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1', () => socket.write(lines))
      let text = ''
      socket.on('data', (data: Buffer) => (text += data.toString())).once('close', () => resolve(text))
    })
  assert.match(await status('GET / HTTP/1.1\r\nHost: a b[\r\nConnection: close\r\n\r\n'), /^HTTP\/1.1 400 /)
  const failed = await status('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
  assert.match(failed, /^HTTP\/1.1 500 /)
  assert.doesNotMatch(failed, /secret|passwd/)
})

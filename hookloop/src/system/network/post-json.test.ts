import assert from 'node:assert/strict'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net'
import { messageOf } from '../../errors.ts'
import { suite, test } from 'node:test'
import { PostTimeout, postJson, type PostOptions, type Posted } from './post-json.ts'

const limits = { timeoutMs: 5_000, maxBytes: 1_000, allowPrivate: true }

async function posted(listener: RequestListener, options: Partial<PostOptions> = {}, path = '/'): Promise<Posted> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  try {
    return await postJson(`http://127.0.0.1:${portOf(server)}${path}`, '{"a":1}', { ...limits, ...options })
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

function portOf(server: { address(): unknown }): number {
  return (server.address() as AddressInfo).port
}

suite('a post', () => {
  test('sends JSON, and returns the status and the text of the answer', async () => {
    let sent = ''
    const answer = await posted((request, response) => {
      request.setEncoding('utf8').on('data', (text: string) => (sent += text))
      request.on('end', () => response.writeHead(201).end(`${request.method} ${request.headers['content-type']}`))
    })
    assert.deepEqual([answer, sent], [{ status: 201, text: 'POST application/json' }, '{"a":1}'])
  })

  test('follows no redirect', async () => {
    let asked = 0
    const answer = await posted((_request, response) => {
      asked++
      response.writeHead(302, { location: 'http://169.254.169.254/' }).end()
    })
    assert.deepEqual([answer.status, asked], [302, 1])
  })

  test('whose answer is endless or too slow is cut off', async () => {
    const endless: RequestListener = (_request, response) => {
      const more = (): void => void (response.destroyed || response.write('x'.repeat(10_000), () => setImmediate(more)))
      more()
    }
    await assert.rejects(posted(endless), /longer than 1000 bytes/)
    const dripping: RequestListener = (_request, response) => {
      const timer = setInterval(() => response.write(' '), 10)
      response.on('close', () => clearInterval(timer))
    }
    await assert.rejects(posted(dripping, { timeoutMs: 100 }), PostTimeout)
    await assert.rejects(
      posted(() => undefined, { timeoutMs: 100 }),
      /no answer within 100 ms/,
    )
  })

  test('whose answer the server cuts off rejects', async () => {
    const half: RequestListener = (_request, response) => {
      response.writeHead(200, { 'content-length': 100 })
      response.write('{"decision":', () => response.destroy())
    }
    await assert.rejects(posted(half))
  })

  test('that is cancelled rejects and says so', async () => {
    const cancel = new AbortController()
    const waiting = posted(() => cancel.abort(), { signal: cancel.signal })
    await assert.rejects(waiting, /cancelled/)
  })

  test('rejects if no server answers, or one that does not speak HTTP', async () => {
    await assert.rejects(postJson('http://127.0.0.1:9/', '{}', limits), /ECONNREFUSED/)
    const tcp = createTcpServer((socket: Socket) => socket.end('hello\n'))
    await new Promise<void>((resolve) => void tcp.listen(0, '127.0.0.1', resolve))
    await assert.rejects(postJson(`http://127.0.0.1:${portOf(tcp)}/`, '{}', limits))
    tcp.close()
  })

  test('does not request compressed answers', async () => {
    const { text } = await posted(
      (request, response) => void response.end(request.headers['accept-encoding'] ?? 'none'),
    )
    assert.equal(text, 'none')
  })
})

suite('a post to public addresses only', () => {
  const outside = { ...limits, allowPrivate: false }
  const hosts = `127.0.0.1 127.1 0x7f000001 2130706433 0177.0.0.1 ①②⑦.0.0.1 0 [::1] [::] [::ffff:127.0.0.1]
    [::ffff:7f00:1] [::127.0.0.1] localhost localhost. 10.0.0.1 169.254.169.254 [fe80::1] [64:ff9b::7f00:1] [fd00::1]`
  for (const host of hosts.split(/\s+/)) {
    test(`does not reach ${host}`, async () => {
      let isReached = false
      const server: Server = createServer((_request, response) => {
        isReached = true
        response.end('{}')
      })
      await new Promise<void>((resolve) => void server.listen(0, resolve))
      const why = await postJson(`http://${host}:${portOf(server)}/`, '{}', outside).then(() => 'reached', String)
      server.closeAllConnections()
      server.close()
      assert.match(messageOf(why), /this machine or its network|ENOTFOUND localhost\./)
      assert.ok(!isReached)
    })
  }

  test('connects to the address that was checked, even if the name resolves differently later', async () => {
    const server = createServer((_request, response) => void response.end('reached'))
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    const answers = ['192.0.0.1', '127.0.0.1'].map((address) => [{ address, family: 4 }])
    const asked: string[] = []
    const rebinding: PostOptions['resolve'] = (host, _options, done) => {
      asked.push(host)
      done(null, answers.shift() ?? [{ address: '127.0.0.1', family: 4 }])
    }
    const options = { ...outside, resolve: rebinding }
    await assert.rejects(postJson(`http://rebinding.example:${portOf(server)}/`, '{}', options), /192\.0\.0\.1/)
    await assert.rejects(postJson(`http://rebinding.example:${portOf(server)}/`, '{}', options), /127\.0\.0\.1/)
    assert.deepEqual(asked, ['rebinding.example', 'rebinding.example'])
    server.close()
  })

  test('accepts http and https only', async () => {
    for (const url of ['file:///etc/passwd', 'ftp://example.org/', 'data:,x', 'ws://example.org/']) {
      await assert.rejects(postJson(url, '{}', outside), /is not supported/)
    }
  })
})

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { boundedFetch } from './bounded-fetch.ts'
import { breaking } from './breaking-server.fixture.ts'
import { callOnce, connected, hostile } from './mcp.fixture.ts'
import type { McpServer } from './settings.ts'

const go = 'mcp__it__go'
const events = { headers: { 'content-type': 'text/event-stream' } }
const json = { headers: { 'content-type': 'application/json' } }

/** A server whose tool answers with this text, in which "ID" is the id of the request. */
const transports: { readonly [name: string]: (t: TestContext, answer: string) => Promise<McpServer> } = {
  stdio: async (t, answer) => {
    const folder = mkdtempSync(join(tmpdir(), 'hookloop-mcp-'))
    t.after(() => rmSync(folder, { recursive: true }))
    writeFileSync(join(folder, 'answer'), answer)
    return { ...hostile('answers-from-a-file'), env: { ANSWER: join(folder, 'answer') } }
  },
  'HTTP with JSON': async (t, answer) => {
    return { url: await breaking(t, (id) => new Response(answer.replace('"ID"', String(id)), json)) }
  },
  'HTTP with events': async (t, answer) => {
    const event = (id: number): string => `event: message\ndata: ${answer.replace('"ID"', String(id))}\n\n`
    return { url: await breaking(t, (id) => new Response(event(id), events)) }
  },
}

const list = (item: string, count: number): string => `[${`${item},`.repeat(count)}${item}]`
const keys = (count: number): string => Array.from({ length: count }, (_, i) => `"key${i}":1`).join()
const answer = (fields: string): string => `{"jsonrpc":"2.0",${fields},"id":"ID"}`
const tooMany = /did not answer: its response has more than 250000 values\. The call may have had an effect/
const tooDeep = /did not answer: its response is nested more than 2000 levels deep\. The call may have/

const shapes: { readonly [what: string]: { readonly text: string; readonly says: RegExp } } = {
  '300,000 keys of structured content': {
    text: answer(`"result":{"content":[],"structuredContent":{${keys(300_000)}}}`),
    says: tooMany,
  },
  '300,000 keys of metadata': { text: answer(`"result":{"_meta":{${keys(300_000)}}}`), says: tooMany },
  '150,000 empty annotations': {
    text: answer(`"result":{"content":[{"type":"text","text":"x","annotations":${list('{}', 150_000)}}]}`),
    says: tooMany,
  },
  '100,000 blocks of content': {
    text: answer(`"result":{"content":${list('{"type":0,"text":1}', 100_000)}}`),
    says: tooMany,
  },
  '300,000 fields beside the result': { text: answer(`${keys(300_000)},"result":{"content":[]}`), says: tooMany },
  '150,000 lists in its error': {
    text: answer(`"error":{"code":1,"message":"x","data":${list('[]', 150_000)}}`),
    says: tooMany,
  },
  '300,000 empty texts': { text: answer(`"result":{"content":${list('""', 300_000)}}`), says: tooMany },
  '3,000 levels': {
    text: answer(`"result":{"structuredContent":${'['.repeat(3_000)}${']'.repeat(3_000)}}`),
    says: tooDeep,
  },
}

for (const [name, serverWith] of Object.entries(transports)) {
  describe(`over ${name}`, () => {
    for (const [what, { text, says }] of Object.entries(shapes)) {
      test(`an answer with ${what} is not parsed, and the call fails`, async (t) => {
        const { status, output } = await callOnce(await connected(t, await serverWith(t, text)), go)
        assert.equal(status, 'failed')
        assert.match(output as string, says)
      })
    }

    test('the server can be called again after an answer with too many values', async (t) => {
      const servers = await connected(t, await serverWith(t, shapes['300,000 fields beside the result']!.text), {
        maxReconnects: 0,
      })
      for (const _ of [1, 2]) assert.match((await callOnce(servers, go)).output as string, tooMany)
    })

    test('structured content that is longer than maxOutputChars is shortened as text', async (t) => {
      const text = answer(`"result":{"content":[],"structuredContent":{${keys(100_000)}}}`)
      const servers = await connected(t, await serverWith(t, text), { maxOutputChars: 40 })
      const { output } = await callOnce(servers, go)
      assert.match(output as string, /^\{"key0":1,\n\[… \d+ characters left out …\]\n.{30}$/)
    })

    test('integers that JavaScript would round are strings in structured content', async (t) => {
      const fields = '"id":9007199254740993,"negative":[-12345678901234567890],"far":1e400,"near":12,"text":"1e400"'
      const text = answer(`"result":{"content":[],"structuredContent":{${fields}}}`)
      const { output } = await callOnce(await connected(t, await serverWith(t, text)), go)
      assert.deepEqual(output, {
        id: '9007199254740993',
        negative: ['-12345678901234567890'],
        far: '1e400',
        near: 12,
        text: '1e400',
      })
    })
  })
}

test('an integer that JavaScript would round fits an output schema that requires an integer', async (t) => {
  const servers = await connected(t, hostile('large-integers'))
  const called = await servers.call('go')
  assert.deepEqual(await callOnce(servers, go), {
    status: 'ok',
    output: { id: '9007199254740993', far: ['1e400'], near: 12 },
  })
  assert.equal(called.text, '{"id":"9007199254740993","far":["1e400"],"near":12}')
})

test('a list of messages in one body is read message by message', async (t) => {
  const note = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}'
  const text = answer('"result":{"content":[{"type":"text","text":"ok"}]}')
  const server = await transports['HTTP with JSON']!(t, `[${note},${text}]`)
  assert.deepEqual(await callOnce(await connected(t, server), go), { status: 'ok', output: 'ok' })
})

describe('events of a stream', () => {
  /** What the SDK reads of a stream that arrives in chunks. */
  async function rewritten(...chunks: readonly string[]): Promise<string> {
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const chunk of chunks) controller.enqueue(new TextEncoder().encode(chunk))
        controller.close()
      },
    })
    const rewrite = (text: string): string | undefined => (text === 'bad' ? undefined : `<${text}>`)
    const fetching = boundedFetch(async () => new Response(stream, events), {
      maxBytes: 100,
      rewrite,
      rejected: () => undefined,
    })
    return (await fetching('http://localhost/')).text()
  }

  test('keep their other fields, and their data is joined to one line', async () => {
    assert.equal(
      await rewritten('id: 7\r\nevent: message\r\ndata: a\r\nda', 'ta:b\r\n\r', '\n: note\n\n'),
      'id: 7\nevent: message\ndata: <a\nb>\n\n: note\n\n',
    )
  })

  test('may end their lines with carriage returns, and start with a byte order mark', async () => {
    assert.equal(await rewritten('\uFEFFdata: a\r\rdata: b\r\r'), 'data: <a>\n\ndata: <b>\n\n')
  })

  test('of another type, and those that are not valid, lose their data but not their id', async () => {
    assert.equal(
      await rewritten('event: other\nid: 1\ndata: a\n\n', 'id: 2\ndata: bad\n\n', 'id: 3\ndata:\n\n'),
      'event: other\nid: 1\ndata: \n\nid: 2\ndata: \n\nid: 3\ndata: \n\n',
    )
  })

  test('that are not complete when the stream ends are left out', async () => {
    assert.equal(await rewritten('data: a\n\ndata: b\n'), 'data: <a>\n\n')
  })

  test('have a maximum length, also on many lines', async () => {
    assert.equal((await rewritten(`data: ${'a'.repeat(90)}\n\n`)).length, 100)
    await assert.rejects(rewritten('data: a\n'.repeat(20), '\n'), /an answer of more than 100 bytes/)
    await assert.rejects(rewritten(`data: ${'a'.repeat(100)}`), /an answer of more than 100 bytes/)
  })
})

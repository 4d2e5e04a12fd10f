import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { explain } from '../../core/explain/explain.ts'
import { explanation } from '../../core/explain/explanation.ts'
import { retry } from '../../capabilities/retry.ts'
import { createAgent, type AgentOptions } from '../../create-agent.ts'
import type { ModelSource } from '../../core/state/inference.ts'
import { startServer, type Turn } from '../provider-server.fixture.ts'
import { KEY, rows, streamed, type Mode, type Row } from '../provider-suite.fixture.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import { redactKeys } from './secrets.ts'

// The server repeats the key in every way it can, and nothing that a run produces may contain it.

const echo = `Incorrect API key provided: ${KEY}. You sent "Bearer ${KEY}".`

const echoes: { readonly [title: string]: (mode: Mode) => Turn } = {
  'in a rejection': () => ({ error: { message: echo }, status: 401 }),
  'where a long rejection is cut': () => ({ error: { message: 'x'.repeat(460) + echo }, status: 401 }),
  'in a failure that is retried': () => ({ error: { message: echo }, status: 500 }),
  'in a reply that cannot be read': (mode) => (mode === 'run' ? { body: `{${echo}` } : streamed(`{${echo}`)),
  'in an error with a success status': (mode) => {
    const body = JSON.stringify({ error: { message: echo, code: 500, type: echo } })
    return mode === 'run' ? { body } : streamed(body)
  },
  'in a page of a proxy': () => ({ status: 403, headers: { 'x-key': KEY }, body: `<p>${echo}</p>` }),
}

/** Where the key comes from: an option of the provider's package, or the environment. */
const sources: { readonly [title: string]: (row: Row, address: string) => ModelSource } = {
  'an option': (row, address) => row.create(address, KEY)(row.modelId),
  'the environment': (row, address) => {
    Object.assign(process.env, row.environment(address, KEY))
    return `${row.name}/${row.modelId}`
  },
}

/** Every place with every provider. Where the key comes from, and how the model is called, alternate. */
const cases = rows.flatMap((row, r) =>
  Object.entries(echoes).map(([place, turnFor], i) => {
    const [source, modelFrom] = Object.entries(sources)[(r + i) % 2]!
    return { row, place, turnFor, source, modelFrom, mode: i % 3 === 0 ? ('run' as const) : ('stream' as const) }
  }),
)

for (const { row, place, turnFor, source, modelFrom, mode } of cases)
  test(`${row.name}, ${mode}: a key from ${source} that comes back ${place} is redacted`, async () => {
    const server = await startServer()
    const before = { ...process.env }
    try {
      server.next(turnFor(mode), turnFor(mode))
      const use = [retry({ maxRetries: 1, backoffMs: 1, on: ['MODEL_OVERLOADED'] })]
      const traces = await tracesOf({ model: modelFrom(row, server.url), use }, mode)
      assert.ok(JSON.stringify(server.requests[0]!.headers).includes(KEY)) // it was really sent
      assert.deepEqual(
        Object.entries(traces).flatMap(([what, text]) => (text.includes(KEY.slice(0, 8)) ? [what, text] : [])),
        [],
      )
    } finally {
      process.env = before
      await server.close()
    }
  })

/** Everything a run produces, as text. */
async function tracesOf(
  { model, use = [] }: Pick<AgentOptions, 'model' | 'use'>,
  mode: Mode,
): Promise<{ readonly [what: string]: string }> {
  const store = memoryStore()
  const agent = createAgent({ model, use, store })
  const events: unknown[] = []
  const live = mode === 'stream' ? agent.stream('Go.', { session: 's' }) : undefined
  for await (const event of live ?? []) events.push(event)
  const run = await (live?.run ?? agent.run('Go.', { session: 's' }))
  assert.equal(run.status, 'failed')
  return {
    run: JSON.stringify(run),
    state: JSON.stringify(run.state),
    ledger: JSON.stringify(run.ledger),
    events: JSON.stringify(events),
    'events, inspected': inspect(events, { depth: 20, showHidden: true }),
    session: (await store.read('s'))!.lines.join('\n'),
    message: run.error.message,
    stack: String(run.error.stack),
    cause: inspect(run.error.cause, { depth: 20, showHidden: true }),
    'run, inspected': inspect(run, { depth: 20, showHidden: true }),
    explained: explain(run),
    explanation: JSON.stringify(explanation(run)),
    description: inspect(agent.describe(), { depth: 20 }),
  }
}

for (const [what, address, key] of [
  ['a key that cannot be sent', 'http://127.0.0.1:1', 'canary\n-4f1d9c27'],
  ['credentials in a URL', 'http://me:canary-4f1d9c27@127.0.0.1:1', 'key'],
] as const)
  test(`${what}: not reported`, async () => {
    for (const row of rows) {
      const traces = await tracesOf({ model: row.create(address, key)(row.modelId) }, 'run')
      assert.doesNotMatch(Object.values(traces).join(), /4f1d9c27/)
    }
  })

test('two keys with a common prefix are both redacted completely', async () => {
  process.env['CANARY_A_KEY'] = 'abcdefgh'
  process.env['CANARY_TOKEN_B'] = 'abcdefghijkl'
  try {
    assert.equal(
      await redactKeys('You sent abcdefghijkl and abcdefgh.', undefined),
      'You sent [redacted] and [redacted].',
    )
  } finally {
    delete process.env['CANARY_A_KEY']
    delete process.env['CANARY_TOKEN_B']
  }
})

test('text that looks like a key is redacted wherever it comes from', async () => {
  const said = [
    'sk-proj-********abcd1234',
    'gsk_0123456789abcdef',
    'AIzaSyA0123456789abcdef',
    'Bearer abc.def-ghi',
    'https://host/path?key=abcdef&alt=sse',
    'https://me:secret@host/path',
  ].join(' | ')
  assert.equal(
    await redactKeys(said, undefined),
    '[redacted] | [redacted] | [redacted] | [redacted] | https://host/path?key=[redacted]&alt=sse | https://[redacted]@host/path',
  )
})

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import pg from 'pg'
import { tool } from '../../core/agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import type { LanguageModel } from '../../core/state/inference.ts'
import { startPostgres } from './postgres.fixture.ts'
import { postgresStore } from './postgres-store.ts'
import type { SessionStore } from './store.ts'

const server = await startPostgres()
const { connectionString } = server
after(() => server.stop())

/** Calls the tool in each of four steps. What it does depends on the conversation only, so any process can continue. */
const model: LanguageModel = {
  provider: 'test',
  modelId: 'four-steps',
  infer: async ({ messages }) => {
    const step = (messages.length - 1) / 2
    if (step >= 4) return { content: [{ type: 'text', text: 'Done.' }], finishReason: 'stop' }
    const call = { type: 'tool-call', toolCallId: `c${step}`, toolName: 'work', input: { step } } as const
    return { content: [call], finishReason: 'tool-calls' }
  },
}

function worker(store: SessionStore, work: (step: number) => Promise<void>) {
  const input = { type: 'object', properties: { step: { type: 'number' } } } as const
  const execute = async (args: unknown): Promise<string> => {
    await work((args as { step: number }).step)
    return 'done'
  }
  return createAgent({ model, store, use: [tool({ name: 'work', description: 'Works.', input, execute })] })
}

const kinds: { readonly [kind: string]: () => { readonly store: SessionStore; readonly end: () => Promise<void> } } = {
  'its own pool': () => ({
    store: postgresStore({ connectionString, schema: 'own', leaseMs: 1_000 }),
    end: async () => undefined,
  }),
  'a pool of the application without a listener for errors': () => {
    const pool = new pg.Pool({ connectionString, max: 3 })
    return { store: postgresStore({ pool, schema: 'given', leaseMs: 1_000 }), end: () => pool.end() }
  },
}

for (const [kind, open] of Object.entries(kinds)) {
  test(`a run whose database goes away and comes back ends with STORE_FAILED or continues, and no call is lost or made twice: ${kind}`, async () => {
    for (const [at, how] of [
      [0, 'restart'], // every connection of the pools breaks, used or idle
      [1, 'down'], // the result of the call cannot be stored
      [3, 'down'],
    ] as const) {
      const { store, end } = open()
      const done: number[] = []
      const session = `killed-at-${at}`
      const run = await worker(store, async (step) => {
        done.push(step)
        if (step === at) await server[how]()
      }).run('Go.', { session })
      if (how === 'down') await server.up()
      if (how === 'down' || run.status !== 'completed') {
        assert.ok(run.status === 'failed' && run.error.code === 'STORE_FAILED', run.status)
      }
      await store.close()
      await end()
      const later = open()
      const again = worker(later.store, async (step) => void done.push(step))
      if (run.status !== 'completed') {
        const resumed = await again.resume(session, { waitMs: 60_000 })
        assert.equal(resumed.status, 'completed')
      }
      const state = await again.session(session).state()
      assert.deepEqual(
        [state?.stepCount, done.toSorted((a, b) => a - b), state?.messages.length],
        [5, [0, 1, 2, 3], 10],
        `killed at ${at}`,
      )
      await later.store.close()
      await later.end()
    }
  })
}

test('a process whose database was down when it released a session resumes it at once when the database is back', async () => {
  const store = postgresStore({ connectionString, schema: 'released', leaseMs: 3_600_000 })
  const session = 'outage'
  const run = await worker(store, async (step) => {
    if (step === 1) await server.down()
  }).run('Go.', { session, turn: 'one' })
  assert.ok(run.status === 'failed' && run.reason === 'persistenceFailed', run.status)
  await server.up()
  const done: number[] = []
  const resumed = await worker(store, async (step) => void done.push(step)).run('Go.', { session, turn: 'one' })
  assert.deepEqual([resumed.status, done], ['completed', [2, 3]])
  await store.close()
})

test('a run whose database does not answer any more ends with STORE_FAILED, also with a pool of the application that waits for ever', async () => {
  const pool = new pg.Pool({ connectionString, max: 3 })
  let isSilent = false
  const query = (text: string, values?: unknown[]): Promise<pg.QueryResult> =>
    isSilent ? new Promise(() => undefined) : pool.query(text, values)
  const given = { query, connect: () => pool.connect() }
  const store = postgresStore({ pool: given, schema: 'silent', leaseMs: 1_000 })
  const run = await worker(store, async (step) => void (isSilent = step === 1)).run('Go.', { session: 'silent' })
  assert.ok(run.status === 'failed' && run.error.code === 'STORE_FAILED', run.status)
  assert.match(run.error.message, /no answer within 5000 ms/)
  isSilent = false
  const done: number[] = []
  const resumed = await worker(store, async (step) => void done.push(step)).resume('silent', { waitMs: 60_000 })
  assert.deepEqual([resumed.status, done.includes(0)], ['completed', false])
  await store.close()
  await pool.end()
})

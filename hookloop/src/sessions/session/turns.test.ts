import assert from 'node:assert/strict'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { setImmediate as soon } from 'node:timers/promises'
import * as z from 'zod'
import type { Run } from '../../core/agent/run.ts'
import { tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { AgentError } from '../../errors.ts'
import { guard } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { sqliteStore } from '../stores/sqlite-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { answerApproval } from './approvals.ts'

const request = { session: 's', turn: 'request-1' } as const

/** An agent whose tool counts its calls. It calls it once per user message. */
function scene(store: SessionStore, { during = (): unknown => undefined, asks = false, calls = 1 } = {}) {
  const done: string[] = []
  const act = tool({
    name: 'act',
    description: 'Acts.',
    input: { type: 'object' },
    execute: async (_, { idempotencyKey }) => {
      done.push(idempotencyKey)
      await during()
      return 'done'
    },
  })
  const model = scriptedModel(({ messages }) => {
    const sinceInput = messages.length - 1 - messages.slice().findLastIndex(({ role }) => role === 'user')
    return sinceInput < 2 * calls ? { toolCalls: [{ name: 'act' }] } : `Answer ${messages.length}.`
  })
  const ask = guard('beforeToolUse', (ctx) => ctx.ask('Really?'), { name: 'ask' })
  const use = [act, asks && [ask, approval('suspend')]]
  return { done, model, agent: createAgent({ model, store, use }) }
}

/** What a caller can see of a run. */
function seen(run: Run) {
  const { status, text, reason } = run
  return { status, text, reason, final: 'final' in run ? run.final : undefined, ledger: run.ledger.length }
}

suite('a turn', () => {
  test('that is sent again is the same run: nothing runs twice', async () => {
    const { agent, done, model } = scene(memoryStore())
    const first = await agent.run('Go.', request)
    const again = await agent.run('Go.', request)
    const calls = model.requests.length
    const other = await agent.run('Go.', { ...request, turn: 'request-2' })
    assert.deepEqual(seen(again), seen(first))
    assert.deepEqual([calls, model.requests.length, done.length], [2, 4, 2])
    assert.notEqual(other.text, first.text)
  })

  test('returns its own run after others have followed', async () => {
    const { agent, done } = scene(memoryStore())
    const first = await agent.run('Go.', request)
    for (const turn of ['a', 'b', 'c']) await agent.session('s').send('More.', { turn })
    assert.deepEqual(seen(await agent.session('s').send('Go.', { turn: request.turn })), seen(first))
    assert.equal(done.length, 4)
  })

  test('is answered from the record however many others have followed', async () => {
    const store = memoryStore()
    const { agent, done } = scene(store, { calls: 0 })
    const first = await agent.run('Go.', request)
    for (let i = 0; i < 300; i++) await agent.run('More.', { session: 's', turn: `turn ${i}` })
    const { length } = (await store.read('s'))!.lines
    assert.deepEqual(seen(await agent.run('Go.', request)), seen(first))
    assert.deepEqual([done, (await store.read('s'))!.lines.length], [[], length])
  })

  test('is known in a process that reads the session from a snapshot', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'hookloop-turns-')), 's.db')
    const long = 'x'.repeat(60_000)
    const store = sqliteStore(path)
    for (let i = 0; i < 6; i++) await scene(store).agent.run(`${i} ${long}`, { session: 's', turn: `turn ${i}` })
    await store.close()
    const cold = sqliteStore(path)
    const { agent, done } = scene(cold)
    const { head } = (await cold.read('s', { after: Infinity }))!
    assert.ok('snapshot' in head)
    for (const turn of ['turn 5', 'turn 0'])
      assert.equal((await agent.run('Go.', { session: 's', turn })).status, 'completed')
    assert.deepEqual(done, [])
    await cold.close()
  })

  test('that waits for an answer is returned as it is, and resumed when it is answered', async () => {
    const store = memoryStore()
    const { agent, done } = scene(store, { asks: true })
    const first = await agent.run('Go.', request)
    const again = await agent.run('Go.', request)
    assert.ok(first.status === 'suspended' && again.status === 'suspended')
    assert.deepEqual(again.pending, first.pending)
    await answerApproval(store, { session: 's', approval: first.pending[0]!.id, answer: 'allow' })
    assert.equal((await agent.run('Go.', request)).status, 'completed')
    assert.equal(done.length, 1)
  })

  test('whose input was blocked can be sent again', async () => {
    let blocks = true
    const gate = guard('onUserInput', (ctx) => (blocks ? ctx.block('Not now.') : ctx), { name: 'gate' })
    const agent = createAgent({ model: scriptedModel(() => 'Hello.'), store: memoryStore(), use: [gate] })
    assert.equal((await agent.run('Go.', request)).status, 'stopped')
    blocks = false
    assert.equal((await agent.run('Go.', request)).text, 'Hello.')
  })

  test('that is cancelled before its input is taken stays cancelled when it is sent again', async () => {
    for (const others of [[], ['a', 'b']]) {
      const { agent, model } = scene(memoryStore())
      const cancelled = { status: 'cancelled', text: '', reason: 'userRequested' }
      const first = seen(await agent.run('Go.', { ...request, signal: AbortSignal.abort() }))
      for (const turn of others) assert.equal((await agent.run('Go.', { ...request, turn })).status, 'completed')
      const calls = model.requests.length
      const again = seen(await agent.run('Go.', request))
      assert.deepEqual(again, first)
      assert.deepEqual({ ...again, ...cancelled }, again)
      assert.equal(model.requests.length, calls)
    }
  })

  test('returns the typed output, and the error of a run that failed', async () => {
    const store = memoryStore()
    const typed = createAgent({
      model: scriptedModel(() => '{"city":"Bern"}'),
      store,
      output: z.object({ city: z.string() }),
    })
    const outputs = [await typed.run('Where?', request), await typed.run('Where?', request)]
    assert.deepEqual(
      outputs.map((run) => run.status === 'completed' && run.output),
      [{ city: 'Bern' }, { city: 'Bern' }],
    )
    const broken = createAgent({
      model: scriptedModel(() => {
        throw new AgentError('MODEL_REJECTED', 'No such model.')
      }),
      store,
    })
    const [first, again] = [
      await broken.run('Go.', { session: 'b', turn: 't' }),
      await broken.run('Go.', { session: 'b', turn: 't' }),
    ]
    assert.ok(first.status === 'failed' && again.status === 'failed')
    assert.deepEqual([again.error.code, again.error.message], [first.error.code, first.error.message])
  })
})

test('two requests with the same turn at the same time are one run, if they wait for the lock', async () => {
  for (const store of [memoryStore(), sqliteStore(join(mkdtempSync(join(tmpdir(), 'hookloop-turns-')), 's.db'))]) {
    let begun = (): void => undefined
    const started = new Promise<void>((resolve) => (begun = resolve))
    let finish = (): void => undefined
    const finished = new Promise<void>((resolve) => (finish = resolve))
    const { agent, done } = scene(store, {
      during: () => {
        begun()
        return finished
      },
    })
    const first = agent.run('Go.', request)
    await started
    await assert.rejects(agent.run('Go.', request), { code: 'SESSION_BUSY' })
    const others = [1, 2, 3].map(() => agent.run('Go.', { ...request, waitMs: 60_000 }))
    await soon()
    finish()
    const runs = await Promise.all([first, ...others])
    assert.deepEqual(new Set(runs.map(({ text }) => text)).size, 1)
    assert.equal(done.length, 1)
    await store.close()
  }
})

suite('drain', () => {
  test('suspends a run at the end of its step, and another process finishes it', async () => {
    const store = memoryStore()
    const ending = new AbortController()
    const { agent, done } = scene(store, { calls: 3, during: async () => ending.abort() })
    const run = await agent.run('Go.', { ...request, drain: ending.signal })
    assert.ok(run.status === 'suspended')
    assert.deepEqual([run.pending, run.state.stepCount, done.length], [[], 1, 1])
    const other = scene(store, { calls: 3 })
    assert.equal((await other.agent.run('Go.', request)).status, 'completed')
    assert.equal(other.done.length, 2)
  })

  test('works without a session, and with resume', async () => {
    const { agent } = scene(memoryStore(), { calls: 2 })
    const drain = AbortSignal.abort()
    const first = await agent.run('Go.', { drain })
    const second = await agent.resume(first, { drain })
    assert.deepEqual([first.state.stepCount, second.state.stepCount], [1, 2])
    assert.equal((await agent.resume(second)).status, 'completed')
  })

  test('leaves a run that takes no new input, with advice that works: it waits for no answer', async () => {
    const store = memoryStore()
    const drain = AbortSignal.abort()
    const { agent } = scene(store)
    const paused = await agent.run('Go.', { drain })
    const alone = { code: 'STATE_SUSPENDED', message: /^The run is paused .*Use agent\.resume\(run\) first\.$/ }
    await assert.rejects(agent.run('More.', { from: paused }), alone)
    assert.equal((await agent.resume(paused)).status, 'completed')
    const message = /^The session "\w" has a paused run .*Use agent\.resume\('\w'\) first\. .*onNewInput: 'block'/
    for (const [session, follow] of [
      ['a', () => agent.resume('a')],
      ['b', () => agent.run('More.', { session: 'b', onNewInput: 'block' })],
    ] as const) {
      await agent.run('Go.', { session, drain })
      await assert.rejects(agent.run('More.', { session }), { code: 'STATE_SUSPENDED', message })
      assert.equal((await follow()).status, 'completed')
    }
  })
})

test('a session whose questions were answered elsewhere is to be resumed without answers', async () => {
  const store = memoryStore()
  const { agent } = scene(store, { asks: true })
  const run = await agent.run('Go.', { session: 's' })
  const [pending] = run.status === 'suspended' ? run.pending : []
  await answerApproval(store, { session: 's', approval: pending!.id, answer: 'allow' })
  await assert.rejects(agent.run('More.', { session: 's' }), /Use agent\.resume\('s'\) first/)
  assert.equal((await agent.resume('s')).status, 'completed')
})

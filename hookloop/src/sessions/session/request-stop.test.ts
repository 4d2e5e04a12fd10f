import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setImmediate as soon } from 'node:timers/promises'
import { explain } from '../../core/explain/explain.ts'
import { tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { AgentError } from '../../errors.ts'
import { guard, observe } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { readRuns } from '../log/read-runs.ts'
import { strictReplay } from '../replay/strict-replay.fixture.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { answerApproval, listApprovals } from './approvals.ts'
import { requestStop } from './request-stop.ts'

const jane = { session: 's', by: 'jane', reason: 'wrong branch' } as const
const said = 'The run was stopped on request of jane: wrong branch'

/** An agent whose tool waits until its signal aborts, or until it is released. */
function scene(store: SessionStore, { asks = false } = {}) {
  const { promise: started, resolve: start } = Promise.withResolvers<void>()
  const { promise: released, resolve: release } = Promise.withResolvers<string>()
  const [done, reasons, ended]: [string[], unknown[], string[]] = [[], [], []]
  const act = tool({
    name: 'act',
    description: 'Acts.',
    input: { type: 'object' },
    execute: (_, { signal, idempotencyKey }) => {
      done.push(idempotencyKey)
      start()
      const aborted = new Promise<string>((resolve) => {
        signal.addEventListener('abort', () => {
          reasons.push(signal.reason)
          resolve('aborted')
        })
      })
      return Promise.race([aborted, released])
    },
  })
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'tool' ? 'Done.' : { toolCalls: [{ name: 'act' }] },
  )
  const ask = guard('beforeToolUse', (ctx) => ctx.ask('Really?'), { name: 'ask' })
  const watch = observe('afterExecution', ({ outcome }) => void ended.push(outcome.stopReason ?? 'none'), {
    name: 'watch',
  })
  const agent = createAgent({ model, store, use: [act, watch, asks && [ask, approval('suspend')]] })
  return { agent, model, done, reasons, ended, started, release: () => release('released') }
}

suite('a request to stop a run', () => {
  test('cancels it, aborts the call that runs, and says who asked and why', async () => {
    const store = memoryStore()
    const { agent, model, started, reasons, ended } = scene(store)
    const running = agent.run('Go.', { session: 's' })
    await started
    assert.equal(await requestStop(store, jane), true)
    const run = await running
    assert.ok(run.status === 'cancelled')
    const { reason, by, message, value } = run.final
    const { at } = value as { at: number }
    assert.deepEqual([reason, by, message], ['userRequested', 'stop', said])
    assert.deepEqual(value, { by: 'jane', reason: 'wrong branch', at })
    assert.deepEqual([model.requests.length, ended], [1, ['userRequested']])
    const [aborted] = reasons
    assert.ok(aborted instanceof AgentError)
    assert.deepEqual([aborted.code, aborted.message], ['RUN_CANCELLED', said])
    const [stored] = await readRuns(store, 's')
    for (const text of [explain(run), explain(stored!)]) assert.equal(text.split('\n')[0], said)
  })

  test('returns false if no run is open, and does not affect the next run', async () => {
    const store = memoryStore()
    assert.equal(await requestStop(store, jane), false)
    for (let i = 0; i < 2; i++) {
      const { agent, release } = scene(store)
      release()
      assert.equal((await agent.run('Go.', { session: 's' })).status, 'completed')
      assert.equal(await requestStop(store, jane), false)
      assert.equal(await agent.session('s').stop(), false)
    }
  })

  test('that waits for an answer ends it without running the call, although it was allowed', async () => {
    const store = memoryStore()
    const { agent, done, ended } = scene(store, { asks: true })
    assert.equal((await agent.run('Go.', { session: 's' })).status, 'suspended')
    assert.equal(await requestStop(store, jane), true)
    const [open] = await listApprovals(store)
    await answerApproval(store, { session: 's', approval: open!.id, answer: 'allow' })
    const run = await agent.resume('s')
    assert.ok(run.status === 'cancelled')
    assert.deepEqual([run.final.message, done, ended], [said, [], ['userRequested']])
    assert.deepEqual(await listApprovals(store), [])
  })

  test('that waits for an answer is ended at once by session.stop', async () => {
    const store = memoryStore()
    const { agent, done } = scene(store, { asks: true })
    await agent.run('Go.', { session: 's' })
    assert.equal(await agent.session('s').stop({ by: 'jane' }), true)
    const [stored] = await readRuns(store, 's')
    assert.deepEqual(
      [stored?.status, stored?.final?.message, done],
      ['cancelled', 'The run was stopped on request of jane.', []],
    )
    assert.equal(await agent.session('s').stop(), false)
  })

  test('that runs elsewhere is waited for by session.stop', async () => {
    const store = memoryStore()
    const { agent, started } = scene(store)
    const running = agent.run('Go.', { session: 's' })
    await started
    assert.equal(await agent.session('s').stop({ by: 'jane', reason: 'wrong branch' }), true)
    const [stored] = await readRuns(store, 's')
    assert.deepEqual([stored?.status, (await running).status], ['cancelled', 'cancelled'])
  })

  test('does not affect a run that starts because new input blocks what the stopped one waits for', async () => {
    const store = memoryStore()
    const asking = scene(store, { asks: true })
    await asking.agent.run('Go.', { session: 's' })
    await requestStop(store, jane)
    const next = scene(store)
    next.release()
    const run = await next.agent.run('Something else.', { session: 's', onNewInput: 'block' })
    assert.equal(run.status, 'completed')
    const [stopped] = await readRuns(store, 's')
    assert.deepEqual([stopped?.status, stopped?.final?.message, asking.done], ['cancelled', said, []])
  })

  test('is part of the record: a replay ends with the same record', async () => {
    const store = memoryStore()
    const { agent, started } = scene(store)
    const running = agent.run('Go.', { session: 's' })
    await started
    await requestStop(store, jane)
    const first = await running
    const { run: again } = await strictReplay(agent, store, 's')
    assert.ok(first.status === 'cancelled' && again.status === 'cancelled')
    assert.deepEqual([again.final, first.final.message], [first.final, said])
  })

  test('and a signal: the first of both says why the run has ended', async () => {
    for (const first of ['signal', 'request']) {
      const store = memoryStore()
      const [controller, { agent, started }] = [new AbortController(), scene(store)]
      const running = agent.run('Go.', { session: 's', signal: controller.signal })
      await started
      if (first === 'signal') controller.abort()
      const requested = requestStop(store, jane)
      if (first === 'request') await soon()
      controller.abort()
      const run = await running
      assert.ok(run.status === 'cancelled')
      assert.equal(run.final.by, first === 'signal' ? 'signal' : 'stop')
      assert.equal(await requested, true)
    }
  })
})

import assert from 'node:assert/strict'
import { setImmediate as soon } from 'node:timers/promises'
import { suite, test } from 'node:test'
import type { Use } from '../../core/agent/capability.ts'
import { tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import { liveEffects } from '../../core/effects/effects.ts'
import { guard, hook } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { fakeClock } from '../../testing/fake-clock.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { dyingStore, toolBegin, toolEnd } from './dying-store.fixture.ts'

/** A store whose writes first pass a function. */
function watchedStore(onWrite: (lines: readonly string[]) => void | Promise<void>): SessionStore {
  const inner = memoryStore()
  return {
    ...inner,
    async open(id, options) {
      const writer = await inner.open(id, options)
      const append: typeof writer.append = async (lines, ...rest) => {
        await onWrite(lines)
        await writer.append(lines, ...rest)
      }
      return { ...writer, append }
    },
  }
}

type Hooks = { readonly ask?: () => void; readonly judge?: () => void; readonly act?: () => Promise<void> | void }

/** An agent that asks about a call, judges it with an effect, and makes it; each is a line of what was done. */
function worker(store: SessionStore, { ask, judge, act }: Hooks = {}, use: readonly Use[] = []) {
  const done: string[] = []
  const pay = tool({
    name: 'pay',
    description: '',
    input: { type: 'object' },
    ask: true,
    execute: async () => {
      done.push('paid')
      await act?.()
      return 'paid'
    },
  })
  const judges = guard('beforeToolUse', async (ctx) => (judge?.(), done.push('judged'), ctx), {
    name: 'judges',
    effect: true,
  })
  const asks = approval(async () => (ask?.(), done.push('asked'), 'allow' as const))
  const mail = hook('afterExecution', async (ctx) => (done.push('mailed'), ctx), { name: 'mail', effect: true })
  const model = scriptedModel(({ messages }) =>
    messages.length === 1
      ? {
          toolCalls: [
            { name: 'pay', args: {} },
            { name: 'pay', args: {} },
          ],
        }
      : 'Done.',
  )
  return { done, model, agent: createAgent({ model, store, use: [pay, judges, asks, mail, ...use] }) }
}

suite('a store that fails', () => {
  for (const [when, during, after] of [
    ['while a person is asked', 'ask', ['judged', 'judged', 'asked', 'asked']],
    ['inside a guard with an effect', 'judge', ['judged']],
    ['during an asynchronous tool', 'act', ['judged', 'judged', 'asked', 'asked', 'judged', 'paid', 'judged']],
  ] as const) {
    test(`${when} ends the run, and nothing more is done`, async () => {
      let isBroken = false
      const store = watchedStore(() => {
        if (isBroken) throw new Error('the disk is full')
      })
      const breaks = async (): Promise<void> => {
        isBroken = true
        if (during === 'act') await soon()
      }
      let recoveries = 0
      const goesOn = hook('onError', (ctx) => (recoveries++, ctx.retry()))
      const { agent, model, done } = worker(store, { [during]: breaks }, [goesOn])
      const run = await agent.run('Pay.', { session: 's' })
      assert.equal(run.status === 'failed' && run.error.code, 'STORE_FAILED')
      assert.equal(run.status === 'failed' && run.final.reason, 'persistenceFailed')
      assert.deepEqual([done, model.requests.length, recoveries], [after, 1, 0])
    })
  }

  test('makes no call whose start it did not store', async () => {
    const store = watchedStore((lines) => {
      if (lines.some((line) => toolBegin.test(line))) throw new Error('the disk is full')
    })
    const { agent, done } = worker(store)
    const run = await agent.run('Pay.', { session: 's' })
    assert.deepEqual([done.includes('paid'), run.status === 'failed' && run.error.code], [false, 'STORE_FAILED'])
  })
})

test('after a write has failed nothing more is written, even if the store works again', async () => {
  let [isBroken, written, failures] = [false, 0, 0]
  const store = watchedStore(() => {
    if (isBroken) {
      isBroken = false
      failures++
      throw new Error('the disk is full')
    }
    written++
  })
  let before = 0
  const breaks = (): void => {
    if (failures > 0) return
    isBroken = true
    before = written
  }
  const { agent, done } = worker(store, { act: breaks })
  const run = await agent.run('Pay.', { session: 's' })
  assert.equal(run.status === 'failed' && run.error.code, 'STORE_FAILED')
  assert.deepEqual([written, failures, done.includes('mailed')], [before, 1, false])
  assert.equal((await worker(store).agent.resume('s')).status, 'completed')
})

test('no model is called after a write has failed', async () => {
  const store = watchedStore((lines) => {
    if (lines.some((line) => toolEnd.test(line))) throw new Error('the disk is full')
  })
  const waits = hook('afterStep', async (ctx) => (await soon(), await soon(), ctx), { name: 'waits' })
  const look = tool({ name: 'look', description: '', input: { type: 'object' }, execute: () => 'seen' })
  const model = scriptedModel([{ toolCalls: [{ name: 'look' }] }, 'Done.'])
  const run = await createAgent({ model, store, use: [look, waits] }).run('Go.', { session: 's' })
  assert.deepEqual([run.status === 'failed' && run.error.code, model.requests.length], ['STORE_FAILED', 1])
})

test('an answer of an approver or of a hook is not used before it is stored', async () => {
  let stored = ''
  const store = watchedStore(async (lines) => {
    await soon()
    stored += lines.join('\n')
  })
  const seen: unknown[] = []
  const isStored = (key: string): boolean => new RegExp(`"t":"end","key":{[^}]*${key}`).test(stored)
  const after = guard('beforeToolUse', (ctx) => (seen.push(isStored('judges')), ctx), { name: 'after' })
  const blocked = hook('afterToolUse', (ctx) => (seen.push(isStored('"kind":"ask"')), ctx), { name: 'blocked' })
  const { agent, done } = worker(store, {}, [after, blocked, approval(async () => ({ block: 'No.' }))])
  await agent.run('Pay.', { session: 's' })
  assert.deepEqual([seen, done.includes('paid')], [[true, true, true, true], false])
})

test('two processes that take over a run without progress do not count the time in between twice', async () => {
  const store = memoryStore()
  const make = (over: SessionStore, startAt: number) => {
    const clock = fakeClock({ startAt })
    const { agent } = worker(over, { act: () => clock.advance(600) }, [guards({ maxTimeMs: 1_000 })])
    return { agent, effects: liveEffects({ clock }) }
  }
  const first = dyingStore(store, { at: toolEnd, stored: true })
  const one = make(first, 1_000)
  await Promise.race([one.agent.run('Pay.', { session: 's', effects: one.effects }), first.died])
  for (const startAt of [10_000_000, 20_000_000]) {
    const dying = dyingStore(store, { at: 1, stored: true })
    const { agent, effects } = make(dying, startAt)
    await Promise.race([agent.resume('s', { effects }), dying.died])
  }
  const last = make(store, 30_000_000)
  const run = await last.agent.resume('s', { effects: last.effects })
  const { execution } = run.state
  const worked = run.status === 'stopped' ? run.final.value : undefined
  assert.deepEqual([execution!.waitedMs, worked], [30_000_000 - 1_600, { value: 1_200, limit: 1_000 }])
})

test('a model call does not wait until its start is stored', async () => {
  let calls = 0
  const called = Promise.withResolvers<void>()
  const manyTurns = async (): Promise<void> => {
    for (let i = 0; i < 100; i++) await soon()
  }
  let hasWaited = false
  const store = watchedStore(async () => {
    if (calls !== 1) return
    await Promise.race([called.promise, manyTurns()]) // the write takes until the model is called again
    hasWaited = calls === 1
  })
  const again = guard('afterStep', (ctx) => (ctx.state.stepCount < 2 ? ctx.requestContinuation('Once more.') : ctx))
  const model = scriptedModel(() => {
    if (++calls === 2) called.resolve()
    return 'Done.'
  })
  await createAgent({ model, store, use: [again] }).run('Go.', { session: 's' })
  assert.deepEqual([calls, hasWaited], [2, false])
})

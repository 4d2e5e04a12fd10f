import assert from 'node:assert/strict'
import { setImmediate as soon } from 'node:timers/promises'
import { suite, test } from 'node:test'
import type { Use } from '../../core/agent/capability.ts'
import { tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { guard, hook } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { toolBegin } from './dying-store.fixture.ts'

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

test('an answer of an approver or of a hook is not used before it is stored', async () => {
  let stored = ''
  const store = watchedStore(async (lines) => {
    await soon()
    stored += lines.join('\n')
  })
  const seen: unknown[] = []
  const after = guard('beforeToolUse', (ctx) => (seen.push(/"t":"end","key":{[^}]*judges/.test(stored)), ctx), {
    name: 'after',
  })
  const blocked = hook('afterToolUse', (ctx) => (seen.push(stored.includes('"block":"No."')), ctx), { name: 'blocked' })
  const { agent, done } = worker(store, {}, [after, blocked, approval(async () => ({ block: 'No.' }))])
  await agent.run('Pay.', { session: 's' })
  assert.deepEqual([seen, done.includes('paid')], [[true, true, true, true], false])
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

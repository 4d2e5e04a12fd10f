import assert from 'node:assert/strict'
import { setImmediate as soon } from 'node:timers/promises'
import { suite, test } from 'node:test'
import * as z from 'zod'
import { approval } from '../../capabilities/approval.ts'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import { liveEffects } from '../effects/effects.ts'
import { action, type Action } from '../hooks/action.ts'
import { guard, hook, shadow } from '../hooks/hook.ts'
import type { HookOutcome } from '../hooks/outcome.ts'
import { scriptedModel } from '../../models/scripted.ts'
import type { Json, JsonObject } from '../../values/json.ts'
import type { Schema } from '../../values/schema.ts'
import type { Approval } from '../state/tool-call.ts'
import { fakeClock, type FakeClock } from '../../testing/fake-clock.ts'
import type { RunOptions } from '../agent/run-options.ts'
import type { Use } from '../agent/capability.ts'
import type { Run } from '../agent/run.ts'
import { tool } from '../agent/tool.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'

// What hooks of one trigger decide together, and when a run may end.

const done: Json[] = []
const work = (input: Schema = z.object({ n: z.number() })) =>
  tool({
    name: 'work',
    description: 'Works.',
    input,
    execute: (args) => {
      done.push(args as Json)
      return 'worked'
    },
  })

function runWith(args: JsonObject, options: RunOptions, ...use: readonly Use[]): Promise<Run> {
  done.length = 0
  const model = scriptedModel([{ toolCalls: [{ name: 'work', args }] }, 'done'])
  return createAgent({ model, use }).run('go', options)
}

async function untilEnd(running: Promise<Run>, clock: FakeClock): Promise<Run> {
  const later = async (): Promise<undefined> => {
    await clock.advance(60_000)
    await soon()
    return undefined
  }
  for (;;) {
    const run = await Promise.race([running, later()])
    if (run !== undefined) return run
  }
}

const deciding = (decide: () => HookOutcome): Action =>
  action({ kind: 'test', label: 'decides', asks: true, perform: async () => decide() })

const decisionsOf = (run: Run, name: string) =>
  run.ledger.filter(({ hook: by }) => by === name).map(({ decision, error }) => decision ?? error ?? 'none')

suite('hooks of one trigger', () => {
  for (const [how, blocks] of [
    [
      'by its action',
      hook(
        'beforeToolUse',
        deciding(() => ({ decision: 'block', message: 'no' })),
        { name: 'blocks' },
      ),
    ],
    [
      'because it failed',
      hook(
        'beforeToolUse',
        () => {
          throw new Error('oops')
        },
        { name: 'blocks', onFailure: 'block' },
      ),
    ],
  ] as const) {
    test(`after a hook blocks ${how}, later hooks do not run`, async () => {
      let later = 0
      const changes = hook('beforeToolUse', (ctx) => (later++, ctx.withArgs({ n: 2 })), { name: 'later' })
      const run = await runWith({ n: 1 }, {}, work(), blocks, changes)
      assert.deepEqual([later, done, decisionsOf(run, 'later')], [0, [], ['skipped']])
    })
  }

  const retryOnce = hook('onError', (ctx) => (ctx.consecutiveFailures === 1 ? ctx.retry() : ctx.ignore()))
  const failsOnce = () => {
    let calls = 0
    return hook('beforeToolUse', (ctx) => {
      if (calls++ === 0) throw new Error('once')
      return ctx
    })
  }

  test('a retried trigger forgets an earlier ask', async () => {
    const asked: Approval[] = []
    let calls = 0
    const asks = deciding(() => (calls++ === 0 ? { decision: 'ask', message: 'sure?' } : {}))
    const approver = approval((question) => (asked.push(question), 'allow'))
    await runWith({ n: 1 }, {}, work(), hook('beforeToolUse', asks), failsOnce(), retryOnce, approver)
    assert.deepEqual([calls, asked.length, done], [2, 0, [{ n: 1 }]])
  })

  test('a retried trigger forgets an earlier allow', async () => {
    const asked: Approval[] = []
    let calls = 0
    const allows = deciding(() => (calls++ === 0 ? { decision: 'allow' } : {}))
    const approver = approval({ tools: ['work'], answer: (question) => (asked.push(question), { block: 'no' }) })
    await runWith({ n: 1 }, {}, work(), hook('beforeToolUse', allows), failsOnce(), retryOnce, approver)
    assert.deepEqual([calls, asked.length, done], [2, 1, []])
  })

  const problem = async () => ({ issues: [{ message: 'no' }] })
  for (const [what, validate] of [
    ['rejects the arguments', problem],
    ['throws', async () => Promise.reject(new Error('the schema is broken'))],
    ['does not answer', () => new Promise<never>(() => undefined)],
  ] as const) {
    test(`a typed hook is skipped if an asynchronous schema ${what}`, async () => {
      const jsonSchema = { input: () => ({ type: 'object' }), output: () => ({ type: 'object' }) }
      const typed = work({ '~standard': { version: 1, vendor: 'test', validate, jsonSchema } })
      let calls = 0
      const changes = hook('beforeToolUse', (ctx) => (calls++, ctx), { name: 'typed', tool: typed })
      const clock = fakeClock()
      const running = runWith({ n: 1 }, { effects: liveEffects({ clock }) }, typed, changes)
      const run = await untilEnd(running, clock)
      assert.deepEqual([calls, done, decisionsOf(run, 'typed')], [0, [], ['skipped']])
    })
  }

  test('an asynchronous typed hook of a tool with an asynchronous schema is awaited', async () => {
    const typed = work(z.object({ n: z.number() }).refine(async () => true))
    const changes = hook(
      'beforeToolUse',
      async (ctx) => {
        await soon()
        return ctx.withArgs({ n: 2 })
      },
      { name: 'typed', tool: typed },
    )
    const run = await runWith({ n: 1 }, {}, typed, changes)
    assert.deepEqual([done, decisionsOf(run, 'typed').length], [[{ n: 2 }], 1])
  })

  test('of several hooks that fail, onError gets each failure once, and the hooks after them run', async () => {
    const seen: string[] = []
    const fails = (name: string) =>
      hook(
        'beforeStep',
        () => {
          seen.push(name)
          throw new Error(name)
        },
        { name },
      )
    const ignores = hook('onError', (ctx) => (seen.push(ctx.error.message.slice(-5)), ctx.ignore()), {
      name: 'ignores',
    })
    const last = hook('beforeStep', (ctx) => (seen.push('last'), ctx), { name: 'last' })
    const model = scriptedModel(['done'])
    const run = await createAgent({ model, use: [fails('first'), fails('other'), last, ignores] }).run('go')
    assert.equal(run.status, 'completed')
    assert.deepEqual(seen, ['first', 'first', 'other', 'other', 'last'])
  })

  for (const [what, pattern] of [
    ['a RegExp', /^wor/],
    ['a wildcard', 'wor*'],
    ['a name', 'work'],
  ] as const) {
    test(`a hook that selects its tool by ${what} can repair arguments that do not fit`, async () => {
      const repairs = hook('beforeToolUse', (ctx) => ctx.withArgs({ n: Number(ctx.toolCall.args['n']) }), {
        tool: pattern,
      })
      await runWith({ n: '7' }, {}, work(), repairs)
      assert.deepEqual(done, [{ n: 7 }])
    })
  }
})

suite('the end of a run', () => {
  test('typed output is read at the continuation limit', async () => {
    const wantsMore = hook('afterStep', (ctx) => ctx.requestContinuation('more'))
    const output = z.object({ title: z.string() })
    const endingWith = (text: string) => {
      const model = scriptedModel(() => text)
      return createAgent({ model, output, outputOptions: { maxRetries: 0 }, use: [wantsMore] }).run('go')
    }
    const valid = await endingWith('{"title":"a"}')
    const invalid = await endingWith('no title')
    assert.deepEqual([valid.status, valid.final?.reason], ['stopped', 'continuationLimit'])
    assert.deepEqual([invalid.status, invalid.status === 'failed' && invalid.error.code], ['failed', 'OUTPUT_INVALID'])
  })

  for (const [how, decision] of [
    ['completes', undefined],
    ['ends with a blocked input', 'block'],
    ['is suspended', 'ask'],
  ] as const) {
    test(`a run that ${how} ends only after shadow hooks have settled, and they are stored with it`, async () => {
      let answer: (() => void) | undefined
      const slow = shadow(
        guard('onUserInput', async (ctx) => {
          await new Promise<void>((resolve) => (answer = resolve))
          return ctx.block('too late')
        }),
        { name: 'slow' },
      )
      const decides = guard('onUserInput', (ctx) => (decision === undefined ? ctx : ctx[decision]('no')))
      let ended = false
      const store = memoryStore()
      const agent = createAgent({ model: scriptedModel(['done']), store, use: [slow, decides, approval('suspend')] })
      const running = agent.run('go', { session: 's' }).finally(() => (ended = true))
      for (let i = 0; i < 20; i++) await soon()
      assert.equal(ended, false)
      answer!()
      assert.deepEqual(decisionsOf(await running, 'slow'), ['block'])
      assert.match((await store.read('s'))!.lines.join(), /too late/)
    })
  }

  for (const [name, limits, steps, calls] of [
    ['maxSteps', { maxSteps: 3 }, 3, 3],
    ['maxToolCalls', { maxToolCalls: 3 }, 4, 3],
    ['maxTokens', { maxTokens: 45 }, 3, 2], // 15 tokens a step: the calls of the third step do not start
  ] as const) {
    test(`${name} allows exactly its number and stops the next one`, async () => {
      const model = scriptedModel(() => ({ toolCalls: [{ name: 'work', args: { n: 1 } }] }))
      done.length = 0
      const run = await createAgent({ model, use: [work(), guards(limits)] }).run('go')
      assert.deepEqual([run.status, run.state.stepCount, done.length], ['stopped', steps, calls])
    })
  }
})

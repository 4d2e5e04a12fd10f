import assert from 'node:assert/strict'
import { once } from 'node:events'
import { setImmediate as soon, setTimeout as delay } from 'node:timers/promises'
import { describe, test } from 'node:test'
import type { Use } from '../agent/capability.ts'
import type { Run } from '../agent/run.ts'
import { tool } from '../agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import type { Json } from '../../values/json.ts'
import type { LedgerEntry } from '../state/ledger.ts'
import type { ToolExecution } from '../state/tool-call.ts'
import { liveEffects } from '../effects/effects.ts'
import { scriptedModel, type ScriptedModel } from '../../models/scripted.ts'
import { fakeClock } from '../../testing/fake-clock.ts'
import { fire } from '../../testing/fire.ts'
import { guard, hook, observe, type Hook } from './hook.ts'
import type { GuardTrigger } from './triggers.ts'
import { replayedRun } from '../../sessions/replay/replayed-run.fixture.ts'

type Seen = { readonly run: Run; readonly model: ScriptedModel; readonly ran: number }

async function runWith(...use: readonly Use[]): Promise<Seen> {
  const model = scriptedModel([{ toolCalls: [{ name: 'work', args: { a: 1 } }] }, 'done', 'more'])
  let ran = 0
  const work = tool({ name: 'work', description: '', input: { type: 'object' }, execute: () => `secret ${++ran}` })
  return { model, run: await createAgent({ model, use: [work, ...use] }).run('go'), ran }
}

function firstCall({ run }: Seen): ToolExecution {
  return run.state.execution!.steps.at(0)!.toolExecutions[0]!
}

function ending({ run, model }: Seen): Json {
  return [run.status, run.final?.reason ?? false, run.final?.by ?? false, model.requests.length]
}

function entriesOf(run: Run, name: string): readonly Omit<LedgerEntry, 'step'>[] {
  return run.ledger.filter((entry) => entry.hook === name)
}

const forever = (): Promise<never> => new Promise(() => undefined)
const oops = (): never => {
  throw new Error('oops')
}

/** What a block looks like at each trigger. */
const noes: { readonly [T in GuardTrigger]?: (seen: Seen) => void } = {
  onUserInput: (seen) => assert.deepEqual(ending(seen), ['stopped', 'inputBlocked', 'judge', 0]),
  beforeExecution: (seen) => assert.deepEqual(ending(seen), ['stopped', 'errorForbade', 'judge', 0]),
  beforeStep: (seen) => assert.deepEqual(ending(seen), ['stopped', 'errorForbade', 'judge', 0]),
  beforeInference: (seen) => assert.deepEqual(ending(seen), ['stopped', 'errorForbade', 'judge', 0]),
  afterInference: (seen) => assert.deepEqual([seen.ran, seen.run.text.startsWith('[withheld by "judge"')], [0, true]),
  beforeToolUse: (seen) =>
    assert.deepEqual([seen.ran, firstCall(seen).status, firstCall(seen).by], [0, 'blocked', 'judge']),
  afterToolUse: (seen) =>
    assert.deepEqual([seen.ran, firstCall(seen).withheld, firstCall(seen).by], [1, true, 'judge']),
  afterStep: (seen) => assert.deepEqual(ending(seen), ['stopped', 'errorForbade', 'judge', 1]),
  onStop: (seen) => assert.deepEqual(ending(seen), ['stopped', 'errorForbade', 'judge', 2]),
}
const notFiredYet = ['onSubagentStop', 'beforeCompaction', 'afterCompaction'] as const

type Failure = {
  readonly handle?: (ctx: object) => unknown
  readonly timeoutMs?: number
  readonly when?: () => boolean
}

const failures: { readonly [how: string]: (foreign: object) => Failure } = {
  throws: () => ({ handle: oops }),
  rejects: () => ({ handle: async () => oops() }),
  'does not answer in time': () => ({ handle: forever, timeoutMs: 2 }),
  'returns nothing': () => ({ handle: () => undefined }),
  'returns nothing after a while': () => ({ handle: async () => undefined }),
  'returns nonsense': () => ({ handle: () => true }),
  'returns null': () => ({ handle: () => null }),
  'returns a look-alike of its context': () => ({ handle: (ctx) => Object.create(ctx) as object }),
  'returns a context from another invocation': (foreign) => ({ handle: () => foreign }),
  'has a when that throws': () => ({ when: oops }),
}

async function failing<T extends GuardTrigger>(trigger: T, how: string): Promise<Hook<T>> {
  let foreign = {}
  await fire(
    observe('beforeStep', (ctx) => void (foreign = ctx)),
    'beforeStep',
  )
  const { handle = (ctx) => ctx, ...options } = failures[how]!(foreign)
  return guard<T>(trigger, handle as never, { name: 'judge', ...options })
}

for (const how of Object.keys(failures)) {
  describe(`a guard that ${how}`, () => {
    for (const [trigger, isNo] of Object.entries(noes) as [GuardTrigger, (seen: Seen) => void][]) {
      test(`a guard that ${how} at ${trigger} blocks`, async () => {
        const seen = await runWith(await failing(trigger, how))
        isNo(seen)
        assert.ok(entriesOf(seen.run, 'judge').every((entry) => entry.error !== undefined))
      })
    }
    for (const trigger of notFiredYet) {
      test(`a guard that ${how} at ${trigger} blocks`, async () => {
        assert.equal((await fire(await failing(trigger, how), trigger)).decision, 'block')
      })
    }
  })
}

test('a guard times out after 60 seconds by default', async () => {
  const clock = fakeClock()
  const called = Promise.withResolvers<void>()
  const slow = guard('beforeStep', () => (called.resolve(), forever()), { name: 'slow' })
  const running = createAgent({ model: scriptedModel(['done']), use: [slow] }).run('go', {
    effects: liveEffects({ clock }),
  })
  await called.promise
  await clock.advance(60_000)
  assert.equal(entriesOf(await running, 'slow')[0]?.error, 'No answer within 60000 ms.')
})

test('a timeout of a month does not end at once', async () => {
  const patient = guard('beforeToolUse', async (ctx) => (await delay(5), ctx), { timeoutMs: 31 * 24 * 3_600_000 })
  assert.equal((await runWith(patient)).ran, 1)
})

test('within one hook, too, a decision is only made stricter', async () => {
  const torn = guard('beforeToolUse', (ctx) => ctx.allow().ask('may it?').block('never').ask('or?').allow())
  assert.deepEqual(await fire(torn, 'beforeToolUse'), { decision: 'block', message: 'never' })
})

test('guards after a block are skipped, and the ledger says so', async () => {
  const first = guard('beforeToolUse', (ctx) => ctx.block('never'), { name: 'first' })
  const second = guard('beforeToolUse', (ctx) => ctx.allow(), { name: 'second' })
  const { run } = await runWith(first, second)
  const [{ decision, message } = {}] = entriesOf(run, 'second')
  assert.deepEqual([decision, message], ['skipped', 'blocked by "first" before'])
})

test('allow satisfies the "ask" of a tool, never the ask of another guard', async () => {
  const ask = guard('beforeToolUse', (ctx) => ctx.ask('may it?'), { name: 'asks' })
  const allow = guard('beforeToolUse', (ctx) => ctx.allow(), { name: 'allows', priority: 1 })
  const byDefault = approval({ answer: 'block', tools: ['work'] })
  const [defaulted, asked] = [await runWith(byDefault, allow), await runWith(byDefault, ask, allow)]
  assert.deepEqual([defaulted.ran, asked.ran, firstCall(asked).by], [1, 0, 'approval'])
})

test('a hook that returns nothing fails with its name, because a missing return would lose a decision', async () => {
  const forgetful = hook('beforeStep', ((ctx: { stop(why: string): unknown }) => void ctx.stop('x')) as never, {
    name: 'forgetful',
  })
  const { run } = await runWith(forgetful)
  assert.deepEqual(run.status === 'failed' && [run.error.code, run.error.message], [
    'HOOK_NO_RETURN',
    'Hook "forgetful" failed at beforeStep: It returned nothing. Return the context, changed or not: "return ctx" or "return ctx.block(…)".',
  ])
})

test('a hook that fails with onFailure "continue" is skipped: its change is dropped, the others stay', async () => {
  const one = hook('beforeToolUse', (ctx) => ctx.withArgs({ a: 'one' }), { priority: 1 })
  const broken = hook('beforeToolUse', (ctx) => (ctx.withArgs({ a: 'broken' }), oops()), {
    onFailure: 'continue',
    name: 'broken',
  })
  const { run } = await runWith(one, broken)
  const [{ error, decision } = {}] = entriesOf(run, 'broken')
  assert.deepEqual(
    [run.state.execution!.steps.at(0)!.toolCalls[0]!.args, error, decision],
    [{ a: 'one' }, 'oops', 'continue'],
  )
})

test('a hook that fails with onFailure "block" blocks', async () => {
  const call = await runWith(hook('beforeToolUse', oops, { onFailure: 'block', name: 'judge' }))
  const step = await runWith(hook('beforeStep', oops, { onFailure: 'block', name: 'judge' }))
  noes.beforeToolUse!(call)
  noes.beforeStep!(step)
})

for (const how of ['throws', 'returns'] as const) {
  test(`a hook that ${how} when its signal aborts at its timeout has failed once, and changes nothing`, async () => {
    const seen: string[] = []
    const obeys = hook(
      'beforeStep',
      async (ctx) => {
        await once(ctx.signal, 'abort')
        if (how === 'throws') throw new Error('aborted')
        return ctx.withState((state) => state.withMetadata('late', true))
      },
      { name: 'obeys', timeoutMs: 2, onFailure: 'continue' },
    )
    const later = hook('beforeStep', async (ctx) => (await soon(), seen.push('later'), ctx), { name: 'later' })
    const { run } = await runWith(obeys, later)
    const failed = entriesOf(run, 'obeys').map(({ error }) => error)
    assert.deepEqual([run.status, run.state.metadata['late'], seen.length], ['completed', undefined, 2])
    assert.equal(failed.length, 2) // one in each step
    for (const error of failed) assert.match(error!, /No answer within 2 ms/)
  })
}

test('a hook with an effect is recorded, and a replay applies its result without running it', async () => {
  let calls = 0
  const critic = hook(
    'onStop',
    async (ctx) => {
      calls++
      return ctx.continuations > 0
        ? ctx
        : ctx.requestContinuation('again').withState((state) => state.withMetadata('n', calls))
    },
    { name: 'critic', effect: true },
  )
  const run = await replayedRun(createAgent({ model: scriptedModel(['one', 'two']), use: [critic] }), 'go')
  assert.deepEqual([calls, run.text, run.state.metadata['n']], [2, 'two', 1])
})

test('the ledger has a new output only if no hook after it could still change or withhold it', async () => {
  const first = hook('afterToolUse', (ctx) => ctx.withOutput('still secret'), { name: 'first' })
  const last = hook('afterToolUse', (ctx) => ctx.withOutput('redacted'), { name: 'last' })
  const judge = guard('afterToolUse', (ctx) => ctx, { name: 'judge' })
  const changesOf = async (...use: readonly Use[]): Promise<unknown> => {
    const { run } = await runWith(...use)
    return ['first', 'last'].map((name) => entriesOf(run, name)[0]!.changes)
  }
  assert.deepEqual(await changesOf(first, last), [[{ path: 'output' }], [{ path: 'output', after: 'redacted' }]])
  assert.deepEqual(await changesOf(first, last, judge), [[{ path: 'output' }], [{ path: 'output' }]])
})

test('a hook with an effect cannot choose a model, because it cannot be recorded', async () => {
  const model = scriptedModel([])
  const choose = hook('beforeInference', (ctx) => ctx.withRequest({ model }), { name: 'choose', effect: true })
  const { run } = await runWith(choose)
  assert.equal(run.status === 'failed' && run.error.code, 'HOOK_INVALID_OPTION')
})

test('synchronous handlers of one mode cost no microtask', async () => {
  const log: string[] = []
  const note =
    (word: string) =>
    <T>(ctx: T): T => (log.push(word), ctx)
  await runWith(
    hook('beforeExecution', (ctx) => (queueMicrotask(() => log.push('microtask')), note('first')(ctx))),
    hook('beforeExecution', note('second')),
    guard('beforeExecution', note('guard')),
    observe('beforeExecution', note('observer')),
  )
  assert.deepEqual(log, ['first', 'second', 'microtask', 'guard', 'observer'])
})

test('an observer does not delay the loop, and the run settles after it', async () => {
  const log: string[] = []
  const ended = Promise.withResolvers<void>()
  const slow = observe('beforeExecution', async () => (await ended.promise, await delay(30), log.push('observed')))
  await runWith(
    slow,
    observe('afterExecution', () => (log.push('ended'), ended.resolve())),
  )
  assert.deepEqual(log, ['ended', 'observed'])
})

test('an observer starts together with the others', async () => {
  const log: string[] = []
  const watch = (name: string): Use =>
    observe('beforeExecution', async () => (log.push(name), await delay(5), log.push(`/${name}`)))
  await runWith(watch('a'), watch('b'))
  assert.deepEqual(log, ['a', 'b', '/a', '/b'])
})

test('a failed observer is in the ledger and has no other effect', async () => {
  const broken = [
    observe('beforeStep', oops, { name: 'throws' }),
    observe('beforeStep', async () => (await delay(2), oops()), { name: 'rejects' }),
    observe('beforeStep', () => undefined, { name: 'when', when: oops }),
  ]
  const { run } = await runWith(...broken)
  const errors = broken.map(({ name }) => entriesOf(run, name).flatMap(({ error }) => error ?? []))
  assert.deepEqual(
    [run.status, errors],
    [
      'completed',
      [
        ['oops', 'oops'],
        ['oops', 'oops'],
        ['oops', 'oops'],
      ],
    ],
  )
})

test('an observer sees the value that was used, also of a blocked call', async () => {
  const seen: unknown[] = []
  await runWith(
    hook('beforeToolUse', (ctx) => ctx.withArgs({ a: 2 })),
    guard('beforeToolUse', (ctx) => ctx.block('never')),
    observe('beforeToolUse', (ctx) => seen.push(ctx.toolCall.args)),
    observe('afterToolUse', (ctx) => seen.push(ctx.toolExecution.status)),
  )
  assert.deepEqual(seen, [{ a: 2 }, 'blocked'])
})

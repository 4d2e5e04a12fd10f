import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { suite, test } from 'node:test'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { AgentError } from '../../errors.ts'
import { guard, hook, observe, type Hook } from '../hooks/hook.ts'
import { isAround, triggerNames, type HookTrigger, type PlainTrigger } from '../hooks/triggers.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import { fire } from '../../testing/fire.ts'
import { recordEvents } from '../../testing/record-events.ts'
import type { Agent } from '../agent/agent.ts'
import type { Use } from '../agent/capability.ts'
import {
  ask,
  begin,
  call,
  cases,
  completed,
  end,
  failing,
  natural,
  policies,
  unanswered,
  type Case,
} from './failure-table.fixture.ts'
import type { Run } from '../agent/run.ts'
import { tool } from '../agent/tool.ts'
import { fullStore, runIn } from '../../sessions/replay/replayed-run.fixture.ts'

const plainTriggers = triggerNames.filter((name): name is PlainTrigger => !isAround(name))
const twoCalls: ScriptedTurn = { toolCalls: [{ name: 'work' }, { name: 'work' }] }

/** The run of every case: the triggers it fires, how to cancel it, and how often its tool and its model were called. */
function stage({ model: how, tool: does }: Pick<Case, 'model' | 'tool'> = {}) {
  const controller = new AbortController()
  const cancel = (): void => controller.abort()
  const fired: HookTrigger[] = []
  const started: string[] = []
  const turns: ScriptedTurn[] = [twoCalls, 'done']
  if (how === 'fails once') turns.unshift({ error: 'boom' })
  const model = scriptedModel(async () => {
    if (how !== 'waits for the signal') return turns.shift()!
    setImmediate(cancel)
    return { text: 'late', delayMs: 30_000 }
  })
  const work = tool({
    name: 'work',
    description: 'Works.',
    input: { type: 'object' },
    execute: async (_args, { signal, idempotencyKey }) => {
      started.push(idempotencyKey)
      if (does === 'throws') throw new Error('boom')
      if (does === 'waits for the signal') {
        setImmediate(cancel)
        await delay(30_000, undefined, { signal })
      }
      return 'worked'
    },
  })
  const trace = hook(plainTriggers, (ctx) => (fired.push(ctx.trigger), ctx), { name: 'trace', priority: 1000 })
  const agent = (...use: readonly Use[]): Agent => createAgent({ model, use: [work, trace, ...use] })
  return { agent, cancel, fired, started, model, signal: controller.signal }
}

function endingOf(run: Run): string {
  return run.status === 'suspended' ? 'suspended' : `${run.status} ${run.final.reason} ${run.final.by}`
}

function callsOf({ state }: Run): string {
  const executions = [...(state.execution?.steps ?? [])].flatMap((step) => step.toolExecutions)
  return executions.map(({ status, withheld }) => (withheld === true ? `${status}(withheld)` : status)).join(' ')
}

function cancelAt(trigger: PlainTrigger, says: string, row: Partial<Case> & Pick<Case, 'fired'>): Case {
  return {
    title: `${trigger}, cancel: ${says}`,
    use: ({ cancel }) => [hook(trigger, (ctx) => (cancel(), ctx), { name: 'cancelling' })],
    ending: cancelled,
    ...row,
  }
}

const cancelled = 'cancelled userRequested signal'
const aborted: readonly HookTrigger[] = [...begin, ...unanswered, 'afterStep', ...end]
const cutOff: readonly HookTrigger[] = [...begin, ...ask, ...call, 'afterToolUse', 'afterStep', ...end]

const cancels: readonly Case[] = [
  cancelAt('onUserInput', 'cancelled', { fired: ['onUserInput'], calls: '', requests: 0 }),
  cancelAt('beforeExecution', 'to onStop', { fired: [...begin, ...end], calls: '', requests: 0 }),
  cancelAt('beforeStep', 'to onStop', { fired: [...begin, 'beforeStep', ...end], calls: '', requests: 0 }),
  cancelAt('beforeInference', 'to afterStep', { fired: aborted, calls: '', requests: 0 }),
  {
    title: 'aroundInference, cancel: aborted',
    use: ({ cancel }) => [hook('aroundInference', (_ctx, next) => (cancel(), next()))],
    ending: cancelled,
    fired: aborted,
    calls: '',
    requests: 1,
  },
  {
    title: 'the model, cancel: aborted',
    use: () => [],
    model: 'waits for the signal',
    ending: cancelled,
    fired: aborted,
    calls: '',
    requests: 1,
  },
  cancelAt('afterInference', 'calls blocked', {
    fired: [...begin, ...ask, 'afterToolUse', 'afterToolUse', 'afterStep', ...end],
    calls: 'blocked blocked',
    requests: 1,
  }),
  cancelAt('beforeToolUse', 'unstarted calls blocked', { fired: cutOff, calls: 'blocked blocked', requests: 1 }),
  {
    title: 'aroundToolUse, cancel: aborted, outcomeUnknown',
    use: () => [hook('aroundToolUse', (_ctx, next) => next())],
    tool: 'waits for the signal',
    ending: cancelled,
    fired: cutOff,
    calls: 'outcomeUnknown blocked',
    requests: 1,
  },
  {
    title: 'the tool, cancel: aborted, outcomeUnknown',
    use: () => [],
    tool: 'waits for the signal',
    ending: cancelled,
    fired: cutOff,
    calls: 'outcomeUnknown blocked',
    requests: 1,
  },
  cancelAt('afterToolUse', 'still fires', { fired: cutOff, calls: 'ok blocked', requests: 1 }),
  cancelAt('afterStep', 'still fires', {
    fired: [...begin, ...ask, ...call, ...call, 'afterStep', ...end],
    requests: 1,
  }),
  {
    title: 'onStop, cancel: fires, cannot continue',
    use: ({ cancel }) => [hook('onStop', (ctx) => (cancel(), ctx.requestContinuation('go on')))],
    ending: cancelled,
    fired: natural,
  },
  {
    title: 'onStop after a cancel: fires, cannot continue',
    use: ({ cancel }) => [
      hook('beforeStep', (ctx) => (cancel(), ctx)),
      hook('onStop', (ctx) => ctx.requestContinuation('go on')),
    ],
    ending: cancelled,
    fired: [...begin, 'beforeStep', ...end],
    calls: '',
    requests: 0,
  },
  cancelAt('afterExecution', 'status stands', { ending: completed, fired: natural }),
]

suite('failures at each trigger', { concurrency: true }, () => {
  for (const row of [...cases, ...cancels]) {
    test(row.title, async () => {
      const { agent, cancel, fired, started, model, signal } = stage(row)
      const { run, types } = await recordEvents(agent(...row.use({ cancel })).stream('go', { signal }))
      assert.deepEqual(
        { ending: endingOf(run), fired, calls: callsOf(run), requests: model.requests.length },
        { ending: row.ending, fired: row.fired, calls: row.calls ?? 'ok ok', requests: row.requests ?? 2 },
      )
      assert.equal(types.indexOf('finished'), types.length - 1, 'one final record, and nothing after it')
      assert.equal(started.length, new Set(started).size, 'no call is run twice')
    })
  }

  for (const around of ['aroundInference', 'aroundToolUse'] as const) {
    test(`${around}, cancel: aborted, also when the hook ignores its signal`, async () => {
      const { agent, cancel, signal } = stage()
      const deaf = (): Promise<never> => (setImmediate(cancel), new Promise<never>(() => undefined))
      const wrap = around === 'aroundInference' ? hook('aroundInference', deaf) : hook('aroundToolUse', deaf)
      const run = await Promise.race([agent(wrap).run('go', { signal }), delay(30_000, undefined, { ref: false })])
      assert.equal(run && endingOf(run), cancelled)
    })
  }
})

test('onUserInput throws or blocks: the input is dropped and the state is unchanged', async () => {
  const refusals: readonly Hook[] = [failing('onUserInput'), guard('onUserInput', (ctx) => ctx.block('no'))]
  const runs = await Promise.all(refusals.map((refusal) => stage().agent(refusal).run('go')))
  assert.deepEqual(
    runs.map(({ state }) => [state.messages.length, state.execution, state.executionCount]),
    [
      [0, undefined, 0],
      [0, undefined, 0],
    ],
  )
})

test('onUserInput, a guard whose record cannot be written: failed, no execution', async () => {
  const { agent, model } = stage()
  const recorded = guard('onUserInput', (ctx) => ctx, { name: 'recorded', effect: true })
  const run = await runIn(fullStore(), agent(recorded), 'go')
  assert.match(endingOf(run), /^failed persistenceFailed /)
  assert.deepEqual([model.requests.length, run.state.execution], [0, undefined])
})

test('onError throws: the first error is reported, and both are in the ledger', async () => {
  const broken = hook('onError', () => Promise.reject(new Error('second')), { name: 'policy' })
  const run = await stage().agent(failing('beforeStep'), broken).run('go')
  assert.ok(run.status === 'failed')
  assert.match(run.error.message, /"failing" failed at beforeStep: boom/)
  assert.ok(run.ledger.some((entry) => entry.trigger === 'onError' && entry.error?.includes('second')))
})

test('afterExecution throws: the error is in the ledger', async () => {
  const run = await stage().agent(failing('afterExecution')).run('go')
  const [noted] = run.ledger.filter((entry) => entry.hook === 'failing')
  assert.deepEqual([noted?.trigger, noted?.error], ['afterExecution', 'boom'])
})

for (const [how, break_] of [
  [
    'throw',
    () => {
      throw new Error('boom')
    },
  ],
  ['reject', () => Promise.reject(new Error('boom'))],
] as const) {
  test(`observers that ${how}: ledger only, at every trigger`, async () => {
    const { agent, fired } = stage()
    const run = await agent(observe('*', break_, { name: 'broken' })).run('go')
    const noted = run.ledger.filter((entry) => entry.hook === 'broken' && entry.error === 'boom')
    assert.deepEqual([endingOf(run), fired, callsOf(run)], [completed, natural, 'ok ok'])
    assert.deepEqual(new Set(noted.map((entry) => entry.trigger)), new Set(natural))
  })
}

test('observers run in the background, and the run settles after them', async () => {
  const seen: string[] = []
  const stopped = Promise.withResolvers<void>()
  const slow = observe('beforeExecution', async () => (await stopped.promise, await delay(30), seen.push('observed')))
  const run = await stage()
    .agent(
      slow,
      hook('onStop', (ctx) => (seen.push('stopped'), stopped.resolve(), ctx)),
    )
    .run('go')
  assert.deepEqual([endingOf(run), seen], [completed, ['stopped', 'observed']])
})

// ── the column "ask", and what a suspended run does

const asking = guard('beforeToolUse', (ctx) => (ctx.toolCall.id === 'call-1-1' ? ctx.ask('sure?') : ctx), {
  name: 'asking',
})
const paused: readonly HookTrigger[] = [...begin, ...ask, 'beforeToolUse', ...call, 'onPause']
/** What fires again in the open step when nothing new may begin: the call that waits is blocked at once. */
const closing: readonly HookTrigger[] = [...begin, ...ask, 'afterToolUse', ...call, 'afterStep', ...end]

function answers(run: Run): { readonly [id: string]: 'allow' } {
  assert.ok(run.status === 'suspended')
  return Object.fromEntries(run.pending.map(({ id }) => [id, 'allow']))
}

test('beforeToolUse, ask: suspended after the other calls have ended, and all hooks of the step run again afterwards', async () => {
  const { agent, fired, started } = stage()
  const asked = agent(asking, approval('suspend'))
  const { run, types } = await recordEvents(asked.stream('go'))
  assert.deepEqual([endingOf(run), fired, started.length], ['suspended', paused, 1])
  assert.deepEqual([types.at(-1), types.includes('finished')], ['suspended', false])
  const resumed = await asked.resume(run, { answers: answers(run) })
  assert.deepEqual([endingOf(resumed), callsOf(resumed), started.length], [completed, 'ok ok', 2])
  const judged: readonly HookTrigger[] = ['beforeToolUse', 'beforeToolUse', 'afterToolUse', 'afterToolUse']
  const again: readonly HookTrigger[] = [...begin, ...ask, ...judged, 'afterStep', ...ask, 'afterStep', ...end]
  assert.deepEqual(fired.slice(paused.length), ['onResume', ...again])
})

for (const policy of Object.keys(policies) as (keyof typeof policies)[]) {
  test(`onPause throws: onError (${policy}); stays suspended, and can be resumed`, async () => {
    const { agent, fired } = stage()
    const asked = agent(asking, approval('suspend'), failing('onPause'), ...policies[policy])
    const run = await asked.run('go')
    assert.deepEqual([run.status, fired.includes('onError'), fired.includes('onStop')], ['suspended', true, false])
    assert.equal(endingOf(await asked.resume(run, { answers: answers(run) })), completed)
  })

  test(`onResume throws: onError (${policy}); stays suspended unless onError recovers, and no answer is lost`, async () => {
    const { agent, fired, started } = stage()
    const asked = agent(asking, approval('suspend'), failing('onResume'), ...policies[policy])
    const run = await asked.run('go')
    const again = await asked.resume(run, { answers: answers(run) })
    const recovered = policy === 'retry' || policy === 'ignore'
    assert.deepEqual([endingOf(again), started.length], recovered ? [completed, 2] : ['suspended', 1])
    assert.ok(fired.includes('onError'))
    if (!recovered) assert.equal(endingOf(await asked.resume(again, { answers: answers(again) })), completed)
  })
}

test('onPause, cancel: cancelled, and pending calls are blocked', async () => {
  const { agent, cancel, fired, signal } = stage()
  const cancelling = hook('onPause', (ctx) => (cancel(), ctx))
  const run = await agent(asking, approval('suspend'), cancelling).run('go', { signal })
  assert.deepEqual([endingOf(run), callsOf(run)], [cancelled, 'blocked ok'])
  assert.deepEqual(fired, [...paused, ...closing])
})

test('onResume, cancel: cancelled, and pending calls are blocked', async () => {
  const { agent, cancel, fired, signal } = stage()
  const asked = agent(
    asking,
    approval('suspend'),
    hook('onResume', (ctx) => (cancel(), ctx)),
  )
  const run = await asked.run('go')
  const resumed = await asked.resume(run, { answers: answers(run), signal })
  assert.deepEqual([endingOf(resumed), callsOf(resumed)], [cancelled, 'blocked ok'])
  assert.deepEqual(fired, [...paused, 'onResume', ...closing])
})

// ── a consumer that stops reading

test('a consumer that stops iterating: suspended, paused between steps, and resumable', async () => {
  const { agent, fired, started } = stage()
  const live = agent().iterate('go')
  for await (const state of live) if (state.stepCount === 1) break
  const run = await live.run
  assert.deepEqual([run.status, run.status === 'suspended' && run.pending], ['suspended', []])
  assert.deepEqual(fired, [...begin, ...ask, ...call, ...call, 'afterStep', 'onPause'])
  const resumed = await agent().resume(run)
  assert.deepEqual([endingOf(resumed), started.length], [completed, 2])
})

test('a consumer that stops streaming: the run continues to its end', async () => {
  const { agent, fired } = stage()
  const live = agent().stream('go')
  for await (const event of live) if (event.type === 'stepStarted') break
  assert.deepEqual([endingOf(await live.run), fired], [completed, natural])
})

// ── decisions that a trigger does not have

const noGuard: readonly HookTrigger[] = [
  'aroundInference',
  'aroundToolUse',
  'onPause',
  'onResume',
  'onError',
  'afterExecution',
]

for (const trigger of noGuard) {
  test(`${trigger} takes no guard`, () => {
    assert.throws(
      () => guard(trigger as never, (ctx: never) => ctx),
      (error) => error instanceof AgentError && error.code === 'HOOK_INVALID_OPTION' && error.value === trigger,
    )
  })
}

test('only guards can ask, and only where an approver can decide something', async () => {
  const able: string[] = []
  for (const trigger of plainTriggers) {
    await fire(
      hook(trigger, (ctx) => ('ask' in ctx && able.push(`hook ${trigger}`), ctx)),
      trigger as never,
    )
    if (noGuard.includes(trigger) || trigger.startsWith('onSession')) continue
    await fire(
      guard(trigger as never, (ctx: object) => ('ask' in ctx && able.push(`guard ${trigger}`), ctx) as never),
      trigger as never,
    )
  }
  assert.deepEqual(able, [
    'guard onUserInput',
    'guard beforeStep',
    'guard beforeInference',
    'guard beforeToolUse',
    'guard onStop',
  ])
})

test('a guard at onStop cannot block: it can request a continuation, or mark the run as not completed', async () => {
  const words: string[] = []
  const look = guard('onStop', (ctx) => {
    words.push(...['stop', 'block', 'allow', 'allowStop', 'requestContinuation'].filter((word) => word in ctx))
    return ctx
  })
  await stage().agent(look).run('go')
  assert.deepEqual(words, ['stop', 'requestContinuation'])
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import type { RunOptions } from '../../core/agent/run-options.ts'
import type { Use } from '../../core/agent/capability.ts'
import type { Run } from '../../core/agent/run.ts'
import { approval } from '../../capabilities/approval.ts'
import { errorPolicy } from '../../capabilities/error-policy.ts'
import { guards } from '../../capabilities/guards.ts'
import { liveEffects } from '../../core/effects/effects.ts'
import { createAgent, type AgentOptions } from '../../create-agent.ts'
import type { ModelRequest } from '../../core/state/inference.ts'
import { guard, hook } from '../../core/hooks/hook.ts'
import type { ScriptedTurn } from '../../models/scripted.ts'
import { fakeClock } from '../../testing/fake-clock.ts'
import { RecordedSession } from './recorded-session.fixture.ts'
import { replay } from './replay.ts'
import { alive, deadWorld, type World } from './two-worlds.fixture.ts'

type Make = (world: World) => AgentOptions

/** Replays the last run of a session, and shows that it was the same run without doing anything. */
async function assertReplays(make: Make, live: Run, session: RecordedSession): Promise<void> {
  const world = deadWorld()
  const {
    run: replayed,
    record,
    differences,
    unjudged,
  } = await replay(await session.lines(), { agent: createAgent(make(world)) })
  assert.deepEqual(world.calls, [])
  assert.deepEqual([record, differences, unjudged], [{ status: 'complete' }, [], []])
  assert.equal(JSON.stringify(replayed.state), JSON.stringify(live.state))
  assert.equal(replayed.status, live.status)
  assert.deepEqual(untimed(replayed), untimed(live))
}

async function recordAndReplay(make: Make, options: RunOptions = {}): Promise<Run> {
  const session = new RecordedSession(createAgent(make(alive)))
  const live = await session.run('go', options)
  await assertReplays(make, live, session)
  return live
}

function untimed(run: Run): unknown {
  return run.ledger.map(({ durationMs: _ms, ...entry }) => entry)
}

function effect(name: string): { name: string; effect: true } {
  return { name, effect: true }
}

function calls(name: string, ...numbers: readonly number[]): ScriptedTurn {
  return { toolCalls: numbers.map((n) => ({ name, args: { n } })) }
}

const inTurn =
  (...turns: readonly ScriptedTurn[]) =>
  ({ messages }: ModelRequest): ScriptedTurn =>
    turns[messages.filter((message) => message.role === 'assistant').length] ?? 'done'

const retryOnce = hook('aroundInference', async (_ctx, next) => {
  try {
    return await next()
  } catch {
    return next()
  }
})

const noteTime = hook('afterToolUse', (ctx) => ctx.withState((state) => state.withMetadata(ctx.toolCall.id, ctx.now)))

test('a run of several steps replays to a byte-equal state, with no model and no tool', async () => {
  const run = await recordAndReplay((world) => ({
    model: world.model(inTurn(calls('work', 1), calls('work', 2, 0), calls('missing', 1), 'done')),
    instructions: 'Work.',
    use: [
      world.tool('work', {}, (n) =>
        n === 0 ? Promise.reject(new Error('nothing to do')) : delay(n, [n, new Date(0)]),
      ),
      noteTime,
    ],
  }))
  assert.deepEqual([run.status, run.state.stepCount], ['completed', 4])
})

test('a run that had no process for longer than its time limit replays', async () => {
  const clock = fakeClock()
  const make: Make = (world) => ({
    model: world.model(inTurn(calls('work', 1), calls('work', 2), 'done')),
    use: [world.tool('work', {}, (n) => n), guards({ maxTimeMs: 1_000 })],
  })
  const session = new RecordedSession(createAgent(make(alive)))
  await session.run('go', { effects: liveEffects({ clock }), drain: AbortSignal.abort() })
  await clock.advance(5_000)
  const run = await session.resume({}, { effects: liveEffects({ clock }) })
  assert.deepEqual([run.status, run.state.stepCount], ['completed', 3])
  await assertReplays(make, run, session)
})

test('tools that ran together, in whatever order they ended, replay to the same state', async () => {
  await recordAndReplay((world) => ({
    model: world.model(inTurn(calls('look', 12, 8, 4, 0))),
    maxConcurrentTools: 3,
    use: [world.tool('look', { concurrent: true }, (n) => delay(n, `looked ${n}`)), noteTime],
  }))
})

test('tools that ran together with hooks around them leave the same ledger in a replay', async () => {
  const run = await recordAndReplay((world) => ({
    model: world.model(inTurn(calls('look', 15, 8, 0))),
    use: [
      world.tool('look', { concurrent: true }, (n) => delay(n, `looked ${n}`)),
      hook('aroundToolUse', async (_ctx, next) => (await next(), next()), { name: 'wrapper' }),
    ],
  }))
  const order = run.ledger.filter((entry) => entry.hook === 'wrapper').map((entry) => entry.call)
  assert.deepEqual(order, ['call-1-1', 'call-1-2', 'call-1-3'])
})

test('answers to questions that are asked together are recorded in the order of the calls', async () => {
  const make =
    (question: string): Make =>
    (world) => ({
      model: world.model(inTurn({ toolCalls: ['send', 'look'].map((name) => ({ name, args: { n: 0 } })) })),
      use: [
        world.tool('send', {}, (n) => n),
        world.tool('look', {}, (n) => n),
        guard('beforeToolUse', (ctx) => ctx.ask(ctx.toolCall.name === 'send' ? question : 'Look?')),
        approval(() => world.really('allow' as const)),
      ],
    })
  const first = new RecordedSession(createAgent(make('Send?')(alive)))
  await first.run('go')
  const lines = await first.lines()
  const died = lines.findIndex((line) => line.includes('"kind":"tool"'))
  const session = new RecordedSession(createAgent(make('Send to all?')(alive)))
  const writer = await session.store.open('s', { create: true })
  await writer.append(lines.slice(0, died))
  await writer.release()
  const run = await session.resume() // the first question has changed and is asked again; the answer to the second is known
  const approved = run.ledger.filter(({ decision }) => decision === 'approved').map(({ call }) => call)
  assert.deepEqual(approved, ['call-1-1', 'call-1-2'])
  await assertReplays(make('Send to all?'), run, session)
})

test('hooks that retry around the model and around a tool replay, attempts and all', async () => {
  let [modelTries, toolTries] = [0, 0]
  const run = await recordAndReplay((world) => ({
    model: world.model((request) => (modelTries++ === 0 ? { error: 'busy' } : inTurn(calls('flaky', 1))(request))),
    use: [
      world.tool('flaky', {}, () => {
        if (toolTries++ < 2) throw new Error('again')
        return 'worked'
      }),
      retryOnce,
      hook('aroundToolUse', async (_ctx, next) => {
        let result = await next()
        while (result.status === 'failed') result = await next()
        return result
      }),
    ],
  }))
  assert.deepEqual([run.status, toolTries], ['completed', 3])
})

test('a call that was raced against a second attempt replays, although the loser ended later', async () => {
  await recordAndReplay((world) => ({
    model: world.model(async (_request, asked) => {
      if (asked === 1) await delay(40)
      return 'done'
    }),
    use: [
      hook('aroundInference', async (_ctx, next) => {
        const first = next()
        await delay(5)
        return Promise.race([first, next()])
      }),
      hook('aroundInference', (_ctx, next) => next()),
      hook('afterInference', async (ctx) => {
        await delay(60) // long enough for the loser to end
        return ctx.withState((state) => state.withMetadata('at', ctx.now))
      }),
    ],
  }))
})

test('hooks that perform effects replay from what they did, and are not run again', async () => {
  const run = await recordAndReplay((world) => ({
    model: world.model(inTurn(calls('work', 1, 2))),
    use: [
      world.tool('work', {}, (n) => n),
      hook('onUserInput', (ctx) => ctx.withInput(world.really('asked elsewhere')), effect('input')),
      hook(
        'beforeStep',
        (ctx) => ctx.withState((state) => state.withMetadata('dice', world.really(Math.random()))),
        effect('dice'),
      ),
      hook('beforeInference', (ctx) => ctx.withRequest({ system: world.really(`${Math.random()}`) }), effect('prompt')),
      hook('beforeToolUse', (ctx) => ctx.withArgs({ n: world.really(Math.random()) }), effect('args')),
      guard(
        'beforeToolUse',
        async (ctx) => (world.really(ctx.toolCall.id).endsWith('2') ? ctx.block('odd') : ctx),
        effect('judge'),
      ),
      hook(
        'afterToolUse',
        (ctx) => (ctx.toolExecution.status === 'ok' ? ctx.withOutput(world.really(Math.random())) : ctx),
        effect('output'),
      ),
      hook(
        'onStop',
        (ctx) => (world.really(ctx.continuations) === 0 ? ctx.requestContinuation('Once more.') : ctx),
        effect('critic'),
      ),
    ],
  }))
  const ended = run.state.execution?.steps.at(0)?.toolExecutions.map((each) => each.status)
  assert.deepEqual([run.status, ended], ['completed', ['ok', 'blocked']])
})

test('an effect of a hook that failed fails the same way in a replay', async () => {
  const run = await recordAndReplay((world) => ({
    model: world.model(inTurn()),
    use: [guard('beforeStep', () => Promise.reject(new Error(world.really('no line'))), effect('caller'))],
  }))
  assert.equal(run.state.execution?.final?.by, 'caller')
})

test('the answers of an approver replay: yes, no, and yes with other arguments', async () => {
  const answers = ['allow', { block: 'not today' }, { allow: { n: 7 } }] as const
  const run = await recordAndReplay((world) => {
    let asked = 0
    return {
      model: world.model(inTurn(calls('send', 1, 2, 3))),
      use: [
        world.tool('send', { ask: true }, (n) => `sent ${n}`),
        approval(async () => (await delay(1), world.really(answers[asked++]!))),
      ],
    }
  })
  assert.deepEqual(
    run.state.execution?.steps.at(0)?.toolExecutions.map((each) => each.output),
    ['sent 1', 'not today', 'sent 7'],
  )
})

test('an approval with arguments that are not JSON blocks, live and replayed', async () => {
  const run = await recordAndReplay((world) => ({
    model: world.model(inTurn(calls('send', 1))),
    use: [
      world.tool('send', { ask: true }, () => 'sent'),
      approval(() => ({ allow: { n: 1, when: new Date(0) } as never })),
    ],
  }))
  assert.equal(run.state.execution?.steps.at(0)?.toolExecutions[0]?.status, 'blocked')
})

test('a model error that a policy retried with growing pauses replays without waiting', async () => {
  const run = await recordAndReplay((world) => ({
    model: world.model((_request, asked) => (asked < 3 ? { error: `busy ${asked}` } : 'done')),
    use: [errorPolicy({ backoffMs: 5 })],
  }))
  assert.equal(run.status, 'completed')
})

test('a guard that timed out times out in the replay as well', async () => {
  const run = await recordAndReplay((world) => ({
    model: world.model(inTurn(calls('work', 1))),
    use: [
      world.tool('work', {}, (n) => n),
      guard('beforeToolUse', () => new Promise(() => undefined), { name: 'stuck', timeoutMs: 10 }),
    ],
  }))
  assert.equal(run.state.execution?.steps.at(0)?.toolExecutions[0]?.by, 'stuck')
})

test('an effect that outlives the time of its guard is the same no at the same time in a replay', async () => {
  await recordAndReplay((world) => ({
    model: world.model(inTurn(calls('work', 1))),
    use: [
      world.tool('work', {}, (n) => n),
      guard('beforeToolUse', async (ctx) => (await delay(40), world.really(ctx)), { ...effect('slow'), timeoutMs: 10 }),
      hook('onStop', async (ctx) => {
        const at = ctx.now
        await delay(60) // long enough for the effect to end
        return ctx.withState((state) => state.withMetadata('at', at))
      }),
    ],
  }))
})

for (const during of ['model call', 'tool call', 'backoff', 'step'] as const) {
  test(`a run that was cancelled during a ${during} replays to the same end`, async () => {
    const controller = new AbortController()
    const { signal } = controller
    const cancelIn = async (ms: number, place: string): Promise<void> => {
      if (place !== during) return
      setTimeout(() => controller.abort(), ms)
      await delay(ms * 100, undefined, { signal }).catch(() => undefined)
    }
    const run = await recordAndReplay(
      (world) => ({
        model: world.model(async (request, asked) => {
          if (asked === 1 && during === 'backoff') return (setTimeout(() => controller.abort(), 5), { error: 'busy' })
          if (asked === 2) await cancelIn(5, 'model call')
          return inTurn(calls('work', 1), calls('work', 2, 3), calls('work', 4))(request)
        }),
        use: [
          errorPolicy({ backoffMs: 1000 }),
          world.tool('work', {}, async (n) => (n === 2 ? cancelIn(5, 'tool call') : n)),
          hook('afterStep', async (ctx) =>
            ctx.step.index === 1 ? (void cancelIn(0, 'step'), await delay(1), ctx) : ctx,
          ),
        ],
      }),
      { signal },
    )
    assert.equal(run.status, 'cancelled')
  })
}

test('a run that was stopped before its first effect replays too', async () => {
  const run = await recordAndReplay((world) => ({ model: world.model(inTurn()), use: [guards({ maxSteps: 0 })] }))
  assert.equal(run.status, 'stopped')
})

test('a continued conversation and a resumed run are replayed from the same saved state', async () => {
  const make: Make = (world) => ({
    model: world.model(inTurn('hello', calls('send', 1, 2))),
    use: [world.tool('send', { ask: true }, (n) => `sent ${n}`), approval('suspend')],
  })
  const session = new RecordedSession(createAgent(make(alive)))
  await assertReplays(make, await session.run('go'), session)
  const second = await session.run('go on')
  await assertReplays(make, second, session)
  const [yes, no] = second.status === 'suspended' ? second.pending.map((each) => each.id) : []
  await delay(3)
  const third = await session.resume({ [yes!]: 'allow' as const, [no!]: { block: 'no' } })
  assert.equal(third.status, 'completed')
  await assertReplays(make, third, session)
})

test('whatever a run does, it replays to a byte-equal state and an equal ledger', async () => {
  const call = fc.record({
    name: fc.constantFrom('look', 'work', 'send', 'missing'),
    args: fc.record({ n: fc.integer({ min: -1, max: 3 }) }),
  })
  const turn: fc.Arbitrary<ScriptedTurn> = fc.oneof(
    { weight: 4, arbitrary: fc.record({ toolCalls: fc.array(call, { minLength: 1, maxLength: 4 }) }) },
    { weight: 1, arbitrary: fc.record({ error: fc.string() }) },
    { weight: 1, arbitrary: fc.record({ text: fc.string(), finishReason: fc.constantFrom('length', 'stop') }) },
  )
  const shape = fc.record({
    turns: fc.array(turn, { maxLength: 5 }),
    input: fc.boolean(),
    aroundModel: fc.boolean(),
    performs: fc.boolean(),
    answer: fc.constantFrom('allow', 'suspend', 'block'),
  })
  const act = async (n: number): Promise<unknown> => {
    await delay(Math.max(0, n))
    if (n < 0) throw new Error('cannot')
    return { n, random: Math.random() }
  }
  await fc.assert(
    fc.asyncProperty(shape, async ({ turns, input, aroundModel, performs, answer }) => {
      await recordAndReplay((world) => {
        const uses: (Use | false)[] = [
          world.tool('look', { concurrent: true }, act),
          world.tool('work', {}, act),
          world.tool('send', { ask: true }, act),
          errorPolicy({ backoffMs: 1, maxRetries: 2 }),
          guards({ maxSteps: 6 }),
          answer === 'allow' ? approval(() => world.really('allow' as const)) : approval(answer),
          input && hook('onUserInput', (ctx) => ctx.withInput(`${JSON.stringify(ctx.input)}!`)),
          aroundModel && retryOnce,
          performs &&
            hook(
              'beforeStep',
              (ctx) => ctx.withState((state) => state.withMetadata('r', world.really(Math.random()))),
              effect('r'),
            ),
          guard('beforeToolUse', async (ctx) => (ctx.toolCall.args['n'] === 2 ? ctx.block('two') : ctx)),
          noteTime,
        ]
        return {
          model: world.model((_request, asked) => turns[asked - 1] ?? 'done'),
          use: uses.filter((each) => each !== false),
        }
      })
    }),
    { numRuns: 40 },
  )
})

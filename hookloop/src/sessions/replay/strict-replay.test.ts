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

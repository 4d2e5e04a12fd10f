import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Agent } from '../../core/agent/agent.ts'
import type { RunOptions } from '../../core/agent/run-options.ts'
import type { Run } from '../../core/agent/run.ts'
import { tool, type Tool } from '../../core/agent/tool.ts'
import { errorPolicy } from '../../capabilities/error-policy.ts'
import { createAgent } from '../../create-agent.ts'
import { liveEffects } from '../../core/effects/effects.ts'
import type { Clock } from '../../core/effects/run-time.ts'
import { guard, hook, type Hook } from '../../core/hooks/hook.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import { toResponse, type InferenceResponse } from '../../core/state/inference.ts'
import { fakeClock } from '../../testing/fake-clock.ts'
import { RecordedSession } from './recorded-session.fixture.ts'
import { replay } from './replay.ts'

type Make = Partial<Parameters<typeof tool>[0]>
type Kind = 'hook' | 'guard'

const declare = (kind: Kind): typeof hook => (kind === 'hook' ? hook : (guard as unknown as typeof hook))
const make = (how: Make = {}): Tool =>
  tool({ name: 'work', description: 'Works.', input: { type: 'object' }, execute: () => 'worked', ...how })
const work: ScriptedTurn = { toolCalls: [{ name: 'work' }] }
const saying = (text: string): InferenceResponse =>
  toResponse({ content: [{ type: 'text', text }], finishReason: 'stop' })
const never = new Promise<never>(() => undefined)
/** A clock on which time limits are not real either. */
function inNoTime(): Clock {
  const clock = fakeClock({ auto: true })
  return { now: () => clock.now(), sleep: (...args) => clock.sleep(...args) }
}

const twice = hook('aroundInference', async (_ctx, next) => {
  try {
    return await next()
  } catch {
    return next()
  }
})

/** A hook or guard that rejects with the reason of its signal. */
function heedful(kind: Kind, trigger: 'beforeStep', cancel: () => void): Hook {
  return declare(kind)(trigger, async (ctx) => {
    setImmediate(cancel)
    await delay(60_000, undefined, { signal: ctx.signal, ref: false })
    return ctx
  })
}

/** A run and its replay must be equal in their states, and in their ledgers except for durations. */
async function assertReplays(build: () => Agent, how: RunOptions = {}): Promise<Run> {
  const session = new RecordedSession(build())
  const live = await session.run('hi', how)
  const { run, record } = await replay(await session.lines(), { agent: build() })
  assert.deepEqual(record, { status: 'complete' })
  assert.deepEqual(toldBy(run), toldBy(live))
  return live
}

function toldBy(run: Run): unknown {
  const told = JSON.parse(JSON.stringify(run)) as { ledger: { durationMs?: number }[] }
  for (const entry of told.ledger) delete entry.durationMs
  return told
}

for (const kind of ['hook', 'guard'] as const) {
  for (const trigger of ['beforeStep', 'beforeToolUse', 'afterToolUse', 'afterStep'] as const) {
    test(`a ${kind} at ${trigger} that was aborted by a cancel is aborted in the replay as well`, async () => {
      const controller = new AbortController()
      const stuck = declare(kind)(trigger, () => (controller.abort(), never), { name: 'stuck' })
      const build = (): Agent => createAgent({ model: scriptedModel([work, 'ok']), use: [make(), stuck] })
      const run = await assertReplays(build, { signal: controller.signal, effects: liveEffects({ clock: inNoTime() }) })
      assert.equal(run.status, 'cancelled')
    })
  }
}

test('a hook that ends because it was cancelled ends in the replay as well', async () => {
  const controller = new AbortController()
  const build = (): Agent =>
    createAgent({ model: scriptedModel(['ok']), use: [heedful('hook', 'beforeStep', () => controller.abort())] })
  const replayed = assertReplays(build, { signal: controller.signal })
  const run = await Promise.race([replayed, delay(30_000, undefined, { ref: false })])
  assert.equal(run?.status, 'cancelled')
})

/** A model that fails twice, in a call that is made twice, with an error policy that retries. */
function tryingAgain(...judges: (() => Hook)[]): () => Agent {
  return () =>
    createAgent({
      model: scriptedModel([{ error: 'lost' }, { error: 'lost' }, 'ok']),
      use: [errorPolicy({ onError: 'retry', backoffMs: 0 }), twice, ...judges.map((judge) => judge())],
    })
}

test('guards with effects that judge again inside aroundInference replay', async () => {
  const paid = (): Hook => {
    let asked = 0
    return guard('beforeInference', (ctx) => (++asked === 3 ? ctx.stop('enough') : ctx), { name: 'paid', effect: true })
  }
  const run = await assertReplays(tryingAgain(paid))
  assert.equal(run.status === 'stopped' && run.by, 'paid')
})

test('a guard that times out only at the second attempt replays', async () => {
  const slow = (): Hook => {
    let asked = 0
    return guard('beforeInference', async (ctx) => (++asked === 3 ? never : ctx), { name: 'slow', timeoutMs: 20 })
  }
  const run = await assertReplays(tryingAgain(slow))
  assert.equal(run.status === 'stopped' && run.by, 'slow')
})

test('hooks whose names look like a numbered repetition replay', async () => {
  const named = (name: string) => (): Hook => guard('beforeInference', (ctx) => ctx, { name, effect: true })
  const run = await assertReplays(tryingAgain(named('x'), named('x~2'), named('x~~2')))
  assert.equal(run.text, 'ok')
})

test('the timeout of an abandoned inner around hook does not move the clock', async () => {
  const build = (): Agent => {
    const begun = Promise.withResolvers<void>()
    const outer = hook(
      'aroundInference',
      (_ctx, next) => Promise.race([next(), begun.promise.then(() => saying('cached'))]),
      {
        name: 'outer',
        priority: 9,
      },
    )
    const inner = hook('aroundInference', () => (begun.resolve(), never), { name: 'inner', timeoutMs: 20 })
    const late = hook('afterStep', async (ctx) => {
      const { now } = ctx
      await delay(40)
      return ctx.withState((state) => state.withMetadata('moved', ctx.now - now))
    })
    return createAgent({ model: scriptedModel(['ok']), use: [outer, inner, late] })
  }
  const run = await assertReplays(build)
  assert.equal(run.state.metadata['moved'], 0)
})

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { approval } from '../../capabilities/approval.ts'
import { errorPolicy } from '../../capabilities/error-policy.ts'
import { createAgent } from '../../create-agent.ts'
import { toResponse, type InferenceResponse } from '../../state/inference.ts'
import { liveEffects, type EffectsFactory } from '../../effects/effects.ts'
import { guard, hook, type Hook } from '../../hooks/hook.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import { recordEffects } from '../../effects/record-effects.ts'
import { fileRecording, memoryRecording, type RecordEntry, type Recording } from '../../effects/recording.ts'
import { replayEffects } from '../../effects/replay-effects.ts'
import { fakeClock } from '../../testing/fake-clock.ts'
import type { Agent } from '../agent.ts'
import type { Run } from '../run.ts'
import { tool, type Tool } from '../tool.ts'

type Make = Partial<Parameters<typeof tool>[0]>
type Kind = 'hook' | 'guard'

const declare = (kind: Kind): typeof hook => (kind === 'hook' ? hook : (guard as unknown as typeof hook))
const make = (how: Make = {}): Tool =>
  tool({ name: 'work', description: 'Works.', input: { type: 'object' }, execute: () => 'worked', ...how })
const work: ScriptedTurn = { toolCalls: [{ name: 'work' }] }
const saying = (text: string): InferenceResponse =>
  toResponse({ content: [{ type: 'text', text }], finishReason: 'stop' })
const never = new Promise<never>(() => undefined)
const inNoTime = (): EffectsFactory => liveEffects({ clock: fakeClock({ auto: true }) })

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

const pendingOf = (run: Run): readonly string[] =>
  run.status === 'suspended' ? run.pending.map(({ id }) => id) : assert.fail(run.status)

/** A run and its replay must be equal in their states, and in their ledgers except for durations. */
async function assertReplays(build: () => Agent, run: { signal?: AbortSignal; effects?: EffectsFactory } = {}) {
  const recording = memoryRecording()
  const live = await build().run('hi', { ...run, effects: recordEffects(recording, run.effects) })
  const again = await build().run('hi', { effects: replayEffects(recording) })
  assert.deepEqual(toldBy(again), toldBy(live))
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
      const run = await assertReplays(build, { signal: controller.signal, effects: inNoTime() })
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

const folder = mkdtempSync(join(tmpdir(), 'hookloop-'))
after(() => rmSync(folder, { recursive: true }))

test('a file recording that was cut in its first line is started again, and replays', async () => {
  const path = join(folder, 'torn.jsonl')
  writeFileSync(path, '{"type":"run","vers')
  const build = (): Agent => createAgent({ model: scriptedModel([work, 'ok']), use: [make()] })
  const live = await build().run('hi', { effects: recordEffects(fileRecording(path)) })
  const again = await build().run('hi', { effects: replayEffects(fileRecording(path)) })
  assert.deepEqual(toldBy(again), toldBy(live))
})

const inMemory = memoryRecording()
const sharings: { readonly [what: string]: () => Recording } = {
  'one recording': () => inMemory,
  'one file that was opened twice': () => fileRecording(join(folder, 'shared.jsonl')),
}
for (const [what, open] of Object.entries(sharings)) {
  test(`two runs cannot write ${what}: the second fails, does nothing and leaves no line in it`, async () => {
    let worked = 0
    const asked = make({ ask: true, execute: () => ++worked })
    const noting = hook('onStop', (ctx) => ctx, { name: 'noting', effect: true })
    const model = scriptedModel(() => (worked > 0 ? 'ok' : work))
    const agent = createAgent({ model, use: [asked, approval('suspend'), noting] })
    const run = await agent.run('hi')
    const answers = { [pendingOf(run)[0]!]: 'allow' as const }
    const resume = (effects: EffectsFactory): Promise<Run> => agent.resume(run, { answers, effects })
    const both = await Promise.all([open(), open()].map((recording) => resume(recordEffects(recording))))
    assert.deepEqual([both.map(({ status }) => status).toSorted(), worked], [['completed', 'failed'], 1])
    const isNote = (entry: RecordEntry): boolean => entry.type === 'begin' && entry.key.includes('noting')
    assert.equal(open().entries().filter(isNote).length, 1)
    assert.equal((await resume(replayEffects(open()))).status, 'completed')
  })
}

test('a recording that fails while it stores a hook at onPause fails the run', async () => {
  const kept = memoryRecording()
  const full: Recording = {
    entries: () => kept.entries(),
    append(entry) {
      if ('key' in entry && entry.key.includes('onPause')) throw new Error('the disk is full')
      kept.append(entry)
    },
  }
  const noting = hook('onPause', (ctx) => ctx, { name: 'noting', effect: true })
  const agent = createAgent({ model: scriptedModel([work]), use: [make({ ask: true }), approval('suspend'), noting] })
  const run = await agent.run('hi', { effects: recordEffects(full) })
  assert.deepEqual([run.status, 'final' in run && run.final.reason], ['failed', 'persistenceFailed'])
})

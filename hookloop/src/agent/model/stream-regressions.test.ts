import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setImmediate as soon, setTimeout as delay } from 'node:timers/promises'
import { approval } from '../../capabilities/approval.ts'
import { errorPolicy } from '../../capabilities/error-policy.ts'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import { toResponse, type InferenceResponse, type LanguageModel } from '../../state/inference.ts'
import type { Schema } from '../../state/schema.ts'
import { liveEffects, type EffectsFactory } from '../../effects/effects.ts'
import { guard, hook, type Hook } from '../../hooks/hook.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import { recordEffects } from '../../effects/record-effects.ts'
import { fileRecording, memoryRecording, type RecordEntry, type Recording } from '../../effects/recording.ts'
import { replayEffects } from '../../effects/replay-effects.ts'
import { fakeClock } from '../../testing/fake-clock.ts'
import { recordEvents, type EventRecorder } from '../../testing/record-events.ts'
import type { Agent } from '../agent.ts'
import type { Run } from '../run.ts'
import { tool, type Tool } from '../tool.ts'

// Defects that were found by attacks on streams, timeouts, cancels and recordings. Each has a test.

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

// ── streams

/** The text that a reader displays after each event that changes it. */
function screens({ events }: EventRecorder<string>): readonly string[] {
  const seen = ['']
  for (const event of events) {
    if (event.type === 'text') seen.push(seen.at(-1)! + event.delta)
    if (event.type === 'retracted') seen.push('')
  }
  return seen
}

test('a streamed answer that an around hook replaces is retracted, and its replacement is sent', async () => {
  const redact = hook('aroundInference', async (_ctx, next) => (await next(), saying('[redacted]')))
  const agent = createAgent({ model: scriptedModel([{ chunks: ['my secret ', 'is 42'] }]), use: [redact] })
  const seen = screens(await recordEvents(agent.stream('hi')))
  assert.deepEqual(seen, ['', 'my secret ', 'my secret is 42', '', '[redacted]'])
})

test('a partial answer that failed is retracted before its replacement is sent', async () => {
  const cached = hook('aroundInference', (_ctx, next) => next().catch(() => saying('cached')))
  const agent = createAgent({ model: scriptedModel([{ chunks: ['half an '], error: 'lost' }]), use: [cached] })
  assert.deepEqual(screens(await recordEvents(agent.stream('hi'))), ['', 'half an ', '', 'cached'])
})

for (const winner of ['first', 'second']) {
  test(`of two concurrent attempts only one is streamed at a time, and the ${winner} one when it wins`, async () => {
    const paces = winner === 'first' ? [4, 9] : [9, 4]
    const turns = ['a', 'b'].map((text, i) => ({ chunks: [text, text, text], delayMs: paces[i]! }))
    const race = hook('aroundInference', (_ctx, next) => Promise.race([next(), next()]))
    const slow = hook('afterExecution', async (ctx) => (await delay(30), ctx)) // the other attempt keeps streaming meanwhile
    const seen = screens(
      await recordEvents(createAgent({ model: scriptedModel(turns), use: [race, slow] }).stream('hi')),
    )
    assert.ok(
      seen.every((text) => /^(a*|b*)$/.test(text)),
      seen.join(),
    )
    assert.equal(seen.at(-1), winner === 'first' ? 'aaa' : 'bbb')
  })
}

/** A model that keeps streaming after it has replied or failed. */
function chatty(script: readonly ScriptedTurn[]): LanguageModel {
  const model = scriptedModel(script)
  return {
    ...model,
    infer(request, call) {
      if (model.requests.length === 0) setTimeout(() => call.onDelta?.({ type: 'text', delta: 'LATE' }), 10)
      return model.infer(request, call)
    },
  }
}

test('text that a model sends after its reply is ignored', async () => {
  const slow = hook('afterExecution', async (ctx) => (await delay(30), ctx))
  const seen = screens(await recordEvents(createAgent({ model: chatty(['ok']), use: [slow] }).stream('hi')))
  assert.deepEqual(seen, ['', 'ok'])
})

test('text that a failed attempt sends later is not part of the next answer', async () => {
  const script = [{ error: 'lost' }, { chunks: ['all ', 'well'], delayMs: 20 }]
  const wrapped = createAgent({
    model: chatty(script),
    use: [twice],
  })
  const retried = createAgent({ model: chatty(script), use: [errorPolicy({ backoffMs: 0 })] })
  for (const agent of [wrapped, retried]) {
    const recorded = await recordEvents(agent.stream('hi'))
    assert.deepEqual([screens(recorded).at(-1), recorded.run.text], ['all well', 'all well'])
  }
})

test('no event comes after finished, however late a tool reports its progress', async () => {
  const late = make({ execute: (_args, run) => void setTimeout(() => run.progress('late'), 10) })
  const agent = createAgent({ model: scriptedModel([work, 'ok']), use: [late] })
  const types: string[] = []
  for await (const { type } of agent.stream('hi')) {
    types.push(type)
    if (type === 'started') await delay(30)
  }
  assert.deepEqual([types.at(-1), types.includes('toolProgress')], ['finished', false])
})

test('a resumed run streams as well: resumed first, finished last', async () => {
  const agent = createAgent({
    model: scriptedModel([work, 'all done']),
    use: [make({ ask: true }), approval('suspend')],
  })
  const run = await agent.run('hi')
  const answers = { [pendingOf(run)[0]!]: 'allow' as const }
  const recorded = await recordEvents(agent.resumeStream(run, { answers }))
  const { types } = recorded
  assert.deepEqual([types[0], types.at(-1), screens(recorded).at(-1)], ['resumed', 'finished', 'all done'])
})

const pendingOf = (run: Run): readonly string[] =>
  run.status === 'suspended' ? run.pending.map(({ id }) => id) : assert.fail(run.status)

// ── cancels

/** A hook or guard that rejects with the reason of its signal. */
function heedful(kind: Kind, trigger: 'beforeStep', cancel: () => void): Hook {
  return declare(kind)(trigger, async (ctx) => {
    setImmediate(cancel)
    await delay(60_000, undefined, { signal: ctx.signal, ref: false })
    return ctx
  })
}

for (const trigger of ['onUserInput', 'beforeExecution', 'beforeStep', 'beforeInference', 'afterStep'] as const) {
  for (const kind of ['hook', 'guard'] as const) {
    test(`a ${kind} at ${trigger} that rejects because of a cancel leaves the run cancelled`, async () => {
      const controller = new AbortController()
      const use = [heedful(kind, trigger as 'beforeStep', () => controller.abort())]
      const run = await createAgent({ model: scriptedModel(['ok']), use }).run('hi', { signal: controller.signal })
      assert.deepEqual([run.status, 'final' in run && run.final.reason], ['cancelled', 'userRequested'])
    })
  }
}

for (const [when, policy] of [
  ['', []],
  [' and waits to be tried again', [errorPolicy({ onError: 'retry', backoffMs: 10_000 })]],
] as const) {
  test(`a cancel while a hook at onPause fails${when} ends the run as cancelled`, async () => {
    const controller = new AbortController()
    const failing = hook('onPause', async () => {
      if (when === '') controller.abort()
      else setTimeout(() => controller.abort(), 5)
      throw new Error('not now')
    })
    const use = [make({ ask: true }), approval('suspend'), ...policy, failing]
    const run = await createAgent({ model: scriptedModel([work]), use }).run('hi', { signal: controller.signal })
    assert.equal(run.status, 'cancelled')
  })
}

const unsettled: Schema = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: () => never,
    jsonSchema: { input: () => ({ type: 'object' }), output: () => ({ type: 'object' }) },
  },
}

for (const who of ['a tool', 'a tool and a hook that was given the tool itself']) {
  test(
    `an asynchronous schema that never settles does not delay a cancelled run, with ${who}`,
    { timeout: 60_000 },
    async () => {
      const stuck = tool({ name: 'work', description: 'Works.', input: unsettled, execute: () => 'worked' })
      const typed = who === 'a tool' ? [] : [hook('beforeToolUse', (ctx) => ctx, { tool: stuck })]
      const controller = new AbortController()
      const agent = createAgent({ model: scriptedModel([work]), use: [stuck, ...typed] })
      setTimeout(() => controller.abort(), 10)
      const clock = fakeClock()
      const running = agent.run('hi', { signal: controller.signal, effects: liveEffects({ clock }) })
      const pulse = setInterval(() => void clock.advance(1_000), 5)
      const run = await Promise.race([running, delay(30_000, undefined, { ref: false })])
      clearInterval(pulse)
      assert.equal(run?.status, 'cancelled')
    },
  )
}

test('a tool with a timeout leaves no listener on a signal that outlives the run', async () => {
  const { signal } = new AbortController()
  for (let i = 0; i < 50; i++) {
    const use = [make({ timeoutMs: 60_000, execute: async () => (await soon(), 'worked') })]
    const run = await createAgent({ model: scriptedModel([work, 'ok']), use }).run('hi', { signal })
    assert.equal(run.status, 'completed')
  }
  assert.deepEqual([getEventListeners(signal, 'abort').length, dependentsOf(signal)], [0, 0])
})

/** The dependent signals and other internal references of a signal, which are not listeners. */
function dependentsOf(signal: AbortSignal): number {
  const kept = signal as unknown as { readonly [key: symbol]: { readonly size?: number } | undefined }
  return Object.getOwnPropertySymbols(signal).reduce((sum, key) => sum + (kept[key]?.size ?? 0), 0)
}

// ── timeouts

test('maxTimeMs is checked after each batch of concurrent calls', async () => {
  const clock = fakeClock()
  let started = 0
  const read = make({ concurrent: true, execute: () => (started++, clock.advance(20)) })
  const model = scriptedModel([{ toolCalls: Array.from({ length: 20 }, () => ({ name: 'work' })) }, 'ok'])
  const agent = createAgent({ model, maxConcurrentTools: 2, use: [read, guards({ maxTimeMs: 50 })] })
  const run = await agent.run('hi', { effects: liveEffects({ clock }) })
  assert.deepEqual([run.status === 'stopped' && run.reason, started], ['timeLimit', 4])
})

// ── recordings

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
    const outer = hook(
      'aroundInference',
      (_ctx, next) => Promise.race([next(), delay(5).then(() => saying('cached'))]),
      {
        name: 'outer',
        priority: 9,
      },
    )
    const inner = hook('aroundInference', () => never, { name: 'inner', timeoutMs: 20 })
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

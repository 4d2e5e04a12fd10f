import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as soon } from 'node:timers/promises'
import * as z from 'zod'
import { guards } from '../../capabilities/guards.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { liveEffects, type EffectsFactory } from '../../effects/effects.ts'
import { recordEffects } from '../../effects/record-effects.ts'
import { memoryRecording } from '../../effects/recording.ts'
import { replayEffects } from '../../effects/replay-effects.ts'
import { action } from '../../hooks/action.ts'
import { guard, hook } from '../../hooks/hook.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import { replay } from '../../sessions/replay/replay.ts'
import { fakeClock, type FakeClock } from '../../testing/fake-clock.ts'
import type { Agent } from '../agent.ts'
import type { Use } from '../capability.ts'
import type { Run } from '../run.ts'
import { agentTool } from '../subagents/agent-tool.ts'
import { tool, type Tool } from '../tool.ts'

const never = new Promise<never>(() => undefined)
const work: ScriptedTurn = { toolCalls: [{ name: 'work' }] }
const hanging = z.object({}).refine(() => never)

function worker(how: Partial<Parameters<typeof tool>[0]> = {}): Tool {
  return tool({ name: 'work', description: 'Works.', input: { type: 'object' }, execute: () => 'worked', ...how })
}

/** A tool that lets a subagent call the tool "work". */
function delegate(name: string, use: readonly Use[]): Use {
  const to = createAgent({ model: scriptedModel(() => work), use })
  return agentTool({
    name,
    description: 'Delegates.',
    input: { type: 'object' },
    to: () => ({ name, to, input: 'Go.' }),
  })
}

function withoutDurations({ ledger }: Run<unknown>): unknown {
  return ledger.map(({ durationMs: _ms, ...entry }) => entry)
}

/** Runs on a clock that moves on whenever nothing else happens. */
async function runOn(
  clock: FakeClock,
  start: (effects: EffectsFactory) => Promise<Run<unknown>>,
): Promise<Run<unknown>> {
  const ended: Run<unknown>[] = []
  const running = start(liveEffects({ clock, id: 'r' })).then((run) => ended.push(run))
  while (ended.length === 0) {
    for (let turn = 0; turn < 5; turn++) await soon()
    await Promise.race([running, clock.advance(100)])
  }
  return ended[0]!
}

/** What hangs in each case, and what the run says about it. */
const cases: readonly (readonly [string, readonly Use[], RegExp])[] = [
  ['a tool', [worker({ execute: () => never })], /Left behind: tool "work"\./],
  ['a concurrent tool', [worker({ concurrent: true, execute: () => never })], /Left behind: tool "work"/],
  [
    'a hook',
    [worker(), hook('beforeStep', () => never, { name: 'stuck' })],
    /Left behind: transform "stuck" at beforeStep\./,
  ],
  ['a hook at onUserInput', [hook('onUserInput', () => never, { name: 'stuck' })], /transform "stuck" at onUserInput/],
  [
    'a hook at beforeToolUse',
    [worker(), hook('beforeToolUse', () => never, { name: 'stuck' })],
    /"stuck" at beforeToolUse/,
  ],
  [
    'a hook at afterToolUse',
    [worker(), hook('afterToolUse', () => never, { name: 'stuck' })],
    /"stuck" at afterToolUse/,
  ],
  ['a hook at afterStep', [worker(), hook('afterStep', () => never, { name: 'stuck' })], /"stuck" at afterStep/],
  [
    'a guard',
    [worker(), guard('beforeToolUse', () => never, { name: 'stuck' })],
    /Left behind: guard "stuck" at beforeToolUse/,
  ],
  [
    'a hook with an effect',
    [worker(), hook('beforeStep', () => never, { name: 'stuck', effect: true })],
    /"stuck" at beforeStep/,
  ],
  [
    'an action',
    [worker(), guard('beforeStep', action({ kind: 'fake', label: 'fake', perform: () => never }), { name: 'stuck' })],
    /guard "stuck" at beforeStep/,
  ],
  ['a hook around a tool', [worker(), hook('aroundToolUse', () => never)], /Time limit reached/],
  [
    'a tool inside a hook',
    [worker({ execute: () => never }), hook('aroundToolUse', (_ctx, next) => next())],
    /tool "work"/,
  ],
  ['a hook around the model', [worker(), hook('aroundInference', () => never)], /time limit of 1000 ms/],
  ['a schema', [worker({ input: hanging })], /Left behind: schema of the tool "work"/],
  ['a tool of a subagent', [delegate('work', [worker({ execute: () => never })])], /Time limit reached/],
]

for (const [what, use, message] of cases) {
  const agent = createAgent({ model: scriptedModel(() => work), use: [...use, guards({ maxTimeMs: 1000 })] })

  test(`${what} that hangs does not keep a run alive after its time limit`, async () => {
    const clock = fakeClock()
    const run = await runOn(clock, (effects) => agent.run('Go.', { effects }))
    assert.deepEqual([run.status, 'final' in run && run.final.reason], ['stopped', 'timeLimit'])
    assert.match('final' in run ? run.final.message : '', message)
    assert.ok(clock.now() < 6_000, `it ended at ${clock.now()}`)
  })

  test(`${what} that was left behind is left behind in a replay`, async () => {
    const recording = memoryRecording()
    const live = await runOn(fakeClock(), (effects) => agent.run('Go.', { effects: recordEffects(recording, effects) }))
    const again = await agent.run('Go.', { effects: replayEffects(recording) })
    assert.equal(JSON.stringify(again.state), JSON.stringify(live.state))
    assert.deepEqual(withoutDurations(again), withoutDurations(live))
  })
}

test('a tool that did not stop at the time limit has an unknown outcome, and is not counted as done', async () => {
  const use = [worker({ execute: () => never }), guards({ maxTimeMs: 1000 })]
  const agent = createAgent({ model: scriptedModel([work, 'Done.']), use })
  const run = await runOn(fakeClock(), (effects) => agent.run('Go.', { effects }))
  const [execution] = run.state.lastStep!.toolExecutions
  assert.equal(execution!.status, 'outcomeUnknown')
  assert.match(JSON.stringify(execution!.output), /time limit.*may have had an effect.*may still be running/)
})

test('a tool that answers within the grace period after the time limit has its answer recorded', async () => {
  const patient = worker({
    execute: (_args, { signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve('saved'))),
  })
  const agent = createAgent({ model: scriptedModel([work, 'Done.']), use: [patient, guards({ maxTimeMs: 1000 })] })
  const run = await runOn(fakeClock(), (effects) => agent.run('Go.', { effects }))
  const [execution] = run.state.lastStep!.toolExecutions
  assert.deepEqual([execution!.status, execution!.output], ['ok', 'saved'])
  assert.equal(run.status === 'stopped' && run.final.reason, 'timeLimit')
})

test('a run in a session that left a tool behind replays from its store', async () => {
  const store = memoryStore()
  const use = [
    worker({ execute: () => never }),
    guard('beforeToolUse', async (ctx) => ctx),
    guards({ maxTimeMs: 1000 }),
  ]
  const agent = createAgent({ model: scriptedModel(() => work), store, use })
  const live = await runOn(fakeClock(), (effects) => agent.run('Go.', { effects, session: 's' }))
  assert.equal(live.status === 'stopped' && live.final.reason, 'timeLimit')
  const { record, differences } = await replay((await store.read('s'))!, { agent })
  assert.deepEqual([record, differences], [{ status: 'complete' }, []])
})

test('the time that an approver takes does not count towards the time limit', async () => {
  const clock = fakeClock()
  const ask = approval(async () => (await clock.sleep(60_000), 'allow' as const))
  const agent = createAgent({
    model: scriptedModel([work, 'Done.']),
    use: [worker({ ask: true }), ask, guards({ maxTimeMs: 1000 })],
  })
  const run = await runOn(clock, (effects) => agent.run('Go.', { effects }))
  assert.equal(run.status, 'completed')
})

test('the time that an approver takes to decide about the input does not count towards the time limit', async () => {
  const clock = fakeClock()
  const ask = approval(async () => (await clock.sleep(60_000), 'allow' as const))
  const asking = guard('onUserInput', (ctx) => ctx.ask('Take it?'))
  const agent = createAgent({ model: scriptedModel(['Done.']), use: [asking, ask, guards({ maxTimeMs: 1000 })] })
  const run = await runOn(clock, (effects) => agent.run('Go.', { effects }))
  assert.equal(run.status, 'completed')
})

test('a typed answer whose schema hangs ends the run at its time limit', async () => {
  const agent = createAgent({ model: scriptedModel(['{}']), output: hanging, use: [guards({ maxTimeMs: 1000 })] })
  const run = await runOn(fakeClock(), (effects) => (agent as Agent<unknown>).run('Go.', { effects }))
  assert.equal(run.status === 'stopped' && run.final.reason, 'timeLimit')
})

const declared = {
  hook: (look: (ctx: { readonly signal: AbortSignal }) => Promise<never>) =>
    hook('beforeStep', look, { name: 'slow', timeoutMs: 50 }),
  guard: (look: (ctx: { readonly signal: AbortSignal }) => Promise<never>) =>
    guard('beforeToolUse', look, { name: 'slow', timeoutMs: 50 }),
  'hook with an effect': (look: (ctx: { readonly signal: AbortSignal }) => Promise<never>) =>
    hook('beforeStep', look, { name: 'slow', timeoutMs: 50, effect: true }),
  'hook around a tool': (look: (ctx: { readonly signal: AbortSignal }) => Promise<never>) =>
    hook('aroundToolUse', look, { name: 'slow', timeoutMs: 50 }),
  'hook around the model': (look: (ctx: { readonly signal: AbortSignal }) => Promise<never>) =>
    hook('aroundInference', look, { name: 'slow', timeoutMs: 50 }),
} as const

for (const [kind, declare] of Object.entries(declared)) {
  test(`the signal of a ${kind} aborts at its own timeout, and that of the run does not`, async () => {
    const seen: { at: number; reason: string }[] = []
    const clock = fakeClock()
    const slow = declare(({ signal }) => {
      signal.addEventListener('abort', () => seen.push({ at: clock.now(), reason: String(signal.reason) }))
      return never
    })
    const signals: AbortSignal[] = []
    const late = hook('onStop', (ctx) => (signals.push(ctx.signal), ctx))
    const agent = createAgent({ model: scriptedModel([work, 'Done.']), use: [worker(), slow, late] })
    await runOn(clock, (effects) => agent.run('Go.', { effects }))
    assert.equal(seen.length, 1)
    assert.ok(seen[0]!.at <= 200)
    assert.match(seen[0]!.reason, /No answer within 50 ms/)
    assert.deepEqual(
      signals.map((signal) => signal.aborted),
      signals.map(() => false),
    )
  })
}

test('the signal of a guard without a timeout of its own aborts at the time limit of the run, and at a cancel', async () => {
  for (const end of ['limit', 'cancel'] as const) {
    const controller = new AbortController()
    let aborted = false
    const slow = guard('beforeStep', ({ signal }) => {
      signal.addEventListener('abort', () => (aborted = true))
      if (end === 'cancel') setImmediate(() => controller.abort())
      return never
    })
    const agent = createAgent({ model: scriptedModel(['Done.']), use: [slow, guards({ maxTimeMs: 1000 })] })
    const run = await runOn(fakeClock(), (effects) => agent.run('Go.', { effects, signal: controller.signal }))
    assert.deepEqual([aborted, run.status], [true, end === 'limit' ? 'stopped' : 'cancelled'])
  }
})

test('the signal of a tool aborts at the timeout of the tool', async () => {
  let aborted = false
  const slow = worker({
    timeoutMs: 50,
    execute: (_args, { signal }) => (signal.addEventListener('abort', () => (aborted = true)), never),
  })
  const agent = createAgent({ model: scriptedModel([work, 'Done.']), use: [slow] })
  const run = await runOn(fakeClock(), (effects) => agent.run('Go.', { effects }))
  assert.deepEqual([aborted, run.status], [true, 'completed'])
})

test('a subagent without a limit of its own sees the time that its parent has left', async () => {
  const clock = fakeClock()
  const wait = worker({ name: 'wait', execute: () => clock.sleep(600) })
  const agent = createAgent({
    model: scriptedModel([
      { toolCalls: [{ name: 'wait' }] },
      { toolCalls: [{ name: 'ask', args: { prompt: 'Go.' } }] },
      'Done.',
    ]),
    use: [
      wait,
      delegate('ask', [worker({ execute: () => never }), guards({ maxTimeMs: null })]),
      guards({ maxTimeMs: 1000 }),
    ],
  })
  const run = await runOn(clock, (effects) => agent.run('Go.', { effects }))
  assert.equal(run.status === 'stopped' && run.final.reason, 'timeLimit')
  assert.ok(clock.now() < 6_000, `it ended at ${clock.now()}`)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as soon } from 'node:timers/promises'
import * as z from 'zod'
import { guards } from '../../capabilities/guards.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { liveEffects, type EffectsOptions } from '../effects/effects.ts'
import { action, type Action } from '../hooks/action.ts'
import { guard, hook } from '../hooks/hook.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import { fakeClock, type FakeClock } from '../../testing/fake-clock.ts'
import type { Agent } from '../agent/agent.ts'
import type { Use } from '../agent/capability.ts'
import type { Run } from '../agent/run.ts'
import { agentTool } from '../agent/agent-tool.ts'
import { tool, type Tool } from '../agent/tool.ts'
import { replayedRun } from '../../sessions/replay/replayed-run.fixture.ts'

const never = new Promise<never>(() => undefined)
const work: ScriptedTurn = { toolCalls: [{ name: 'work' }] }
const silent = { provider: 'fake', modelId: 'silent', infer: () => never }

/** Tries again as long as it fails. */
async function untilDone<T>(attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await attempt()
    } catch {
      continue
    }
  }
}

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

/** Runs on a clock that moves on whenever nothing else happens. */
async function runOn(
  clock: FakeClock,
  start: (effects: EffectsOptions) => Promise<Run<unknown>>,
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
    /Left behind: hook "stuck" at beforeStep\./,
  ],
  ['a hook at onUserInput', [hook('onUserInput', () => never, { name: 'stuck' })], /hook "stuck" at onUserInput/],
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
  ['a hook at afterInference', [hook('afterInference', () => never, { name: 'stuck' })], /"stuck" at afterInference/],
  ['a guard at afterInference', [guard('afterInference', () => never, { name: 'stuck' })], /"stuck" at afterInference/],
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
  [
    'a hook around a tool',
    [worker(), hook('aroundToolUse', () => never)],
    /Left behind: hooks around the tool "work"\./,
  ],
  [
    'a hook that repeats a tool until it succeeds, with a tool',
    [
      worker({ execute: () => never }),
      hook('aroundToolUse', async (_ctx, next) => {
        for (;;) {
          const execution = await next()
          if (execution.status === 'ok') return execution
        }
      }),
    ],
    /Left behind: tool "work"\./,
  ],
  [
    'a hook that repeats a model call until it succeeds, with a model',
    [hook('aroundInference', (_ctx, next) => untilDone(() => next({ model: silent })))],
    /time limit of 1000 ms/,
  ],
  [
    'a tool inside a hook',
    [worker({ execute: () => never }), hook('aroundToolUse', (_ctx, next) => next())],
    /tool "work"/,
  ],
  ['a hook around the model', [worker(), hook('aroundInference', () => never)], /time limit of 1000 ms/],
  [
    'the pause before a retry',
    [hook('beforeStep', () => assert.fail('It failed.')), hook('onError', (ctx) => ctx.retry({ afterMs: 60_000 }))],
    /Time limit reached/,
  ],
  ['a schema', [worker({ input: hanging })], /Left behind: schema of the tool "work"/],
  ['a tool of a subagent', [delegate('work', [worker({ execute: () => never })])], /Time limit reached/],
]

for (const [what, use, message] of cases) {
  const agent = createAgent({ model: scriptedModel(() => work), use: [...use, guards({ maxTimeMs: 1000 })] })

  test(`${what} that hangs does not keep a run alive after its time limit, and is left behind in a replay`, async () => {
    const clock = fakeClock()
    const run = await runOn(clock, (effects) => replayedRun(agent, 'Go.', { effects }))
    assert.deepEqual([run.status, run.final?.reason], ['stopped', 'timeLimit'])
    assert.match(run.final?.message ?? '', message)
    assert.ok(clock.now() < 6_000, `it ended at ${clock.now()}`)
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

test('a hook around a tool that did not stop at the time limit can still change its result', async () => {
  const around = hook('aroundToolUse', async (_ctx, next) => ({ ...(await next()), output: 'Unknown.' }))
  const use = [worker({ execute: () => never }), around, guards({ maxTimeMs: 1000 })]
  const agent = createAgent({ model: scriptedModel([work, 'Done.']), use })
  const run = await runOn(fakeClock(), (effects) => agent.run('Go.', { effects }))
  const [execution] = run.state.lastStep!.toolExecutions
  assert.deepEqual([execution!.status, execution!.output], ['outcomeUnknown', 'Unknown.'])
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
  'custom action': (look: (ctx: { readonly signal: AbortSignal }) => Promise<never>) =>
    guard(
      'beforeToolUse',
      fake((_ctx, { signal }) => look({ signal })),
      { name: 'slow', timeoutMs: 50 },
    ),
  'custom action with a time limit of its own': (look: (ctx: { readonly signal: AbortSignal }) => Promise<never>) =>
    hook(
      'beforeStep',
      fake((_ctx, { signal }) => look({ signal }), { timeoutMs: 50 }),
      { name: 'slow' },
    ),
  'custom action that calls models': (look: (ctx: { readonly signal: AbortSignal }) => Promise<never>) =>
    hook(
      'beforeStep',
      fake((_ctx, { signal }) => look({ signal }), { asks: true }),
      { name: 'slow', timeoutMs: 50 },
    ),
} as const

function fake(perform: Action['perform'], more: Partial<Action> = {}): Action {
  return action({ kind: 'fake', label: 'fake', perform, ...more })
}

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

test('a tool is aborted, and its outcome is unknown, when the hook around it times out', async () => {
  let aborted = false
  const slow = worker({
    execute: (_args, { signal }) => (signal.addEventListener('abort', () => (aborted = true)), never),
  })
  const around = hook('aroundToolUse', (_ctx, next) => next(), { timeoutMs: 50 })
  const agent = createAgent({ model: scriptedModel([work, 'Done.']), use: [slow, around] })
  const run = await runOn(fakeClock(), (effects) => agent.run('Go.', { effects }))
  const execution = run.state.execution!.steps.at(0)!.toolExecutions[0]
  assert.deepEqual([aborted, execution?.status, run.status], [true, 'outcomeUnknown', 'completed'])
})

test('a hook that calls a model until it succeeds is left behind at the time limit, and does not block the process', async () => {
  const stubborn = hook('beforeStep', (ctx) =>
    untilDone(() => ctx.infer({ model: silent, prompt: 'Hi.' })).then(() => ctx),
  )
  const agent = createAgent({ model: scriptedModel(['Done.']), use: [stubborn, guards({ maxTimeMs: 1000 })] })
  const run = await runOn(fakeClock(), (effects) => agent.run('Go.', { effects }))
  assert.match(run.status === 'stopped' ? run.final.message : '', /Left behind: hook "hook:beforeStep" at beforeStep/)
})

test('a custom action that hangs blocks as a guard after the time limit of guards', async () => {
  const clock = fakeClock()
  const guarded = guard(
    'beforeToolUse',
    fake(() => never),
    { name: 'stuck' },
  )
  const agent = createAgent({ model: scriptedModel([work, 'Done.']), use: [worker(), guarded] })
  const run = await runOn(clock, (effects) => agent.run('Go.', { effects }))
  assert.equal(run.state.execution!.steps.at(0)!.toolExecutions[0]?.status, 'blocked')
  assert.match(run.warnings[0]!.message, /"stuck" failed at beforeToolUse, so it blocked: No answer within 60000 ms/)
})

test('a hook at the start or the end of a session that hangs fails at the time limit of a run', async () => {
  const use = [hook(['onSessionStart', 'onSessionEnd'], () => never, { name: 'stuck' }), guards({ maxTimeMs: 1 })]
  const options = { model: scriptedModel(['Hi.']), store: memoryStore() }
  await createAgent(options).run('Go.', { session: 's' })
  const session = createAgent({ ...options, use }).session('s')
  await assert.rejects(session.send('Go.'), { code: 'HOOK_TIMED_OUT', message: /at onSessionStart: .* time limit/ })
  await assert.rejects(session.end(), { code: 'HOOK_TIMED_OUT', message: /at onSessionEnd: .* time limit/ })
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

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { approval } from '../../capabilities/approval.ts'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import type { Json } from '../../values/json.ts'
import type { SavedRun } from '../state/saved-run.ts'
import { guard, hook, observe, shadow, type Hook } from '../hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { recordEvents } from '../../testing/record-events.ts'
import { explain } from '../explain/explain.ts'
import { explanation } from '../explain/explanation.ts'
import { tool } from '../agent/tool.ts'
import { recordedRun, replayedRun } from '../../sessions/replay/replayed-run.fixture.ts'
import { strictReplay } from '../../sessions/replay/strict-replay.fixture.ts'

const shell = tool({
  name: 'shell',
  description: 'Runs a command.',
  input: z.object({ command: z.string() }),
  execute: ({ command }) => `ran ${command}`,
})

const pushing = () => scriptedModel([{ toolCalls: [{ name: 'shell', args: { command: 'git push' } }] }, 'Done.'])

const retry = hook(
  'aroundInference',
  async (_ctx, next) => {
    try {
      return await next()
    } catch {
      return next()
    }
  },
  { name: 'retry' },
)

const noPush = guard(
  'beforeToolUse',
  (ctx) => (/git push/.test(ctx.toolCall.args.command) ? ctx.block('Agents never push.') : ctx),
  { name: 'no-push', tool: shell },
)

test('the ledger has the decision of a shadow hook, marked as such, and the call runs', async () => {
  const run = await createAgent({ model: pushing(), use: [shell, shadow(noPush)] }).run('go')
  const entry = run.ledger.find(({ hook: name }) => name === 'no-push')
  assert.deepEqual(
    [run.status, run.state.execution?.steps.at(0)?.toolExecutions[0]?.output],
    ['completed', 'ran git push'],
  )
  assert.deepEqual(
    { ...entry, durationMs: 0 },
    {
      step: 0,
      trigger: 'beforeToolUse',
      hook: 'no-push',
      mode: 'guard',
      call: 'call-1-1',
      decision: 'block',
      message: 'Agents never push.',
      shadow: true,
      durationMs: 0,
    },
  )
})

test('a shadow hook gets the value at its position, and its change is reported', async () => {
  const seen: Json[] = []
  const first = hook('beforeToolUse', (ctx) => ctx.withArgs({ command: 'a' }), { tool: shell, priority: 10 })
  const last = hook('beforeToolUse', (ctx) => ctx.withArgs({ command: 'c' }), { tool: shell, priority: -10 })
  const between = hook('beforeToolUse', (ctx) => ctx.withArgs({ command: `${ctx.toolCall.args.command}b` }), {
    tool: shell,
    name: 'between',
  })
  const judge = guard('beforeToolUse', (ctx) => (seen.push(ctx.toolCall.args.command), ctx), { tool: shell })
  const run = await createAgent({
    model: pushing(),
    use: [shell, first, last, shadow(between), shadow(judge, { name: 'judge' })],
  }).run('go')
  assert.deepEqual(run.ledger.find((each) => each.hook === 'between')?.changes, [
    { path: 'args.command', before: 'a', after: 'ab' },
  ])
  assert.deepEqual(seen, ['c'])
})

test('a shadow guard also judges a call that an active guard blocked', async () => {
  const run = await createAgent({ model: pushing(), use: [shell, noPush, shadow(noPush, { name: 'other' })] }).run('go')
  assert.deepEqual(
    run.ledger.filter((each) => each.decision === 'block').map((each) => [each.hook, each.shadow]),
    [
      ['other', true],
      ['no-push', undefined],
    ],
  )
})

test('hooks and observers do not see shadow entries in their ledger, also after a run was saved', async () => {
  const seen = new Set<string>()
  const reader = hook(
    'beforeStep',
    (ctx) => {
      for (const each of ctx.ledger) seen.add(each.hook)
      return ctx.withState((state) => state.withMetadata('read', state.stepCount))
    },
    { name: 'reader' },
  )
  const watcher = observe('afterExecution', (ctx) => ctx.ledger.map((each) => seen.add(each.hook)), { name: 'watcher' })
  const agent = createAgent({
    model: scriptedModel([{ toolCalls: [{ name: 'shell', args: { command: 'ls' } }] }, 'Done.']),
    use: [
      shell,
      reader,
      watcher,
      approval({ answer: 'suspend', tools: ['shell'] }),
      shadow(hook('beforeStep', (ctx) => ctx.stop('no'), { name: 'hidden', priority: 1 })),
    ],
  })
  const waiting = await agent.run('go')
  const saved = JSON.parse(JSON.stringify(waiting)) as SavedRun
  const answers = waiting.status === 'suspended' ? { [waiting.pending[0]!.id]: 'allow' as const } : {}
  const run = await agent.resume(saved, { answers })
  assert.equal(run.status, 'completed')
  assert.equal(seen.has('reader') && !seen.has('hidden'), true)
  assert.equal(run.ledger.filter((each) => each.hook === 'hidden').length, 2)
})

test('a shadow hook runs in the background, and is reported when it has finished', async () => {
  const order: string[] = []
  const lastStep = Promise.withResolvers<void>()
  const slow = guard(
    'beforeToolUse',
    async (ctx) => {
      await lastStep.promise
      await delay(20)
      order.push('shadow')
      return ctx.block('Too late to matter.')
    },
    { name: 'slow' },
  )
  const after = hook('afterStep', (ctx) => {
    if (order.push('afterStep') === 2) lastStep.resolve()
    return ctx
  })
  const { run, of } = await recordEvents(
    createAgent({ model: pushing(), use: [shell, after, shadow(slow)] }).stream('go'),
  )
  assert.deepEqual(order, ['afterStep', 'afterStep', 'shadow'])
  assert.deepEqual(
    run.ledger.filter((each) => each.shadow).map(({ step, decision, call }) => [step, decision, call]),
    [[0, 'block', 'call-1-1']],
  )
  assert.deepEqual(of('hook').filter((each) => each.entry.shadow).length, 1)
})

test('a shadow hook sees the run as it was at the event, also when it reads it later', async () => {
  const late: unknown[] = []
  const slow = hook('beforeStep', async (ctx) => {
    const soon = [ctx.spent.steps, ctx.ledger.length]
    await delay(10)
    late.push([soon, [ctx.spent.steps, ctx.ledger.length]])
    return ctx
  })
  await createAgent({ model: pushing(), use: [shell, shadow(slow)] }).run('go')
  assert.equal(late.length, 2)
  for (const [soon, later] of late as unknown[][]) assert.deepEqual(later, soon)
})

test('a shadow guard that throws, returns an invalid value or nothing is in the ledger as the block it would have been', async () => {
  const broken = guard(
    'beforeToolUse',
    () => {
      throw new Error('broken')
    },
    { name: 'broken' },
  )
  const mute = guard('beforeStep', (() => undefined) as never, { name: 'mute' })
  const late = guard('beforeToolUse', () => new Promise<never>(() => undefined), { name: 'late', timeoutMs: 5 })
  const loose = hook('beforeStep', () => Promise.reject(new Error('loose')), { name: 'loose' })
  const run = await createAgent({
    model: pushing(),
    use: [shell, ...[broken, mute, late, loose].map((each) => shadow(each))],
  }).run('go')
  const told = run.ledger.filter((each) => each.shadow && each.step === 0)
  assert.equal(run.status, 'completed')
  assert.deepEqual(
    new Set(told.map(({ hook: name, decision, error }) => `${name} ${decision} ${error?.slice(0, 22)}`)),
    new Set([
      'mute forbid It returned nothing. R',
      'loose undefined loose',
      'broken block broken',
      'late block No answer within 5 ms.',
    ]),
  )
})

test(
  'a shadow hook that never finishes does not delay the end of the run, and is reported as such',
  { timeout: 120_000 },
  async () => {
    const never = hook('beforeStep', () => new Promise<never>(() => undefined), { name: 'never' })
    const run = await createAgent({ model: scriptedModel(['Done.']), use: [shadow(never)] }).run('go')
    assert.deepEqual(
      run.ledger.filter((each) => each.shadow).map((each) => each.error),
      ['It had not answered when the run ended.'],
    )
  },
)

test('usage and votes of a shadow hook are not counted', async () => {
  const greedy = hook('beforeStep', (ctx) => ctx.spend({ inputTokens: 1e9 }).stop('Enough.'), { name: 'greedy' })
  const run = await createAgent({ model: pushing(), use: [shell, guards({ maxTokens: 1000 }), shadow(greedy)] }).run(
    'go',
  )
  assert.deepEqual([run.status, run.state.usage.inputTokens], ['completed', 20])
})

test('a shadow hook does not delay a stream', async () => {
  const nosy = guard('afterInference', (ctx) => ctx.block('no'), { name: 'nosy' })
  const model = scriptedModel([{ chunks: ['a', 'b', 'c'] }])
  const { of } = await recordEvents(createAgent({ model, use: [shadow(nosy)] }).stream('go'))
  assert.deepEqual(
    of('text').map(({ delta }) => delta),
    ['a', 'b', 'c'],
  )
})

test('a run that started with a guard cannot be resumed with it in shadow mode', async () => {
  const make = (no: Hook) =>
    createAgent({
      model: scriptedModel([{ toolCalls: [{ name: 'shell', args: { command: 'ls' } }] }, 'Done.']),
      use: [shell, no, approval({ answer: 'suspend', tools: ['shell'] })],
    })
  const waiting = await make(noPush).run('go')
  await assert.rejects(make(shadow(noPush)).resume(waiting), { code: 'RESUME_GUARD_MISSING' })
})

test('a run with shadow hooks replays without them, and the other way round', async () => {
  const suspicious = shadow(
    guard(['beforeInference', 'beforeToolUse'], (ctx) => ctx.stop('no'), { name: 'suspicious' }),
  )
  const script = () =>
    scriptedModel([{ error: 'busy' }, { toolCalls: [{ name: 'shell', args: { command: 'ls' } }] }, 'Done.'])
  const make = (...use: readonly Hook[]) => createAgent({ model: script(), use: [shell, retry, ...use] })
  for (const [recorded, replayed] of [
    [[suspicious], []],
    [[], [suspicious]],
  ] as const) {
    const { run, store } = await recordedRun(make(...recorded), 'go')
    await strictReplay(make(...replayed), store, 's')
    assert.equal(
      run.ledger.some((each) => each.shadow),
      recorded.length > 0,
    )
  }
})

test('shadow guards judge attempts inside an around hook, also in a replay', async () => {
  const strict = shadow(guard('beforeInference', (ctx) => ctx.stop('no'), { name: 'strict' }))
  const agent = createAgent({ model: scriptedModel([{ error: 'busy' }, 'Done.']), use: [retry, strict] })
  const run = await replayedRun(agent, 'go')
  assert.deepEqual([run.status, run.ledger.filter((each) => each.shadow).length], ['completed', 2])
})

test('explain lists decisions of shadow hooks separately', async () => {
  const loud = hook('beforeToolUse', (ctx) => ctx.withArgs({ command: 'LS' }), { name: 'loud', tool: shell })
  const run = await createAgent({ model: pushing(), use: [shell, shadow(noPush), shadow(loud)] }).run('go')
  const { blocked, changed, shadows } = explanation(run)
  assert.deepEqual([blocked, changed], [[], []])
  assert.deepEqual(
    shadows.map(({ hook: name, tool: of }) => [name, of]),
    [
      ['no-push', 'shell'],
      ['loud', 'shell'],
    ],
  )
  assert.match(
    explain(run),
    / {2}shadows {6}step 1, no-push at beforeToolUse, shell: would decide block: Agents never push\.\n {15}step 1, loud at beforeToolUse, shell: would change args.command "git push" → "LS"$/,
  )
})

test('describe marks shadow hooks', () => {
  const { hooks } = createAgent({
    model: pushing(),
    use: [shell, noPush, shadow(noPush, { name: 'other' })],
  }).describe()
  assert.deepEqual(
    hooks.filter((each) => each.tools !== undefined).map((each) => [each.name, each.shadow]),
    [
      ['no-push', undefined],
      ['other', true],
    ],
  )
})

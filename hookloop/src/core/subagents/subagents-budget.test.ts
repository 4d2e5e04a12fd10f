import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { guards } from '../../capabilities/guards.ts'
import { guard, observe } from '../hooks/hook.ts'
import { liveEffects } from '../effects/effects.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { fakeClock } from '../../testing/fake-clock.ts'
import { calls, familyWorld, look, plan, planModel, spawn, type Turn } from './family-world.fixture.ts'
import type { Run } from '../agent/run.ts'
import { recordedRun } from '../../sessions/replay/replayed-run.fixture.ts'
import { strictReplay } from '../../sessions/replay/strict-replay.fixture.ts'

/** A model that costs that many tokens per call, and always calls "look". */
const busy = (inputTokens: number, costUsd = 0) =>
  scriptedModel(() => ({
    text: 'Busy.',
    toolCalls: [{ name: 'look', args: { at: 1 } }],
    usage: { inputTokens, outputTokens: 0, costUsd },
  }))

const stepsOf = (run: Run, call: string): number =>
  (
    run.ledger.find((each) => each.trigger === 'onSubagentStop' && each.mode === 'loop' && each.call === call)!
      .value as {
      readonly steps: number
    }
  ).steps
const outputOf = (run: Run, index = 0): string =>
  run.state.execution!.steps.at(0)!.toolExecutions[index]!.output as string

test('the usage of subagents counts in the run exactly', async () => {
  const model = planModel({ usage: { inputTokens: 7, costUsd: 0.25 } })
  const { agent } = familyWorld({ model })
  const run = await agent.run(
    plan(
      calls(spawn('a', 'plain', calls(look('a1')), 'A.'), spawn('b', 'plain', calls(spawn('c', 'plain', 'C.')), 'B.')),
      'Done.',
    ),
  )
  const { inputTokens, outputTokens, costUsd, steps, toolCalls } = run.state.usage
  assert.deepEqual([inputTokens, outputTokens, costUsd, steps, toolCalls], [7 * 7, 5 * 7, 0.25 * 7, 7, 4])
  assert.equal(model.requests.length, 7)
})

test('maxTokens applies to the run and its subagents together', async () => {
  const { agent } = familyWorld({
    use: [guards({ maxTokens: 1000, maxSteps: null })],
    who: { busy: { model: busy(100) } },
  })
  const run = await agent.run(plan(calls(spawn('a', 'busy', 'x')), 'Done.'))
  assert.equal(stepsOf(run, 'a'), 10, 'fifteen were spent before it started, so that the tenth call is the last')
  assert.match(outputOf(run), /Token limit reached: 1015\/1000/)
  assert.deepEqual([run.status, run.status === 'stopped' && run.reason], ['stopped', 'tokenLimit'])
})

test('subagents that start together share the remaining budget, in the order of the calls', async () => {
  const { agent } = familyWorld({
    use: [guards({ maxTokens: 1015, maxSteps: null })],
    who: { busy: { model: busy(10) } },
  })
  const run = await agent.run(
    plan(
      calls(spawn('a', 'busy', 'x'), spawn('b', 'busy', 'x'), spawn('c', 'busy', 'x'), spawn('d', 'busy', 'x')),
      'Done.',
    ),
  )
  assert.deepEqual(
    ['a', 'b', 'c', 'd'].map((call) => stepsOf(run, call)),
    [25, 25, 25, 25],
  )
  assert.equal(run.state.usage.inputTokens, 10 + 1000)
})

test('the unused budget of a subagent is available to the next', async () => {
  const { agent } = familyWorld({
    use: [guards({ maxTokens: 1030, maxSteps: null })],
    who: { busy: { model: busy(10) } },
  })
  const run = await agent.run(
    plan(calls(spawn('a', 'plain', 'Short.'), spawn('b', 'plain', 'Short.')), calls(spawn('c', 'busy', 'x')), 'Done.'),
  )
  assert.equal(stepsOf(run, 'c'), Math.ceil((1030 - 4 * 15) / 10))
})

test('tool calls and cost are shared as well, and the remainder goes to the first', async () => {
  const calling = familyWorld({
    use: [guards({ maxToolCalls: 9, maxSteps: null, maxTokens: null })],
    who: { busy: { model: busy(1) } },
  })
  const called = await calling.agent.run(
    plan(
      calls(spawn('a', 'busy', 'x'), spawn('b', 'busy', 'x'), spawn('c', 'busy', 'x'), spawn('d', 'busy', 'x')),
      'Done.',
    ),
  )
  assert.deepEqual(
    ['a', 'b', 'c', 'd'].map((call) => stepsOf(called, call)),
    [3, 2, 2, 2],
    'one call each is blocked',
  )
  assert.equal(calling.looked.length, 5)
  const paying = familyWorld({
    use: [guards({ maxCost: 1, maxSteps: null, maxTokens: null })],
    who: { busy: { model: busy(1, 0.125) } },
  })
  const paid = await paying.agent.run(plan(calls(spawn('a', 'busy', 'x'), spawn('b', 'busy', 'x')), 'Done.'))
  assert.deepEqual([stepsOf(paid, 'a'), stepsOf(paid, 'b'), paid.state.usage.costUsd], [4, 4, 1])
})

test('a limit of a subagent counts its own usage and that of its subagents, not that of its parent', async () => {
  const { agent } = familyWorld({
    use: [guards({ maxTokens: null, maxSteps: null })],
    who: { small: { limits: { maxTokens: 300 } }, busy: { model: busy(100) } },
  })
  const run = await agent.run(
    plan({ calls: [spawn('a', 'small', calls(spawn('b', 'busy', 'x')), 'Done.')], tokens: 5000 }, 'Done.'),
  )
  const inner = run.ledger.find(
    ({ call, trigger, mode }) => call === 'b' && trigger === 'onSubagentStop' && mode === 'loop',
  )!
  assert.deepEqual([(inner.value as { steps: number }).steps, inner.decision], [3, 'stopped'])
  assert.equal(run.status, 'completed')
})

test('a guard of the parent sees the total usage, and one of the subagent its own usage', async () => {
  const seen: unknown[] = []
  const see = (name: string) =>
    guard('beforeInference', (ctx) => (seen.push([name, ctx.spent.inputTokens]), ctx), { name })
  const { agent } = familyWorld({ use: [see('parent')], who: { own: { use: [see('own')] } } })
  await agent.run(plan(calls(spawn('a', 'own', calls(look('x')), 'A.')), calls(spawn('b', 'own', 'B.')), 'Done.'))
  assert.deepEqual(seen, [
    ['parent', 0],
    ['parent', 10],
    ['own', 0],
    ['parent', 20],
    ['own', 10],
    ['parent', 30],
    ['parent', 40],
    ['own', 0],
    ['parent', 50],
  ])
})

test('maxTimeMs of the parent continues to count in a subagent', async () => {
  const clock = fakeClock({ startAt: 1_000 })
  const model = scriptedModel(({ system, messages }) => {
    void clock.advance(400)
    if (system === 'plain') return { text: 'Busy.', toolCalls: [{ name: 'look', args: { at: 1 } }] }
    return messages.length === 1 ? { toolCalls: [spawn('a', 'plain', 'x')] } : 'Done.'
  })
  const { agent } = familyWorld({ model, use: [guards({ maxTimeMs: 1500 })] })
  const run = await agent.run('Go.', { effects: liveEffects({ clock }) })
  assert.match(outputOf(run), /Time limit reached: 1600\/1500 ms/)
  assert.equal(stepsOf(run, 'a'), 3)
})

test('the steps of each agent are counted separately', async () => {
  const { agent } = familyWorld({ use: [guards({ maxSteps: 3 })] })
  const three: Turn[] = [calls(look('1')), calls(look('2')), 'Done.']
  const run = await agent.run(plan(calls(spawn('a', 'plain', ...three)), calls(spawn('b', 'plain', ...three)), 'Done.'))
  assert.deepEqual([run.status, run.state.usage.steps, run.state.stepCount], ['completed', 9, 3])
})

test('a thousand subagents in one step run eight at a time, and all finish', async () => {
  let [atOnce, most] = [0, 0]
  const model = planModel()
  const { agent, looked } = familyWorld({
    model,
    use: [
      guards({ maxTokens: null, maxTimeMs: null }),
      observe('beforeExecution', () => void (most = Math.max(most, ++atOnce)), { name: 'in' }),
      observe('afterExecution', () => void atOnce--, { name: 'out' }),
    ],
  })
  const many = Array.from({ length: 1000 }, (_, i) => spawn(`s${i}`, 'plain', calls(look(`l${i}`)), `${i}.`))
  const run = await agent.run(plan(calls(...many), 'Done.'))
  assert.deepEqual(
    [run.status, looked.length, new Set(looked).size, run.state.usage.steps],
    ['completed', 1000, 1000, 2002],
  )
  assert.deepEqual(
    run.state.execution!.steps.at(0)!.toolExecutions.map(({ output }) => output),
    many.map((_, i) => `${i}.`),
  )
  assert.ok(most <= 9, `${most} at once, the run itself included`)
})

test('a recorded run with any subagents replays to the same state byte by byte, without effects', async () => {
  const id = (): (() => string) => {
    let n = 0
    return () => `c${++n}`
  }
  type Made =
    | { readonly kind: 'look' }
    | { readonly kind: 'spawn'; readonly who: string; readonly turns: readonly (readonly Made[])[] }
  const { tree } = fc.letrec<{ tree: readonly (readonly Made[])[]; call: Made }>((tie) => ({
    tree: fc.array(fc.array(tie('call'), { minLength: 1, maxLength: 3 }), { maxLength: 2 }),
    call: fc.oneof(
      { depthSize: 'small', maxDepth: 3 },
      fc.constant<Made>({ kind: 'look' }),
      fc.record({
        kind: fc.constant('spawn' as const),
        who: fc.constantFrom('plain', 'missing', 'short', 'refused', 'broken'),
        turns: tie('tree'),
      }),
    ),
  }))
  const toTurns = (turns: readonly (readonly Made[])[], next: () => string): readonly Turn[] => [
    ...turns.map((made) =>
      calls(
        ...made.map((each) =>
          each.kind === 'look' ? look(next()) : spawn(next(), each.who, ...toTurns(each.turns, next)),
        ),
      ),
    ),
    'End.',
  ]
  const who = {
    short: { limits: { maxSteps: 1 } },
    refused: { use: [guard('onUserInput', (ctx) => ctx.block('no'), { name: 'refuse' })] },
    broken: { model: scriptedModel(() => ({ error: 'broken' })) },
  }
  await fc.assert(
    fc.asyncProperty(tree, async (made) => {
      const task = plan(...toTurns(made, id()))
      const { store } = await recordedRun(familyWorld({ who }).agent, task)
      const world = familyWorld({ who })
      await strictReplay(world.agent, store, 's')
      assert.deepEqual([world.looked, world.model.requests.length], [[], 0])
    }),
    { numRuns: 60 },
  )
})

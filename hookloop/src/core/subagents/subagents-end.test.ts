import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, test } from 'node:test'
import { errorPolicies, errorPolicy } from '../../capabilities/error-policy.ts'
import { guards } from '../../capabilities/guards.ts'
import type { ToolExecution } from '../state/tool-call.ts'
import { guard, hook, observe } from '../hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { calls, familyWorld, look, plan, spawn } from './family-world.fixture.ts'
import type { Run } from '../agent/run.ts'
import { fullStore, recordedRun, runIn } from '../../sessions/replay/replayed-run.fixture.ts'
import { strictReplay } from '../../sessions/replay/strict-replay.fixture.ts'
import { replay } from '../../sessions/replay/replay.ts'

const results = (run: Run, step = 0): readonly ToolExecution[] => run.state.execution!.steps.at(step)!.toolExecutions
const outputs = (run: Run, step = 0): readonly unknown[] => results(run, step).map(({ output }) => output)

describe('a failure in a subagent is reported to the model, and the run continues', () => {
  const broken = (error: unknown) => scriptedModel(() => ({ error: error as Error }))
  const cases: {
    readonly [what: string]: [Parameters<typeof familyWorld>[0], string, ToolExecution['status'], RegExp]
  } = {
    'it does not exist': [{}, 'missing', 'failed', /^There is no agent "missing"\.$/],
    'its model fails': [
      { who: { x: { model: broken('overheated') } } },
      'x',
      'failed',
      /The subagent "x" failed: .*overheated/,
    ],
    'it cannot be made': [{ who: { x: { model: 'nonsense' } } }, 'x', 'failed', /nonsense/],
    'a hook of its own throws': [
      {
        who: {
          x: {
            use: [
              hook(
                'beforeStep',
                () => {
                  throw new Error('oops')
                },
                { name: 'h' },
              ),
            ],
          },
        },
      },
      'x',
      'failed',
      /The subagent "x" failed: .*oops/,
    ],
    'a guard of its parent fails in it': [
      {
        use: [
          guard(
            'beforeStep',
            (ctx) => {
              if ('hookloop.subagent' in ctx.state.metadata) throw new Error('oops')
              return ctx
            },
            { name: 'g' },
          ),
        ],
      },
      'plain',
      'failed',
      /stopped by "g" before it had finished: .*oops/,
    ],
    'its input is blocked': [
      {
        use: [
          guard('onUserInput', (ctx) => ('hookloop.subagent' in ctx.state.metadata ? ctx.block('secret') : ctx), {
            name: 'g',
          }),
        ],
      },
      'plain',
      'blocked',
      /^The subagent "plain" was not started: secret$/,
    ],
    'a hook on its input throws': [
      {
        who: {
          x: {
            use: [
              hook(
                'onUserInput',
                () => {
                  throw new Error('oops')
                },
                { name: 'h' },
              ),
            ],
          },
        },
      },
      'x',
      'failed',
      /failed: .*oops/,
    ],
    'it says nothing': [
      { who: { x: { model: scriptedModel(() => '') } } },
      'x',
      'failed',
      /stopped by .* before it had finished/,
    ],
    'it comes to its limit': [
      {
        who: {
          x: {
            limits: { maxSteps: 1 },
            model: scriptedModel(() => ({ text: 'So far.', toolCalls: [{ name: 'look', args: { at: 1 } }] })),
          },
        },
      },
      'x',
      'ok',
      /^The subagent "x" was stopped by "guards\.maxSteps" before it had finished: Step limit reached: 1\/1\.\nIts answer so far:\nSo far\.$/,
    ],
    'it comes to a limit of its parent': [
      {
        use: [guards({ maxSteps: 2 })],
        who: { x: { model: scriptedModel(() => ({ toolCalls: [{ name: 'look', args: { at: 1 } }] })) } },
      },
      'x',
      'failed',
      /stopped by "guards\.maxSteps".*2\/2/,
    ],
    'its answer is withheld': [
      { who: { x: { use: [guard('afterInference', (ctx) => ctx.block('no'), { name: 'g' })] } } },
      'x',
      'ok',
      /stopped by .*\n.*\n\[withheld by "g": no\]/,
    ],
  }
  for (const [what, [options, who, status, words]] of Object.entries(cases)) {
    test(what, async () => {
      const { agent } = familyWorld(options)
      const run = await agent.run(plan(calls(spawn('s', who, 'Hi.'), look('after')), 'Going on.'))
      const [result] = results(run)
      assert.deepEqual(
        [run.status, run.text, result!.status],
        ['completed', 'Going on.', status],
        result!.output as string,
      )
      assert.match(result!.output as string, words)
    })
  }
})

test('an error inside a subagent is handled by its own error policy, and does not count in its parent', async () => {
  let asked = 0
  const model = scriptedModel(() => (++asked < 3 ? { error: 'once more' } : 'At last.'))
  const { agent } = familyWorld({
    who: { patient: { model, use: [errorPolicy({ ...errorPolicies.patient, backoffMs: 1 })] } },
  })
  const run = await agent.run(plan(calls(spawn('s', 'patient', 'Hi.')), 'Done.'))
  assert.equal(run.status, 'completed')
  assert.equal(run.state.execution!.failures, 0)
})

test('subagents are nested at most sixteen levels deep', async () => {
  const { agent } = familyWorld({ use: [guards({ maxTokens: null })] })
  const deep = (levels: number): string =>
    levels === 0
      ? plan('Bottom.')
      : plan({ calls: [{ id: 's', name: 'spawn', args: { who: 'plain', plan: deep(levels - 1) } }] }, 'Up.')
  const run = await agent.run(deep(20))
  const failed = run.ledger.filter(
    ({ decision, message }) => decision === 'failed' && /nested 16 levels deep/.test(message ?? ''),
  )
  assert.deepEqual([run.status, failed.map(({ path }) => path!.length)], ['completed', [16]])
})

describe('onSubagentStop', () => {
  test('a hook gets the subagent and its result, and may change the result', async () => {
    const seen: unknown[] = []
    const { agent } = familyWorld({
      use: [
        hook('onSubagentStop', (ctx) => {
          const { name, call, status, spent } = ctx.subagent
          seen.push([name, call, status, spent.steps, spent.toolCalls, ctx.outcome.stopReason, ctx.output])
          return ctx.withOutput(`${ctx.output as string}!`).withState((state) => state.withMetadata('last', name))
        }),
      ],
    })
    const run = await agent.run(plan(calls(spawn('s', 'plain', calls(look('a')), 'Seen.'))))
    assert.deepEqual(seen, [['plain', 's', 'completed', 2, 1, 'completed', 'Seen.']])
    assert.deepEqual([outputs(run), run.state.metadata['last']], [['Seen.!'], 'plain'])
  })

  test('a hook or a guard may request a continuation in the same conversation', async () => {
    const more = [
      hook('onSubagentStop', (ctx) => (ctx.output === 'One.' ? ctx.requestContinuation('And two?') : ctx), {
        name: 'more',
      }),
      guard('onSubagentStop', (ctx) => (ctx.output === 'Two.' ? ctx.requestContinuation('And three?') : ctx), {
        name: 'judge',
      }),
    ]
    const { agent, model } = familyWorld({ use: more })
    const run = await agent.run(plan(calls(spawn('s', 'plain', 'One.', 'Two.', 'Three.')), 'Done.'))
    const last = [...model.requests.filter(({ system }) => system === 'plain').at(-1)!.messages]
    assert.deepEqual(outputs(run), ['Three.'])
    assert.deepEqual(last.map(({ content }) => content[0]?.type === 'text' && content[0].text).slice(1), [
      'One.',
      'And two?',
      'Two.',
      'And three?',
    ])
    assert.equal(run.state.usage.steps, 5)
  })

  test('a hook that always requests a continuation is overruled after eight in a row', async () => {
    let fired = 0
    const { agent } = familyWorld({
      use: [hook('onSubagentStop', (ctx) => (fired++, ctx.requestContinuation('More!')), { name: 'greedy' })],
    })
    const run = await agent.run(plan(calls(spawn('s', 'plain', 'One.')), 'Done.'))
    assert.deepEqual([run.status, fired], ['completed', 9])
  })

  test('a subagent that was stopped by a limit cannot be continued', async () => {
    const { agent } = familyWorld({
      use: [hook('onSubagentStop', (ctx) => ctx.requestContinuation('More!'), { name: 'greedy' })],
      who: { short: { limits: { maxSteps: 1 } } },
    })
    const run = await agent.run(plan(calls(spawn('s', 'short', calls(look('a')), 'Done.')), 'Done.'))
    assert.match(String(outputs(run)[0]), /Step limit reached: 1\/1/)
  })

  test('a guard may withhold the result', async () => {
    const { agent } = familyWorld({
      use: [guard('onSubagentStop', (ctx) => ctx.block('not for you'), { name: 'judge' })],
    })
    const run = await agent.run(plan(calls(spawn('s', 'plain', 'Secret.'))))
    const [{ output, withheld, by, status }] = results(run) as [ToolExecution]
    assert.deepEqual([output, withheld, by, status], ['[withheld by "judge": not for you]', true, 'judge', 'ok'])
  })

  for (const [what, make] of [
    [
      'a guard that throws',
      () =>
        guard(
          'onSubagentStop',
          () => {
            throw new Error('oops')
          },
          { name: 'judge' },
        ),
    ],
    [
      'a hook that throws, where errors are ignored',
      () =>
        hook(
          'onSubagentStop',
          () => {
            throw new Error('oops')
          },
          { name: 'h' },
        ),
    ],
  ] as const) {
    test(`${what} withholds it`, async () => {
      const ignore = hook('onError', (ctx) => ctx.ignore(), { name: 'ignore' })
      const { agent } = familyWorld({ use: [make(), ignore] })
      const run = await agent.run(plan(calls(spawn('s', 'plain', 'Secret.')), 'Done.'))
      const [result] = results(run)
      assert.deepEqual([run.status, result!.withheld], ['completed', true])
      assert.doesNotMatch(JSON.stringify(run), /Secret\."}/)
    })
  }

  test('it fires in the order of the calls, whichever subagent ends first', async () => {
    const order: string[] = []
    const slow = scriptedModel(() => ({ text: 'Slow.', delayMs: 30 }))
    const { agent } = familyWorld({
      use: [hook('onSubagentStop', (ctx) => (order.push(ctx.subagent.name), ctx), { name: 'h' })],
      who: { slow: { model: slow } },
    })
    await agent.run(plan(calls(spawn('1', 'slow', 'x'), spawn('2', 'plain', 'Quick.'))))
    assert.deepEqual(order, ['slow', 'plain'])
  })
})

describe('a cancel', () => {
  test('stops every subagent, however deep, and leaves nothing running', async () => {
    const controller = new AbortController()
    const { agent, looked, atWork } = familyWorld({ lookMs: 60_000 })
    const busy = (id: string) => spawn(id, 'plain', calls(look(`${id}1`), look(`${id}2`)), 'Done.')
    const running = agent.run(plan(calls(busy('a'), spawn('b', 'plain', calls(busy('c'), busy('d')), 'Done.'))), {
      signal: controller.signal,
    })
    while (atWork() < 6) await delay(1)
    controller.abort()
    const run = await running
    assert.deepEqual([run.status, atWork(), looked], ['cancelled', 0, []])
    assert.deepEqual(
      results(run).map(({ status }) => status),
      ['outcomeUnknown', 'outcomeUnknown'],
    )
  })

  test('at any moment is recorded so that the run replays to the same state', async () => {
    for (const at of [1, 2, 4, 7, 11, 16, 22, 29, 37]) {
      const controller = new AbortController()
      let fired = 0
      const abort = observe(
        '*',
        () => {
          if (++fired === at) controller.abort()
        },
        { name: 'abort' },
      )
      const quiet = observe('*', () => undefined, { name: 'abort' })
      const task = plan(
        calls(
          spawn('a', 'plain', calls(look('a1')), 'A.'),
          spawn('b', 'plain', calls(look('b1')), calls(look('b2')), 'B.'),
        ),
        'Done.',
      )
      const { agent } = familyWorld({ use: [abort] })
      const { run, store } = await recordedRun(agent, task, { signal: controller.signal })
      assert.equal(run.status, 'cancelled', `at ${at}`)
      await strictReplay(familyWorld({ use: [quiet] }).agent, store, 's')
    }
  })
})

test('a store that fails ends the run, also from within a subagent', async () => {
  const task = plan(calls(spawn('s', 'plain', calls(look('a')), 'Done.')), 'End.')
  const world = familyWorld()
  const run = await runIn(fullStore(2), world.agent, task) // the call of the subagent is stored, and nothing after it
  assert.deepEqual(
    [run.status, run.status === 'failed' && run.error.code, world.looked],
    ['failed', 'STORE_FAILED', []],
  )
})

test('a replay that diverges in a subagent names the place', async () => {
  const task = plan(calls(spawn('s', 'plain', calls(look('a')), 'Done.')), 'End.')
  const { store } = await recordedRun(familyWorld().agent, task)
  const { agent } = familyWorld({ who: { plain: { instructions: 'other' } } })
  const { record } = await replay((await store.read('s'))!, { agent })
  assert.equal(record.status, 'diverged')
  assert.match(record.message!, /the model call in step 1/)
})

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as z from 'zod'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import { textOf } from '../state/message.ts'
import { totalTokens } from '../state/usage.ts'
import { guard, hook, shadow } from '../hooks/hook.ts'
import { liveEffects } from '../effects/effects.ts'
import { scriptedModel, type Script } from '../../models/scripted.ts'
import { fire } from '../../testing/fire.ts'
import { fakeClock } from '../../testing/fake-clock.ts'
import { recordEvents } from '../../testing/record-events.ts'
import type { Use } from '../agent/capability.ts'
import { explanation } from '../explain/explanation.ts'
import type { Run } from '../agent/run.ts'
import { recordedRun } from '../../sessions/replay/replayed-run.fixture.ts'

/** An agent that answers "done", and a second model for its hooks. */
function withCritic(says: Script, ...use: readonly Use[]) {
  const [model, critic] = [scriptedModel(() => 'done'), scriptedModel(says, { modelId: 'critic' })]
  return { model, critic, agent: createAgent({ model, use }) }
}

const Verdict = z.object({ good: z.boolean() })
const yes = { toolCalls: [{ name: 'final_answer', args: { good: true } }] }
const bad = { toolCalls: [{ name: 'final_answer', args: { good: 'very' } }] }

function entries(run: Run, hookName: string) {
  return run.ledger.filter((entry) => entry.hook === hookName).map(({ decision, message }) => [decision, message])
}

test('a hook calls a model, and its usage is counted in the run', async () => {
  const { critic, agent } = withCritic(
    ['fine'],
    hook('onStop', async (ctx) => {
      const { text } = await ctx.infer({ model: critic, system: 'Judge.', prompt: 'Is it good?' })
      return ctx.withState((state) => state.withMetadata('said', `${text} ${totalTokens(ctx.spent)}`))
    }),
  )
  const run = await agent.run('go')
  assert.deepEqual([run.state.metadata['said'], totalTokens(run.state.usage)], ['fine 30', 30])
  assert.deepEqual([critic.requests[0]!.system, critic.requests[0]!.tools], ['Judge.', []])
})

test('ctx.infer takes messages and a prompt', async () => {
  const { critic, agent } = withCritic(
    ['x'],
    hook('onStop', async (ctx) => {
      await ctx.infer({ model: critic, messages: ctx.state.messages, prompt: 'Sum it up.' })
      return ctx
    }),
  )
  await agent.run('go')
  assert.deepEqual(
    critic.requests[0]!.messages.map(({ role, content }) => `${role}: ${textOf(content)}`),
    ['user: go', 'assistant: done', 'user: Sum it up.'],
  )
})

describe('a typed answer of ctx.infer', () => {
  const ask = (critic: ReturnType<typeof scriptedModel>) =>
    hook('onStop', async (ctx) => {
      const { output, usage } = await ctx.infer({ model: critic, prompt: 'Good?', output: Verdict })
      return ctx.withState((state) => state.withMetadata('verdict', { ...output, tokens: totalTokens(usage) }))
    })

  const forms = [
    ['tool', yes],
    ['native', '{"good": true}'],
    ['text', 'Sure:\n```json\n{"good": true}\n```'],
  ] as const
  for (const [form, says] of forms) {
    test(`is requested by ${form}`, async () => {
      const critic = { ...scriptedModel([says]), structuredOutput: form }
      const run = await createAgent({ model: scriptedModel(['done']), use: [ask(critic)] }).run('go')
      assert.deepEqual(run.state.metadata['verdict'], { good: true, tokens: 15 })
    })
  }

  test('that does not fit the schema is returned to the model once, with the problems', async () => {
    const critic = scriptedModel([bad, yes])
    const run = await createAgent({ model: scriptedModel(['done']), use: [ask(critic)] }).run('go')
    assert.deepEqual(run.state.metadata['verdict'], { good: true, tokens: 30 })
    assert.match(JSON.stringify(critic.requests[1]!.messages.at(-1)), /tool-result.*does not fit: good: /)
  })

  test('that never fits the schema is OUTPUT_INVALID', async () => {
    const critic = scriptedModel([bad, bad])
    const caught = hook('beforeStep', async (ctx) => {
      const failed = await ctx.infer({ model: critic, prompt: 'Good?', output: Verdict }).catch((error) => error)
      return ctx.stop((failed as { code: string }).code)
    })
    const run = await createAgent({ model: scriptedModel([]), use: [caught] }).run('go')
    assert.deepEqual([run.status, run.final?.message], ['stopped', 'OUTPUT_INVALID'])
  })
})

describe('limits', () => {
  const asks = (critic: ReturnType<typeof scriptedModel>, times = 1) =>
    hook(
      'beforeStep',
      async (ctx) => {
        for (let i = 0; i < times; i++) await ctx.infer({ model: critic, prompt: `${i}` })
        return ctx
      },
      { name: 'asks' },
    )

  test('on tokens include model calls of hooks, and stop the run', async () => {
    const critic = scriptedModel(() => 'x', { usage: { inputTokens: 50 } })
    const model = scriptedModel(() => 'done')
    const run = await createAgent({ model, use: [asks(critic, 9), guards({ maxTokens: 100 })] }).run('go')
    assert.deepEqual([critic.requests.length, model.requests.length], [2, 0])
    assert.deepEqual([run.status, run.final?.reason], ['stopped', 'tokenLimit'])
    assert.match(run.ledger.find((entry) => entry.hook === 'asks' && entry.error)!.error!, /"guards.maxTokens" forbade/)
  })

  test('stop the run also when the hook catches the error', async () => {
    const critic = scriptedModel(() => 'x')
    const stubborn = hook('beforeStep', async (ctx) => {
      await ctx.infer({ model: critic, prompt: 'x' }).catch(() => undefined)
      return ctx
    })
    const noCritics = guard(
      'beforeInference',
      (ctx) => (ctx.request.model.modelId === 'script' ? ctx.stop('No other model is called.') : ctx),
      { name: 'policy' },
    )
    const run = await createAgent({
      model: scriptedModel(['done'], { modelId: 'own' }),
      use: [stubborn, noCritics],
    }).run('go')
    assert.deepEqual([critic.requests.length, run.status, run.final?.by], [0, 'stopped', 'policy'])
  })

  test('on cost and on time apply to model calls of hooks', async () => {
    const unpriced = { ...scriptedModel(['x']), cost: 'unknown' as const }
    const dear = await createAgent({
      model: scriptedModel([]),
      use: [asks(unpriced as never), guards({ maxCost: 1 })],
    }).run('go')
    assert.equal(dear.final?.reason, 'costLimit')
    const slow = scriptedModel([{ text: 'x', delayMs: 2 ** 30 }])
    const late = await createAgent({ model: scriptedModel([]), use: [asks(slow), guards({ maxTimeMs: 50 })] }).run('go')
    assert.equal(late.final?.reason, 'timeLimit')
  })

  test('count concurrent calls', async () => {
    const critic = scriptedModel(() => ({ text: 'x', delayMs: 5 }))
    const both = hook('beforeStep', async (ctx) => {
      await Promise.all([1, 2, 3].map((n) => ctx.infer({ model: critic, prompt: `${n}` })))
      return ctx
    })
    await createAgent({ model: scriptedModel([]), use: [both, guards({ maxTokens: 5_000 })] }).run('go')
    assert.equal(critic.requests.length, 2) // the second is judged with an estimate of the first, the third with both
  })
})

test('a failed call rejects with its error, and is in the ledger and in the events', async () => {
  const { critic, agent } = withCritic(
    [{ error: 'down' }],
    hook(
      'onStop',
      async (ctx) => {
        const why = await ctx.infer({ model: critic, prompt: 'x' }).then(
          ({ text }) => text,
          (error: Error) => error.message,
        )
        return ctx.withState((state) => state.withMetadata('why', why))
      },
      { name: 'judge' },
    ),
  )
  const { run, of } = await recordEvents(agent.stream('go'))
  assert.equal(run.state.metadata['why'], 'down')
  assert.deepEqual(entries(run, 'judge')[0], ['inferenceFailed', 'scripted/critic: down'])
  assert.deepEqual(
    of('inferenceStarted').map(({ model, hook: by }) => [model, by]),
    [
      ['scripted/script', undefined],
      ['scripted/critic', 'judge'],
    ],
  )
  assert.deepEqual(
    of('inferenceFailed').map(({ hook: by }) => by),
    ['judge'],
  )
})

test('the ledger has the hook and the model of a call, and explain reads it', async () => {
  const { critic, agent } = withCritic(
    ['x'],
    guard(
      'onStop',
      async (ctx) => ((await ctx.infer({ model: critic, prompt: 'x' })).text === 'x' ? ctx : ctx.stop('no')),
      { name: 'judge' },
    ),
  )
  const run = await agent.run('go')
  assert.deepEqual(entries(run, 'judge'), [['inferred', 'scripted/critic: 15 tokens']])
  assert.deepEqual(explanation(run).blocked, [])
})

test('a cancel aborts the call', async () => {
  const signal = AbortSignal.timeout(30)
  const { critic, agent } = withCritic(
    [{ text: 'x', delayMs: 60_000 }],
    hook('beforeStep', async (ctx) => (await ctx.infer({ model: critic, prompt: 'x' })) && ctx),
  )
  const run = await agent.run('go', { signal })
  assert.equal(run.status, 'cancelled')
})

for (const how of ['live', 'recorded']) {
  test(`the time limit of a hook applies to a model call that it did not wait for, in a ${how} run`, async () => {
    const hanging = scriptedModel(() => new Promise<never>(() => undefined))
    const careless = hook(
      'beforeStep',
      (ctx) => {
        ctx.infer({ model: hanging, prompt: 'x' }).catch(() => undefined)
        return ctx
      },
      { name: 'careless', timeoutMs: 20 },
    )
    const agent = createAgent({ model: scriptedModel(['done']), use: [careless, guards({ maxTimeMs: 5_000 })] })
    const run = how === 'live' ? await agent.run('go') : (await recordedRun(agent, 'go')).run
    assert.equal(run.status === 'failed' && run.error.code, 'HOOK_TIMED_OUT')
  })
}

test('a hook and the calls that it did not wait for have one time limit together', async () => {
  const clock = fakeClock()
  const answering = scriptedModel(async () => {
    await clock.sleep(80)
    return 'x'
  })
  const careless = hook(
    'beforeStep',
    async (ctx) => {
      ctx.infer({ model: answering, prompt: 'x' }).catch(() => undefined)
      await clock.sleep(40)
      return ctx
    },
    { name: 'careless', timeoutMs: 50 },
  )
  const agent = createAgent({ model: scriptedModel(['done']), use: [careless] })
  const running = agent.run('go', { effects: liveEffects({ clock }) })
  for (let ms = 0; ms < 200; ms += 5) {
    await new Promise((resolve) => setImmediate(resolve))
    await clock.advance(5)
  }
  const run = await running
  assert.equal(run.status === 'failed' && run.error.code, 'HOOK_TIMED_OUT')
})

test('the run waits for a call that its hook did not wait for', async () => {
  const { critic, agent } = withCritic(
    [{ text: 'x', delayMs: 20 }, { error: 'down' }],
    hook('beforeStep', (ctx) => {
      void ctx.infer({ model: critic, prompt: 'x' })
      void ctx.infer({ model: critic, prompt: 'y' })
      return ctx
    }),
  )
  const run = await agent.run('go')
  assert.deepEqual([run.status, totalTokens(run.state.usage)], ['completed', 30])
})

test('a call that is aborted because the hook failed is counted with an estimate', async () => {
  const { critic, agent } = withCritic(
    [{ text: 'x', delayMs: 60_000 }, { error: 'down' }],
    hook('beforeStep', async (ctx) => {
      await Promise.all(['slow', 'broken'].map((prompt) => ctx.infer({ model: critic, prompt })))
      return ctx
    }),
  )
  const run = await agent.run('go')
  assert.equal(run.status, 'failed')
  assert.ok(totalTokens(run.state.usage) > 4_000)
})

test('a hook that has ended, a hook with an effect, a shadow hook and a check of a partial answer call no model', async () => {
  const why: string[] = []
  const keep = (error: unknown): void => void why.push((error as Error).message)
  const [inStep, late] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const { critic, agent } = withCritic(
    [],
    hook('beforeExecution', (ctx) => {
      late.resolve(inStep.promise.then(() => ctx.infer({ prompt: 'late' })).then(() => undefined, keep))
      return ctx
    }),
    hook(
      'beforeStep',
      async (ctx) => {
        await ctx.infer({ prompt: 'x' }).catch(keep)
        inStep.resolve()
        await late.promise
        return ctx
      },
      { name: 'effect', effect: true },
    ),
    shadow(guard('afterStep', async (ctx) => (await ctx.infer({ prompt: 'x' }).catch(keep), ctx), { name: 'shade' })),
  )
  assert.equal((await agent.run('go')).status, 'completed')
  assert.equal(critic.requests.length, 0)
  assert.deepEqual(
    why.map((each) => /effect|ended|shadow/.exec(each)?.[0]),
    ['effect', 'ended', 'shadow'],
  )
})

test('fire() lets a hook call the given model', async () => {
  const judge = guard('onStop', async (ctx) =>
    (await ctx.infer({ prompt: 'x' })).text === 'no' ? ctx.stop('no') : ctx,
  )
  const outcome = await fire(judge, 'onStop', { model: scriptedModel(['no']) })
  assert.deepEqual([outcome.votes?.[0]?.message, outcome.spent?.inputTokens], ['no', 10])
  assert.match(JSON.stringify(await fire(judge, 'onStop')), /was given no model/)
})

test('an unknown option, an empty request and an unknown model are rejected with a message', async () => {
  const said: string[] = []
  const asks = hook('beforeStep', async (ctx) => {
    for (const asked of [{ promt: 'x' }, {}, { prompt: 'x', model: 'nonsense' }, { prompt: 'x', output: 7 }]) {
      await ctx.infer(asked as never).catch((error: Error) => said.push(error.message))
    }
    return ctx
  })
  await createAgent({ model: scriptedModel(['done']), use: [asks] }).run('go')
  assert.deepEqual(
    said.map((each) => /"promt"|"prompt" or "messages" is required|nonsense|cannot be converted/.exec(each)?.[0]),
    ['"promt"', '"prompt" or "messages" is required', 'nonsense', 'cannot be converted'],
  )
})

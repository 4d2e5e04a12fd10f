import assert from 'node:assert/strict'
import { setImmediate as soon, setTimeout as delay } from 'node:timers/promises'
import { suite, test } from 'node:test'
import type { LanguageModelV4 } from '@ai-sdk/provider'
import { approval } from '../../capabilities/approval.ts'
import { errorPolicy } from '../../capabilities/error-policy.ts'
import { guards } from '../../capabilities/guards.ts'
import { retry } from '../../capabilities/retry.ts'
import { createAgent } from '../../create-agent.ts'
import type { LanguageModel, RequestChange } from '../state/inference.ts'
import type { SavedRun } from '../state/saved-run.ts'
import type { TokenUsage } from '../state/usage.ts'
import { AgentError } from '../../errors.ts'
import { guard, hook } from '../hooks/hook.ts'
import type { GuardTrigger, PlainTrigger } from '../hooks/triggers.ts'
import { scriptedModel, type Script } from '../../models/scripted.ts'
import { recordEvents } from '../../testing/record-events.ts'
import type { Use } from '../agent/capability.ts'
import { tool, type ToolRun } from '../agent/tool.ts'
import { replayedRun } from '../../sessions/replay/replayed-run.fixture.ts'

const dollar = { costUsd: 1 }
const call = { toolCalls: [{ name: 'work' }] }
const busy = { error: new AgentError('MODEL_OVERLOADED', 'busy') }
const again = retry({ backoffMs: 0 })

/** A model whose calls cost nothing, so that only other usage is counted. */
function freeModel(script: Script) {
  return scriptedModel(script, { usage: { inputTokens: 0, outputTokens: 0 } })
}

type Working = (run: ToolRun) => unknown
type ToolOptions = { readonly timeoutMs?: number; readonly concurrent?: boolean; readonly ask?: boolean }

function work(execute: Working = () => 'worked', options: ToolOptions = {}) {
  const input = { type: 'object' }
  return tool({ name: 'work', description: 'Works.', input, execute: (_args, run) => execute(run), ...options })
}

const paying: Working = ({ spend }) => {
  spend(dollar)
  return 'worked'
}

function agentOn(script: Script, ...use: readonly Use[]) {
  const model = freeModel(script)
  return { model, agent: createAgent({ model, use }) }
}

async function costOf(script: Script, ...use: readonly Use[]): Promise<number> {
  return (await agentOn(script, ...use).agent.run('go')).state.usage.costUsd
}

/** The cost of a run that replays. */
async function costOfReplayed(script: Script, ...use: readonly Use[]): Promise<number> {
  return (await replayedRun(agentOn(script, ...use).agent, 'go')).state.usage.costUsd
}

// ── hooks and guards

suite('usage reported by a hook is counted once, also if its step runs again after a suspension, at', () => {
  /** A run that fires every trigger: it is suspended, resumed elsewhere, and recovers from an error. */
  const passAll = async (spender: Use): Promise<number> => {
    const script = [call, { error: 'hiccup' }, 'Done.']
    const { agent } = agentOn(
      script,
      work(undefined, { ask: true }),
      approval('suspend'),
      errorPolicy('tolerant'),
      spender,
    )
    const waiting = await agent.run('go')
    assert.ok(waiting.status === 'suspended')
    const saved = JSON.parse(JSON.stringify(waiting)) as SavedRun
    const run = await agent.resume(saved, { answers: { [waiting.pending[0]!.id]: 'allow' } })
    assert.equal(run.status, 'completed')
    return run.state.usage.costUsd
  }
  const triggers: readonly PlainTrigger[] = [
    'onUserInput',
    'beforeExecution',
    'beforeStep',
    'beforeInference',
    'afterInference',
    'beforeToolUse',
    'onPause',
    'onResume',
    'afterToolUse',
    'onError',
    'afterStep',
    'onStop',
    'afterExecution',
  ]
  const unguarded: readonly PlainTrigger[] = ['onPause', 'onResume', 'onError', 'afterExecution']
  for (const trigger of triggers) {
    test(trigger, async () => {
      let fired = 0
      const effect = await passAll(
        hook(trigger, (ctx) => (fired++, ctx.spend(dollar)), { name: 'spender', effect: true }),
      )
      assert.deepEqual([effect > 0, effect], [true, fired]) // an effect is not performed again
      assert.equal(await passAll(hook(trigger, (ctx) => ctx.spend(dollar))), effect)
      assert.equal(await passAll(hook(trigger, async (ctx) => ctx.spend(await delay(1, dollar)))), effect)
      if (unguarded.includes(trigger)) return
      const times = trigger === 'beforeToolUse' ? 2 : 1 // guards judge a call again that was asked about
      assert.equal(await passAll(guard(trigger as GuardTrigger, (ctx) => ctx.spend(dollar))), effect * times)
    })
  }
})

test('amounts add up; negative, infinite and non-number amounts are ignored', async () => {
  const odd = [-1, Number.NaN, Infinity, -Infinity, '7', null] as unknown as readonly number[]
  const spender = hook('beforeStep', (ctx) => {
    const paid = ctx.spend({ inputTokens: 3, costUsd: 0.5 }).spend({ inputTokens: 4, reasoningTokens: 2 })
    return odd.reduce((each, amount) => each.spend({ costUsd: amount, outputTokens: amount }), paid)
  })
  const { usage } = (await agentOn(['Done.'], spender).agent.run('go')).state
  const { inputTokens, outputTokens, reasoningTokens, costUsd } = usage
  assert.deepEqual([inputTokens, outputTokens, reasoningTokens, costUsd], [7, 0, 2, 0.5])
})

test('only usage on the returned context counts', async () => {
  const forgets = hook('beforeStep', (ctx) => (ctx.spend(dollar), ctx))
  assert.equal(await costOf(['Done.'], forgets), 0)
})

test('a hook may decide and report usage', async () => {
  const judge = guard('beforeToolUse', (ctx) => ctx.spend(dollar).block('No.'), { name: 'judge' })
  const run = await agentOn([call, 'Done.'], work(), judge).agent.run('go')
  const step = run.state.execution!.steps.at(0)!
  assert.deepEqual([run.state.usage.costUsd, step.toolExecutions[0]!.status], [1, 'blocked'])
})

test('a hook sees the usage that earlier hooks reported', async () => {
  const seen: number[] = []
  const look = guard('beforeInference', (ctx) => (seen.push(ctx.spent.costUsd), ctx))
  const pay = hook('beforeInference', (ctx) => ctx.spend(dollar))
  await costOf([call, 'Done.'], work(), pay, look)
  assert.deepEqual(seen, [1, 2])
})

for (const trigger of ['afterInference', 'afterToolUse', 'afterStep', 'beforeStep'] as const) {
  test(`a limit includes usage from ${trigger} before the next call is made`, async () => {
    const critic = hook(trigger, (ctx) => ctx.spend({ costUsd: 1, inputTokens: 100 }))
    for (const limit of [{ maxCost: 1 }, { maxTokens: 100 }]) {
      const { agent, model } = agentOn([call, call, call], work(), critic, guards(limit))
      const run = await agent.run('go')
      assert.deepEqual([run.status, model.requests.length], ['stopped', trigger === 'beforeStep' ? 0 : 1])
    }
  })
}

test('usage of a hook with an effect is the same in a replay, where the hook does not run', async () => {
  let ran = 0
  const ask = hook('beforeStep', async (ctx) => ctx.spend(await delay(1, (ran++, dollar))), {
    name: 'ask',
    effect: true,
  })
  assert.deepEqual([await costOfReplayed([call, 'Done.'], work(), ask), ran], [2, 2])
})

test('when a trigger is retried, usage of a hook with an effect is counted once', async () => {
  let failed = false
  const script = () => ((failed = false), ['Done.'])
  const pay = (effect: boolean) => hook('beforeStep', async (ctx) => ctx.spend(dollar), { name: 'pay', effect })
  const fails = hook('beforeStep', (ctx) => (failed ? ctx : ((failed = true), assert.fail('once'))), { priority: -1 })
  const policy = errorPolicy({ backoffMs: 0 })
  assert.equal(await costOf(script(), pay(true), fails, policy), 1)
  assert.equal(await costOf(script(), pay(false), fails, policy), 2) // this one ran twice
})

// ── around and inside a model call

test('usage of a guard is counted for every attempt it judges, also in a replay', async () => {
  const judge = guard('beforeInference', (ctx) => ctx.spend(dollar))
  assert.equal(await costOfReplayed([busy, busy, 'Done.'], judge, again), 3)
})

test('at a further attempt a limit includes usage that an earlier guard just reported', async () => {
  const judge = guard('beforeInference', (ctx) => ctx.spend(dollar), { priority: 900 })
  const { agent, model } = agentOn([busy, busy, 'Done.'], judge, guards({ maxCost: 2 }), again)
  const run = await agent.run('go')
  assert.deepEqual([run.status, model.requests.length], ['stopped', 1])
})

suite('usage of guards that judge a streamed answer', () => {
  const text = 'word '.repeat(120)
  const cut = { chunks: [text], delayMs: 5, error: new AgentError('MODEL_UNREACHABLE', 'cut') }
  const fine = { chunks: [text], delayMs: 5 }
  const costs: readonly (readonly [string, Script, readonly Use[]])[] = [
    ['once', [fine], []],
    ['once, with hooks around the call', [fine], [again]],
    ['for every attempt', [cut, fine], [again]],
    ['for every attempt that onError asks for', [cut, fine], [errorPolicy({ backoffMs: 0 })]],
    ['for all of both', [cut, cut, cut, fine], [errorPolicy({ backoffMs: 0 }), again]],
    ['for a call that came to nothing', [cut], []],
  ]
  for (const [how, script, use] of costs) {
    test(`is counted ${how}`, async () => {
      let looks = 0
      const look = guard('afterInference', (ctx) => (looks++, ctx.spend(dollar)), { stream: 'window' })
      const { run } = await recordEvents(agentOn(script, look, ...use).agent.stream('go'))
      assert.deepEqual([looks > 0, run.state.usage.costUsd], [true, looks])
    })
  }
})

// ── tools

const endings: readonly (readonly [string, Working, ToolOptions])[] = [
  ['ends well', paying, {}],
  ['ends later', async (run) => (await delay(1), paying(run)), {}],
  ['fails', (run) => (paying(run), assert.fail('no luck')), {}],
  [
    'times out',
    (run) => (paying(run), new Promise((end) => run.signal.addEventListener('abort', () => end('late')))),
    { timeoutMs: 20 },
  ],
  ['times out and ignores its signal', (run) => (paying(run), new Promise(() => undefined)), { timeoutMs: 5 }],
  ['returns a value that is not JSON', (run) => (paying(run), 1n), {}],
]
for (const [how, execute, options] of endings) {
  test(`usage of a tool that ${how} is counted, also in a replay`, async () => {
    assert.equal(await costOfReplayed([call, 'Done.'], work(execute, options)), 1)
  })
}

test('usage of a tool counts when its result is withheld, and when the run is cancelled', async () => {
  const hush = guard('afterToolUse', (ctx) => ctx.block('No.'))
  assert.equal(await costOf([call, 'Done.'], work(paying), hush), 1)
  const cancel = new AbortController()
  const late = work((run) => (paying(run), cancel.abort(), delay(60_000, 'late', { signal: run.signal })))
  const run = await agentOn([call], late).agent.run('go', { signal: cancel.signal })
  assert.deepEqual([run.status, run.state.usage.costUsd], ['cancelled', 1])
})

test('usage of a tool that a hook retries is counted each time, whatever the hook returns', async () => {
  const twice = hook('aroundToolUse', async (_ctx, next) => (await next(), next()))
  const gone = hook('aroundToolUse', async (_ctx, next) => (await next(), { status: 'ok', output: 'mine' }))
  const throws = hook('aroundToolUse', async (_ctx, next) => (await next(), assert.fail('no')))
  for (const [around, cost] of [
    [twice, 2],
    [gone, 1],
    [throws, 1],
  ] as const) {
    assert.equal(await costOfReplayed([call, 'Done.'], work(paying), around), cost)
  }
})

test('usage of a tool counts when the hook around it did not wait for it', async () => {
  const impatient = hook('aroundToolUse', (_ctx, next) => next(), { timeoutMs: 20 })
  assert.equal(
    await costOf(
      [call, 'Done.'],
      work((run) => (paying(run), delay(80))),
      impatient,
    ),
    1,
  )
})

test('a result that a hook substitutes for a call cannot have negative cost', async () => {
  const usage = { costUsd: -5, inputTokens: 'many' } as unknown as TokenUsage
  const substitute = hook('aroundToolUse', async () => ({ status: 'ok', output: 'mine', usage }))
  const { usage: spent } = (await agentOn([call, 'Done.'], work(), substitute).agent.run('go')).state
  assert.deepEqual([spent.costUsd, spent.inputTokens], [0, 0])
})

test('usage of tools that run concurrently is counted one by one', async () => {
  const calls = { toolCalls: Array.from({ length: 9 }, () => ({ name: 'work' })) }
  const slow = work(async (run) => (await delay(Math.random() * 5), paying(run)), { concurrent: true })
  assert.equal(await costOfReplayed([calls, 'Done.'], slow), 9)
})

test('a limit includes usage of a tool before the next model call', async () => {
  const spends = work(({ spend }) => (spend({ costUsd: -9 }), spend({ costUsd: 1, outputTokens: 100 })))
  for (const limit of [{ maxCost: 1 }, { maxTokens: 100 }]) {
    const { agent, model } = agentOn([call, call, call], spends, guards(limit))
    assert.deepEqual([(await agent.run('go')).status, model.requests.length], ['stopped', 1])
  }
})

// ── concurrent attempts

/** Calls the model that many times concurrently, and returns the first response. */
function atOnce(times: number, change?: RequestChange): Use {
  return hook('aroundInference', (_ctx, next) =>
    Promise.any(Array.from({ length: times }, () => (change === undefined ? next() : next(change)))),
  )
}

/** Limits that allow that many calls, each estimated at a thousand output tokens. */
const limitedTo = (calls: number) => guards({ maxTokens: (calls - 1) * 1_000 + 500 })
const settings = { maxOutputTokens: 1_000 }

for (const change of [undefined, { system: 'Be quick.' }]) {
  for (const times of [2, 3, 5]) {
    test(`the usage of ${times} concurrent attempts${change ? ' that differ from the request' : ''} counts for each of them`, async () => {
      const slow = () => ({ text: 'Done.', delayMs: 5 })
      for (const allowed of [1, times - 1, times]) {
        const model = scriptedModel(slow)
        await createAgent({ model, settings, use: [atOnce(times, change), limitedTo(allowed)] }).run('go')
        await delay(10)
        assert.equal(model.requests.length, allowed)
      }
    })
  }
}

test('attempts that the hook did not wait for are counted with an upper estimate, and a warning says so', async () => {
  const perToken: LanguageModel['cost'] = ({ inputTokens, outputTokens }) => (inputTokens + outputTokens) / 1_000
  const answers = [new Promise<never>(() => undefined), 'Done.']
  const model = { ...scriptedModel(() => answers.shift()!, { usage: { costUsd: 0.015 } }), cost: perToken }
  const race = hook('aroundInference', (_ctx, next) => Promise.race([next(), next()]))
  const run = await createAgent({ model, settings, use: [race] }).run('go')
  const { outputTokens, inputTokens, costUsd } = run.state.usage
  const guessed = inputTokens - 10 // from the length of the conversation
  assert.equal(run.warnings[0]?.code, 'USAGE_ESTIMATED')
  assert.deepEqual([outputTokens, guessed > 0 && guessed < 100], [1_005, true])
  assert.ok(Math.abs(costUsd - (0.015 + (1_000 + guessed) / 1_000)) < 1e-9, `${costUsd}`)
})

test('attempts that the hook waited for are counted with their actual usage', async () => {
  const all = hook('aroundInference', async (_ctx, next) => (await Promise.all([next(), next(), next()]))[0])
  const { usage } = (await createAgent({ model: scriptedModel(() => 'Done.'), use: [all] }).run('go')).state
  assert.deepEqual([usage.inputTokens, usage.outputTokens], [30, 15])
})

test('an attempt that guards still judge when another has answered is not made', async () => {
  const [answered, judged] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let asked = 0
  const slow = guard('beforeInference', async (ctx) => {
    if (asked++ === 1) judged.resolve(await answered.promise)
    return ctx
  })
  const { agent, model } = agentOn(
    [call, 'Done.'],
    work(() => (answered.resolve(), judged.promise.then(() => soon()))), // the second attempt would be made now
    slow,
    atOnce(2),
    guards({ maxSteps: 1 }),
  )
  assert.deepEqual([(await agent.run('go')).state.stepCount, model.requests.length], [1, 1])
})

// ── prices of models

test('a model with prices is billed by them', async () => {
  const model: LanguageModel = { ...scriptedModel(() => 'Done.'), cost: ({ outputTokens }) => outputTokens / 10 }
  assert.equal((await createAgent({ model }).run('go')).state.usage.costUsd, 0.5)
})

function sdkModel(): LanguageModelV4 & { asked: number } {
  const model = {
    specificationVersion: 'v4' as const,
    provider: 'acme.chat',
    modelId: 'big',
    supportedUrls: {},
    asked: 0,
    doStream: () => Promise.reject(new Error('not streamed')),
    doGenerate: async () => ({
      content: [{ type: 'text' as const, text: `Answer ${++model.asked}.` }],
      finishReason: { unified: 'stop' as const, raw: undefined },
      usage: {
        inputTokens: { total: 1_000, noCache: 1_000, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 500, text: 500, reasoning: 0 },
      },
      warnings: [],
    }),
  }
  return model
}

test('with maxCost, a model without a price is not called, and the error says what to do', async () => {
  const model = sdkModel()
  const run = await createAgent({ model, use: [guards({ maxCost: 5 })] }).run('go')
  assert.ok(run.status === 'stopped')
  assert.deepEqual([run.reason, run.by, model.asked], ['costLimit', 'guards.maxCost', 0])
  assert.match(run.final.message, /acme\/big.*createAgent\(\{ prices: \{ 'acme\/big': \{ input, output \} \} \}\)/)
})

test('without maxCost, a model without a price is called', async () => {
  assert.equal((await createAgent({ model: sdkModel() }).run('go')).status, 'completed')
})

test('with maxCost, a model with a price is called until the limit is reached', async () => {
  const model = sdkModel()
  const prices = { 'acme/big': { input: 1_000, output: 2_000 } }
  const more = hook('onStop', (ctx) => ctx.requestContinuation('More.'))
  const run = await createAgent({ model, prices, use: [guards({ maxCost: 4 }), more] }).run('go')
  assert.deepEqual([run.status === 'stopped' && run.by, model.asked], ['guards.maxCost', 2])
  assert.equal(run.state.usage.costUsd, 4)
})

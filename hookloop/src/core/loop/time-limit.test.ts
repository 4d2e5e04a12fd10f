import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { approval } from '../../capabilities/approval.ts'
import { guards } from '../../capabilities/guards.ts'
import { retry } from '../../capabilities/retry.ts'
import { createAgent } from '../../create-agent.ts'
import { agentTool } from '../agent/agent-tool.ts'
import { tool } from '../agent/tool.ts'
import type { LanguageModel } from '../state/inference.ts'
import { guard } from '../hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { fakeClock } from '../../testing/fake-clock.ts'
import { liveEffects } from '../effects/effects.ts'
import { explanation } from '../explain/explanation.ts'
import { replayedRun } from '../../sessions/replay/replayed-run.fixture.ts'

/** Never replies and ignores its signal. Like a socket, the timer keeps the process alive. */
const deaf: LanguageModel = {
  provider: 'test',
  modelId: 'deaf',
  infer: async () => {
    await delay(2_000)
    return { content: [{ type: 'text', text: 'Too late.' }], finishReason: 'stop' }
  },
}

for (const how of ['run', 'stream'] as const) {
  test(`a model call is aborted when the run times out (${how})`, async () => {
    const chunks = Array.from({ length: 500 }, () => 'word ')
    const model = scriptedModel([{ chunks, delayMs: how === 'run' ? 5_000 : 20 }])
    const agent = createAgent({ model, use: [guards({ maxTimeMs: 60 })] })
    const run = await (how === 'run' ? agent.run('Go.') : agent.stream('Go.').run)
    assert.equal(run.status, 'stopped')
    assert.deepEqual(run.final.reason, 'timeLimit')
  })
}

test('a model that ignores its signal is abandoned as well, and not called again', async () => {
  const clock = fakeClock()
  const infer = (): Promise<never> => {
    setImmediate(() => void clock.advance(50))
    return new Promise(() => undefined)
  }
  const use = [guards({ maxTimeMs: 50 }), retry({ backoffMs: 1 })]
  const agent = createAgent({ model: { ...deaf, infer }, use })
  const run = await agent.run('Go.', { effects: liveEffects({ clock }) })
  const { decided, wayOn, failedAttempts } = explanation(run)
  assert.deepEqual([decided.by, decided.reason, failedAttempts.length], ['guards.maxTimeMs', 'timeLimit', 1])
  assert.match(wayOn ?? '', /maxTimeMs/)
})

test('of several time limits the shortest applies, and of equal ones the first', async () => {
  const long = guard('beforeInference', (ctx) => ctx.within(60_000), { name: 'long' })
  const short = guard('beforeInference', (ctx) => ctx.within(30), { name: 'short' })
  const same = guard('beforeInference', (ctx) => ctx.within(30), { name: 'same' })
  const run = await createAgent({ model: deaf, use: [long, short, same] }).run('Go.')
  assert.equal(run.status === 'stopped' && run.by, 'short')
})

test('a call that timed out times out in a replay', async () => {
  await replayedRun(createAgent({ model: deaf, use: [guards({ maxTimeMs: 40 })] }), 'Go.')
})

test('an invalid time limit fails closed', async () => {
  const odd = guard('beforeInference', (ctx) => ctx.within(Number.NaN), { name: 'odd' })
  const run = await createAgent({ model: scriptedModel(['Hi.']), use: [odd] }).run('Go.')
  assert.equal(run.status === 'stopped' && run.by, 'odd')
})

test('a question that the approver leaves open does not stop the time of what still runs beside it', async () => {
  const clock = fakeClock()
  const any = { description: 'Acts.', input: { type: 'object' } } as const
  const asks = tool({ name: 'asks', ...any, ask: true, execute: () => 'done' })
  const hangs = tool({
    name: 'hangs',
    ...any,
    execute: (_args, { signal }) =>
      new Promise<never>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  })
  const calls = (...names: readonly string[]) =>
    scriptedModel(({ messages }) => (messages.length < 2 ? { toolCalls: names.map((name) => ({ name })) } : 'Done.'))
  const delegates = [asks, hangs].map((does) => {
    const to = { name: does.name, to: createAgent({ model: calls(does.name), use: [does] }), input: 'Go.' }
    return agentTool({ name: `to_${does.name}`, ...any, concurrent: true, to: () => to })
  })
  const answer = async () => {
    await clock.sleep(30_000)
    return 'suspend' as const
  }
  const agent = createAgent({
    model: calls('to_asks', 'to_hangs'),
    use: [...delegates, guards({ maxTimeMs: 60_000 }), approval(answer)],
  })
  const running = agent.run('Go.', { effects: liveEffects({ clock }) })
  let end: unknown
  void running.then(({ reason }) => (end = [reason, clock.now()]))
  for (let i = 0; i < 60; i++) {
    await new Promise((resolve) => setImmediate(resolve))
    await clock.advance(5_000)
  }
  assert.deepEqual(end, ['timeLimit', 90_000])
})

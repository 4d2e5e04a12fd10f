import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as z from 'zod'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import { totalTokens } from '../state/usage.ts'
import { guard, hook } from '../hooks/hook.ts'
import { scriptedModel, type Script } from '../../models/scripted.ts'
import { replay } from '../../sessions/replay/replay.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import type { Hook } from '../hooks/hook.ts'
import type { Use } from '../agent/capability.ts'
import { recordedRun, replayedRun } from '../../sessions/replay/replayed-run.fixture.ts'

const Verdict = z.object({ good: z.boolean() })
const yes = { toolCalls: [{ name: 'final_answer', args: { good: true } }] }
const bad = { toolCalls: [{ name: 'final_answer', args: { good: 'very' } }] }

describe('a record', () => {
  const use = (critic: ReturnType<typeof scriptedModel>): readonly Use[] => [
    hook('onUserInput', async (ctx) => ctx.withInput((await ctx.infer({ model: critic, prompt: 'x' })).text)),
    guard(
      'onStop',
      async (ctx) => {
        const { output } = await ctx.infer({ model: critic, prompt: 'Good?', output: Verdict })
        return output.good ? ctx : ctx.stop('no')
      },
      { name: 'judge' },
    ),
  ]
  const script = (): Script => ['rewritten', bad, yes]

  test('answers a replay, which calls no model and gives the same run', async () => {
    const critic = scriptedModel(script())
    await replayedRun(createAgent({ model: scriptedModel(['done']), use: use(critic) }), 'go')
    assert.equal(critic.requests.length, 3)
  })

  test('of another request ends the replay, even if the hook catches the error', async () => {
    const model = scriptedModel(['x', 'done'])
    const asks = (prompt: string): Hook =>
      hook('beforeStep', async (ctx) => {
        await ctx.infer({ prompt }).catch(() => undefined)
        return ctx
      })
    const { store } = await recordedRun(createAgent({ model, use: [asks('this')] }), 'go')
    const { record } = await replay((await store.read('s'))!, { agent: createAgent({ model, use: [asks('that')] }) })
    assert.equal(record.status, 'diverged')
  })

  test('of a hook that timed out replays', async () => {
    const critic = scriptedModel(['x', { text: 'y', delayMs: 60_000 }])
    const slow = hook(
      'beforeStep',
      async (ctx) => {
        await ctx.infer({ model: critic, prompt: 'quick' })
        await ctx.infer({ model: critic, prompt: 'slow' })
        return ctx
      },
      { name: 'slow', timeoutMs: 40, onFailure: 'continue' },
    )
    const agent = createAgent({ model: scriptedModel(['done']), use: [slow, guards({ maxTokens: 9_999 })] })
    const run = await replayedRun(agent, 'go')
    assert.ok(totalTokens(run.state.usage) > 4_000, 'what was cut off is counted with a guess')
  })

  test('of a session answers other hooks with the same request, and hooks with a new request stay undecided', async () => {
    const store = memoryStore()
    const critic = scriptedModel(script())
    const agent = createAgent({ model: scriptedModel(['done']), use: use(critic), store })
    await agent.run('go', { session: 's' })
    const asks = (prompt: string): Hook =>
      guard(
        'onStop',
        async (ctx) => {
          const good = await ctx.infer({ model: critic, prompt, output: Verdict }).then(
            ({ output }) => output.good,
            () => false,
          )
          return good ? ctx.stop('Too good.') : ctx.stop('Bad.')
        },
        { name: 'judge' },
      )
    const judged = async (prompt: string) => {
      const { differences, divergesAt } = await replay((await store.read('s'))!, { agent, hooks: [asks(prompt)] })
      return [differences.map(({ would }) => JSON.stringify(would)).join(), divergesAt?.why ?? ''] as const
    }
    assert.match((await judged('Good?'))[0], /Too good/)
    const [would, why] = await judged('Otherwise?')
    assert.doesNotMatch(would, /Bad|failed/)
    assert.match(why, /judge/)
  })
})

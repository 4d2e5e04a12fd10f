import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as z from 'zod'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import { totalTokens } from '../../state/usage.ts'
import { guard, hook } from '../../hooks/hook.ts'
import { scriptedModel, type Script } from '../../models/scripted.ts'
import { replay } from '../../sessions/replay/replay.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import { recordEffects } from '../../effects/record-effects.ts'
import { memoryRecording } from '../../effects/recording.ts'
import { replayEffects } from '../../effects/replay-effects.ts'
import type { Hook } from '../../hooks/hook.ts'
import type { Use } from '../capability.ts'
import type { Run } from '../run.ts'

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
    const recording = memoryRecording()
    const critic = scriptedModel(script())
    const first = await createAgent({ model: scriptedModel(['done']), use: use(critic) }).run('go', {
      effects: recordEffects(recording),
    })
    const silent = createAgent({ model: scriptedModel([]), use: use(scriptedModel([])) })
    const again = await silent.run('go', { effects: replayEffects(recording) })
    assert.deepEqual(JSON.parse(JSON.stringify(again.state)), JSON.parse(JSON.stringify(first.state)))
    assert.deepEqual(again.ledger.map(withoutTime), first.ledger.map(withoutTime))
  })

  test('of another request ends the run, even if the hook catches the error', async () => {
    const recording = memoryRecording()
    const asks = (prompt: string): Hook =>
      hook('beforeStep', async (ctx) => {
        await ctx.infer({ prompt }).catch(() => undefined)
        return ctx
      })
    await createAgent({ model: scriptedModel(['x', 'done']), use: [asks('this')] }).run('go', {
      effects: recordEffects(recording),
    })
    const run = await createAgent({ model: scriptedModel([]), use: [asks('that')] }).run('go', {
      effects: replayEffects(recording),
    })
    assert.equal(run.status === 'failed' && run.error.code, 'REPLAY_DIVERGED')
  })

  test('of a hook that timed out replays to the same state', async () => {
    const recording = memoryRecording()
    const slow = (critic: ReturnType<typeof scriptedModel>): Use =>
      hook(
        'beforeStep',
        async (ctx) => {
          await ctx.infer({ model: critic, prompt: 'quick' })
          await ctx.infer({ model: critic, prompt: 'slow' })
          return ctx
        },
        { name: 'slow', timeoutMs: 40, onFailure: 'continue' },
      )
    const critic = scriptedModel(['x', { text: 'y', delayMs: 60_000 }])
    const first = await createAgent({
      model: scriptedModel(['done']),
      use: [slow(critic), guards({ maxTokens: 9_999 })],
    }).run('go', {
      effects: recordEffects(recording),
    })
    assert.ok(totalTokens(first.state.usage) > 4_000, 'what was cut off is counted with a guess')
    const again = await createAgent({
      model: scriptedModel([]),
      use: [slow(scriptedModel([])), guards({ maxTokens: 9_999 })],
    }).run('go', {
      effects: replayEffects(recording),
    })
    assert.deepEqual(JSON.parse(JSON.stringify(again.state)), JSON.parse(JSON.stringify(first.state)))
    assert.deepEqual(again.ledger.map(withoutTime), first.ledger.map(withoutTime))
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

function withoutTime({ durationMs: _ms, ...entry }: Run['ledger'][number]) {
  return entry
}

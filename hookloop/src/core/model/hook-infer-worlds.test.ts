import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import { textOf } from '../state/message.ts'
import type { HookContext } from '../hooks/context.ts'
import { guard, hook } from '../hooks/hook.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import type { Use } from '../agent/capability.ts'
import { tool } from '../agent/tool.ts'
import { recordedRun } from '../../sessions/replay/replayed-run.fixture.ts'
import { strictReplay } from '../../sessions/replay/strict-replay.fixture.ts'

// Random worlds in which hooks call models in every possible way. A replay always reports the same.

const triggers = [
  'onUserInput',
  'beforeExecution',
  'beforeStep',
  'beforeInference',
  'afterInference',
  'beforeToolUse',
  'afterToolUse',
  'afterStep',
  'onStop',
  'afterExecution',
] as const
const ways = ['one', 'two', 'together', 'unheard', 'caught', 'typed', 'slow'] as const

const worlds = fc.record({
  askers: fc.array(
    fc.record({
      trigger: fc.constantFrom(...triggers),
      way: fc.constantFrom(...ways),
      judges: fc.boolean(),
      goesOn: fc.boolean(),
    }),
    { minLength: 1, maxLength: 4 },
  ),
  /** Every n-th call fails, or none. */
  failsEvery: fc.constantFrom(0, 2, 3, 5),
  maxTokens: fc.constantFrom(60, 120, 9_000, 100_000),
  retries: fc.boolean(),
})
type World = typeof worlds extends fc.Arbitrary<infer W> ? W : never

const look = tool({ name: 'look', description: 'Looks.', input: { type: 'object' }, execute: () => 'a wall' })
const typed = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] }

function use({ askers, maxTokens, retries }: World, helper: ReturnType<typeof scriptedModel>): readonly Use[] {
  const ask = async (ctx: HookContext<'beforeStep'>, way: World['askers'][number]['way']): Promise<void> => {
    const infer = (prompt: string): Promise<unknown> =>
      ctx.infer({ model: helper, prompt: `${prompt} at ${ctx.trigger}` })
    if (way === 'one') await infer('one')
    if (way === 'two') await infer(JSON.stringify(await infer('first')))
    if (way === 'together') await Promise.all([infer('a'), infer('b'), infer('c')])
    if (way === 'unheard') void infer('not awaited')
    if (way === 'caught') await infer('whatever').catch(() => undefined)
    if (way === 'typed') await ctx.infer({ model: helper, prompt: 'typed', output: typed })
    if (way === 'slow') await infer('quick').then(() => infer('slow'))
  }
  const made = askers.map(({ trigger, way, judges, goesOn }, i): Use => {
    const handler = async (ctx: HookContext<'beforeStep'>): Promise<never> => (await ask(ctx, way), ctx as never)
    const options = { name: `asker ${i}`, ...(way === 'slow' && { timeoutMs: 25 }) }
    if (judges && trigger !== 'beforeInference' && trigger !== 'afterExecution')
      return guard(trigger as 'beforeStep', handler as never, options)
    return hook(trigger as 'beforeStep', handler as never, {
      ...options,
      ...(goesOn && { onFailure: 'continue' as const }),
    })
  })
  const patient = hook('onError', (ctx) => (ctx.consecutiveFailures < 3 ? ctx.retry() : ctx.ignore()), {
    name: 'patient',
  })
  return [look, guards({ maxTokens }), ...made, ...(retries ? [patient] : [])]
}

function modelsFor({ failsEvery }: World) {
  let [calls, steps] = [0, 0]
  const model = scriptedModel(() => (steps++ === 0 ? { toolCalls: [{ name: 'look' }] } : 'done'))
  const helper = scriptedModel(({ messages }): ScriptedTurn => {
    const text = textOf(messages.at(-1)!.content)
    if (text.startsWith('slow')) return { text: 'late', delayMs: 60_000 }
    if (failsEvery > 0 && ++calls % failsEvery === 0) return { error: 'down' }
    return text === 'typed' && calls % 2 === 0 ? 'no JSON' : { toolCalls: [{ name: 'final_answer', args: { n: 1 } }] }
  })
  return { model, helper }
}

test('for any model calls of hooks, a replay calls no model and reports the same', async () => {
  await fc.assert(
    fc.asyncProperty(worlds, async (world) => {
      const { model, helper } = modelsFor(world)
      const { store } = await recordedRun(createAgent({ model, use: use(world, helper) }), 'go')
      const silent = scriptedModel([])
      await strictReplay(createAgent({ model, use: use(world, silent) }), store, 's')
      assert.equal(silent.requests.length, 0)
    }),
    { numRuns: 150 },
  )
})

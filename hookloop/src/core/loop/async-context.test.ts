import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { setImmediate as soon } from 'node:timers/promises'
import { test } from 'node:test'
import { createAgent } from '../../create-agent.ts'
import { liveEffects, type EffectsOptions } from '../effects/effects.ts'
import { guard, hook, observe } from '../hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { fakeClock } from '../../testing/fake-clock.ts'
import type { Agent } from '../agent/agent.ts'
import type { Run } from '../agent/run.ts'
import { tool } from '../agent/tool.ts'

const storage = new AsyncLocalStorage<string>()

const names = ['beforeStep', 'beforeInference', 'afterInference', 'afterToolUse', 'afterStep', 'onStop'] as const
const places = [...names, 'aroundInference', 'tool', 'model', 'observer', 'left guard']

type Scene = {
  readonly agent: Agent
  /** Where code of the user ran, and with which value: `tool work a`. */
  readonly seen: Set<string>
  /** Ends the guards that were left behind. */
  readonly endGuards: () => void
}

/** Every first call of a run is blocked, because the time of a guard is up. The guard is left behind. */
function scene(): Scene {
  const seen = new Set<string>()
  const left: (() => void)[] = []
  const note = (where: string): void => void seen.add(`${where} ${storage.getStore() ?? 'nothing'}`)
  const work = tool({
    name: 'work',
    description: 'Works.',
    input: { type: 'object' },
    execute: async () => {
      await soon()
      note('tool')
      return 'worked'
    },
  })
  const stuck = guard(
    'beforeToolUse',
    async (ctx) => {
      if (ctx.state.stepCount > 0) return ctx
      await new Promise<void>((resolve) => left.push(resolve))
      note('left guard')
      return ctx
    },
    { name: 'stuck', timeoutMs: 5 },
  )
  const hooks = names.map((trigger) =>
    hook(trigger, (ctx) => {
      note(trigger)
      return ctx
    }),
  )
  const model = scriptedModel(({ messages }) => {
    note('model')
    return messages.filter(({ role }) => role === 'assistant').length < 2 ? { toolCalls: [{ name: 'work' }] } : 'Done.'
  })
  const around = hook('aroundInference', async (_ctx, next) => {
    const response = await next()
    note('aroundInference')
    return response
  })
  const watches = observe('afterExecution', () => note('observer'))
  return {
    agent: createAgent({ model, use: [work, stuck, around, watches, ...hooks] }),
    seen,
    endGuards: () => left.forEach((end) => end()),
  }
}

/** Two runs at the same time, each with a value of its own. */
async function runTwo({ agent, seen, endGuards }: Scene, effects?: EffectsOptions, move?: () => Promise<undefined>) {
  const start = (value: string): Promise<Run> =>
    storage.run(value, () => agent.run('Go.', effects === undefined ? {} : { effects }))
  const running = Promise.all([start('a'), start('b')])
  let runs: readonly Run[] | undefined
  while (runs === undefined) runs = await (move === undefined ? running : Promise.race([running, move()]))
  storage.run('another', endGuards)
  await soon()
  for (const run of runs) {
    const calls = [...run.state.execution!.steps].flatMap(({ toolExecutions }) => toolExecutions)
    assert.deepEqual([run.status, calls.map(({ status }) => status)], ['completed', ['blocked', 'ok']])
  }
  assert.deepEqual([...seen].toSorted(), places.flatMap((place) => [`${place} a`, `${place} b`]).toSorted())
}

test('hooks, tools and models have the AsyncLocalStorage of the caller after a guard timed out and was left behind', async () => {
  await runTwo(scene())
})

test('the same holds if one timer of another context ends the guards of all runs', async () => {
  const clock = fakeClock()
  await runTwo(scene(), liveEffects({ clock }), async () => {
    await soon()
    await storage.run('clock', () => clock.advance(1))
    return undefined
  })
})

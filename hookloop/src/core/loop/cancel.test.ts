import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { setImmediate as soon, setTimeout as delay } from 'node:timers/promises'
import { approval } from '../../capabilities/approval.ts'
import { errorPolicy } from '../../capabilities/error-policy.ts'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import type { Schema } from '../../values/schema.ts'
import { liveEffects } from '../effects/effects.ts'
import { guard, hook, type Hook } from '../hooks/hook.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import { fakeClock } from '../../testing/fake-clock.ts'
import { tool, type Tool } from '../agent/tool.ts'

type Make = Partial<Parameters<typeof tool>[0]>
type Kind = 'hook' | 'guard'

const declare = (kind: Kind): typeof hook => (kind === 'hook' ? hook : (guard as unknown as typeof hook))
const make = (how: Make = {}): Tool =>
  tool({ name: 'work', description: 'Works.', input: { type: 'object' }, execute: () => 'worked', ...how })
const work: ScriptedTurn = { toolCalls: [{ name: 'work' }] }
const never = new Promise<never>(() => undefined)

/** A hook or guard that rejects with the reason of its signal. */
function heedful(kind: Kind, trigger: 'beforeStep', cancel: () => void): Hook {
  return declare(kind)(trigger, async (ctx) => {
    setImmediate(cancel)
    await delay(60_000, undefined, { signal: ctx.signal, ref: false })
    return ctx
  })
}

for (const trigger of ['onUserInput', 'beforeExecution', 'beforeStep', 'beforeInference', 'afterStep'] as const) {
  for (const kind of ['hook', 'guard'] as const) {
    test(`a ${kind} at ${trigger} that rejects because of a cancel leaves the run cancelled`, async () => {
      const controller = new AbortController()
      const use = [heedful(kind, trigger as 'beforeStep', () => controller.abort())]
      const run = await createAgent({ model: scriptedModel(['ok']), use }).run('hi', { signal: controller.signal })
      assert.deepEqual([run.status, run.final?.reason], ['cancelled', 'userRequested'])
    })
  }
}

for (const [when, policy] of [
  ['', []],
  [' and waits to be tried again', [errorPolicy({ onError: 'retry', backoffMs: 10_000 })]],
] as const) {
  test(`a cancel while a hook at onPause fails${when} ends the run as cancelled`, async () => {
    const controller = new AbortController()
    const failing = hook('onPause', async () => {
      if (when === '') controller.abort()
      else setTimeout(() => controller.abort(), 5)
      throw new Error('not now')
    })
    const use = [make({ ask: true }), approval('suspend'), ...policy, failing]
    const run = await createAgent({ model: scriptedModel([work]), use }).run('hi', { signal: controller.signal })
    assert.equal(run.status, 'cancelled')
  })
}

const unsettled: Schema = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: () => never,
    jsonSchema: { input: () => ({ type: 'object' }), output: () => ({ type: 'object' }) },
  },
}

for (const who of ['a tool', 'a tool and a hook that was given the tool itself']) {
  test(
    `an asynchronous schema that never settles does not delay a cancelled run, with ${who}`,
    { timeout: 60_000 },
    async () => {
      const stuck = tool({ name: 'work', description: 'Works.', input: unsettled, execute: () => 'worked' })
      const typed = who === 'a tool' ? [] : [hook('beforeToolUse', (ctx) => ctx, { tool: stuck })]
      const controller = new AbortController()
      const agent = createAgent({ model: scriptedModel([work]), use: [stuck, ...typed] })
      setTimeout(() => controller.abort(), 10)
      const clock = fakeClock()
      const running = agent.run('hi', { signal: controller.signal, effects: liveEffects({ clock }) })
      const pulse = setInterval(() => void clock.advance(1_000), 5)
      const run = await Promise.race([running, delay(30_000, undefined, { ref: false })])
      clearInterval(pulse)
      assert.equal(run?.status, 'cancelled')
    },
  )
}

test('the result of a call that was cancelled while it ran says so, and not that time was up', async () => {
  const controller = new AbortController()
  const execute: Make['execute'] = async (_args, { signal }) => {
    setImmediate(() => controller.abort())
    await delay(60_000, undefined, { signal, ref: false })
  }
  const agent = createAgent({ model: scriptedModel([work]), use: [make({ execute })] })
  const run = await agent.run('hi', { signal: controller.signal })
  const [execution] = run.state.lastStep!.toolExecutions
  assert.equal(run.status, 'cancelled')
  assert.equal(execution!.status, 'outcomeUnknown')
  assert.match(JSON.stringify(execution!.output), /was cancelled while the tool was running/)
})

test('a tool with a timeout leaves no listener on a signal that outlives the run', async () => {
  const { signal } = new AbortController()
  for (let i = 0; i < 50; i++) {
    const use = [make({ timeoutMs: 60_000, execute: async () => (await soon(), 'worked') })]
    const run = await createAgent({ model: scriptedModel([work, 'ok']), use }).run('hi', { signal })
    assert.equal(run.status, 'completed')
  }
  assert.deepEqual([getEventListeners(signal, 'abort').length, dependentsOf(signal)], [0, 0])
})

/** The dependent signals and other internal references of a signal, which are not listeners. */
function dependentsOf(signal: AbortSignal): number {
  const kept = signal as unknown as { readonly [key: symbol]: { readonly size?: number } | undefined }
  return Object.getOwnPropertySymbols(signal).reduce((sum, key) => sum + (kept[key]?.size ?? 0), 0)
}

test('maxTimeMs is checked after each batch of concurrent calls', async () => {
  const clock = fakeClock()
  let started = 0
  const read = make({ concurrent: true, execute: () => (started++, clock.advance(20)) })
  const model = scriptedModel([{ toolCalls: Array.from({ length: 20 }, () => ({ name: 'work' })) }, 'ok'])
  const agent = createAgent({ model, maxConcurrentTools: 2, use: [read, guards({ maxTimeMs: 50 })] })
  const run = await agent.run('hi', { effects: liveEffects({ clock }) })
  assert.deepEqual([run.status === 'stopped' && run.reason, started], ['timeLimit', 4])
})

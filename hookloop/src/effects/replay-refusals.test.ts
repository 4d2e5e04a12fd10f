import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import type { Agent } from '../agent/agent.ts'
import type { Use } from '../agent/capability.ts'
import type { Run } from '../agent/run.ts'
import { tool } from '../agent/tool.ts'
import { errorPolicy } from '../capabilities/error-policy.ts'
import { createAgent } from '../create-agent.ts'
import { guard, hook, observe } from '../hooks/hook.ts'
import { scriptedModel, type ScriptedModel } from '../models/scripted.ts'
import { recordEffects } from './record-effects.ts'
import { memoryRecording, type RecordEntry, type Recording } from './recording.ts'
import { replayEffects } from './replay-effects.ts'

const work = tool({ name: 'work', description: 'works', input: z.object({ n: z.number() }), execute: ({ n }) => n })
const lookup = hook('beforeStep', (ctx) => ctx, { name: 'lookup', effect: true })

function workingModel(): ScriptedModel {
  let asked = 0
  return scriptedModel(({ messages }) => {
    if (asked++ === 0) return { error: 'busy' }
    return messages.length < 3 ? { toolCalls: [{ name: 'work', args: { n: 1 } }] } : 'done'
  })
}

function worker(...use: readonly Use[]): Agent {
  return createAgent({ model: workingModel(), use: [work, lookup, errorPolicy({ backoffMs: 1 }), ...use] })
}

async function recorded(agent: Agent = worker()): Promise<Recording> {
  const recording = memoryRecording()
  const run = await agent.run('go', { effects: recordEffects(recording) })
  assert.equal(run.status, 'completed')
  return recording
}

function failureOf(run: Run): { code: string; value: unknown; message: string } | undefined {
  return run.status === 'failed' ? run.error : undefined
}

test('a replay with another input diverges at the model call, by name', async () => {
  const recording = await recorded(createAgent({ model: scriptedModel(['done']) }))
  const model = scriptedModel(['never'])
  const run = await createAgent({ model }).run('other', { effects: replayEffects(recording) })
  assert.equal(failureOf(run)?.code, 'REPLAY_DIVERGED')
  assert.match(String(failureOf(run)?.value), /\/0\/inference$/)
  assert.match(String(failureOf(run)?.message), /inference" has a different input than recorded/)
  assert.equal(model.requests.length, 0)
})

test('a replay with another model, prompt, tool list or setting diverges at the model call', async () => {
  const model = scriptedModel(['done'])
  const recording = await recorded(createAgent({ model }))
  const others = [
    createAgent({ model: scriptedModel([], { modelId: 'other' }) }),
    createAgent({ model, instructions: 'Be brief.' }),
    createAgent({ model, use: [work] }),
    createAgent({ model, settings: { temperature: 1 } }),
  ]
  for (const other of others) {
    const run = await other.run('go', { effects: replayEffects(recording) })
    assert.equal(failureOf(run)?.code, 'REPLAY_DIVERGED')
  }
})

test('a replay in which a hook changes the arguments of a call diverges at that call, and the tool does not run', async () => {
  const recording = await recorded()
  const ran: number[] = []
  const spy = tool({
    name: 'work',
    description: 'works',
    input: z.object({ n: z.number() }),
    execute: ({ n }) => ran.push(n),
  })
  const change = hook('beforeToolUse', (ctx) => ctx.withArgs({ n: 2 }))
  const agent = createAgent({ model: workingModel(), use: [spy, lookup, errorPolicy({ backoffMs: 1 }), change] })
  const run = await agent.run('go', { effects: replayEffects(recording) })
  assert.equal(failureOf(run)?.code, 'REPLAY_DIVERGED')
  assert.match(String(failureOf(run)?.value), /\/0\/0\/tool$/)
  assert.match(String(failureOf(run)?.message), /"n":1.*"n":2/)
  assert.deepEqual(ran, [])
})

test('a replay in which a hook with an effect gets another input names the hook', async () => {
  const judge = guard('afterToolUse', (ctx) => ctx, { name: 'judge', effect: true })
  const recording = await recorded(worker(judge))
  const change = hook('afterToolUse', (ctx) => ctx.withOutput('other'))
  const run = await worker(judge, change).run('go', { effects: replayEffects(recording) })
  assert.equal(failureOf(run)?.code, 'REPLAY_DIVERGED')
  assert.match(String(failureOf(run)?.message), /judge/)
})

test('a replay with an effect that was not recorded diverges, and the run ends there', async () => {
  const recording = await recorded()
  const stray: string[] = []
  const extra = hook('beforeStep', (ctx) => (stray.push('extra'), ctx), { name: 'extra', effect: true })
  const later = hook('beforeInference', (ctx) => (stray.push('went on'), ctx))
  const run = await worker(extra, later).run('go', { effects: replayEffects(recording) })
  assert.equal(failureOf(run)?.code, 'REPLAY_DIVERGED')
  assert.match(String(failureOf(run)?.message), /beforeStep\/extra/)
  assert.deepEqual(stray, [])
  assert.equal(run.state.execution?.final?.reason, 'errorForbade')
})

test('a guard on the input that diverges ends the run before anything else', async () => {
  const recording = await recorded()
  const extra = guard('onUserInput', (ctx) => ctx, { name: 'extra', effect: true })
  const run = await worker(extra).run('go', { effects: replayEffects(recording) })
  assert.equal(failureOf(run)?.code, 'REPLAY_DIVERGED')
  assert.equal(run.state.stepCount, 0)
})

test('a replay that waits another time than recorded diverges, and the run still ends as every run does', async () => {
  const recording = await recorded()
  const fired: string[] = []
  const agent = createAgent({
    model: workingModel(),
    use: [work, lookup, errorPolicy({ backoffMs: 2 }), hook('onStop', (ctx) => (fired.push('onStop'), ctx))],
  })
  const run = await agent.run('go', { effects: replayEffects(recording) })
  assert.equal(failureOf(run)?.code, 'REPLAY_DIVERGED')
  assert.match(String(failureOf(run)?.value), /backoff$/)
  assert.deepEqual(fired, ['onStop'])
})

test('no hook can make a replay continue where it diverged', async () => {
  const recording = await recorded(createAgent({ model: scriptedModel(['done']) }))
  const stubborn = [
    errorPolicy('tolerant'),
    hook('aroundInference', (_ctx, next) => next()),
    hook('onError', (ctx) => ctx.retry(), { priority: 500 }),
    hook('onStop', (ctx) => ctx.requestContinuation('go on')),
  ]
  const model = scriptedModel(['never'])
  const run = await createAgent({ model, use: stubborn }).run('other', { effects: replayEffects(recording) })
  assert.equal(failureOf(run)?.code, 'REPLAY_DIVERGED')
  assert.equal(model.requests.length, 0)
})

test('a recording that ends after any line is incomplete: nothing is performed in place of what is missing', async () => {
  const entries = (await recorded()).entries()
  const wrong: string[] = []
  for (let length = 1; length < entries.length; length++) {
    const model = scriptedModel(['never'])
    const agent = createAgent({ model, use: [work, lookup, errorPolicy({ backoffMs: 1 })] })
    const run = await agent.run('go', { effects: replayEffects(memoryRecording(entries.slice(0, length))) })
    const code = failureOf(run)?.code
    if (code !== 'REPLAY_INCOMPLETE') wrong.push(`after ${describe(entries[length - 1]!)}: ${run.status} ${code}`)
    assert.equal(model.requests.length, 0)
  }
  assert.deepEqual(wrong, [])
})

function describe(entry: RecordEntry): string {
  return `${entry.type} ${'key' in entry ? entry.key.replace(/^[^/]*\//, '') : ''}`.trim()
}

test('a recording that ends within an effect names the effect that has no end', async () => {
  const entries = (await recorded()).entries()
  const last = entries.findLastIndex((entry) => entry.type === 'end')
  const run = await worker().run('go', { effects: replayEffects(memoryRecording(entries.slice(0, last))) })
  assert.equal(failureOf(run)?.code, 'REPLAY_INCOMPLETE')
  assert.match(String(failureOf(run)?.value), /\/1\/inference$/)
})

test('one recording serves any number of replays, also concurrent ones', async () => {
  const recording = await recorded()
  const effects = replayEffects(recording)
  const runs = await Promise.all([1, 2, 3].map(() => worker().run('go', { effects })))
  assert.deepEqual(
    runs.map((run) => run.status),
    ['completed', 'completed', 'completed'],
  )
  assert.equal(new Set(runs.map((run) => JSON.stringify(run.state))).size, 1)
})

test('the duration of a tool, which observers see, is not part of the input of a hook with an effect', async () => {
  const audit = hook('afterToolUse', (ctx) => ctx, { name: 'audit', effect: true })
  const agent = worker(
    audit,
    observe('afterToolUse', () => undefined),
  )
  const replayed = await agent.run('go', { effects: replayEffects(await recorded(agent)) })
  assert.equal(failureOf(replayed)?.message, undefined)
})

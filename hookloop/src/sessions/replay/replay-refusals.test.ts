import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import type { Agent } from '../../core/agent/agent.ts'
import type { Use } from '../../core/agent/capability.ts'
import { tool } from '../../core/agent/tool.ts'
import { errorPolicy } from '../../capabilities/error-policy.ts'
import { createAgent } from '../../create-agent.ts'
import { guard, hook } from '../../core/hooks/hook.ts'
import { scriptedModel, type ScriptedModel } from '../../models/scripted.ts'
import { RecordedSession } from './recorded-session.fixture.ts'
import { replay, type ReplayReport } from './replay.ts'

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

async function recorded(agent: Agent = worker(), input = 'go'): Promise<readonly string[]> {
  const session = new RecordedSession(agent)
  const run = await session.run(input)
  assert.equal(run.status, 'completed')
  return session.lines()
}

async function refused(lines: readonly string[], agent: Agent, why: RegExp): Promise<ReplayReport> {
  const report = await replay(lines, { agent })
  const { record, run } = report
  assert.deepEqual([record.status, run.status], ['diverged', 'failed'])
  assert.match(record.message!, why)
  return report
}

test('a replay with another model, prompt of a hook, tool list or setting diverges at the model call', async () => {
  const model = scriptedModel(['done'])
  const lines = await recorded(createAgent({ model }))
  const others = [
    createAgent({ model: scriptedModel([], { modelId: 'other' }) }),
    createAgent({ model, use: [hook('beforeInference', (ctx) => ctx.withRequest({ system: 'Be brief.' }))] }),
    createAgent({ model, use: [work] }),
    createAgent({ model, settings: { temperature: 1 } }),
  ]
  for (const other of others) await refused(lines, other, /the model call in step 1 has another input/)
  assert.equal(model.requests.length, 1)
})

test('a replay with an effect that was not recorded diverges, and the run ends there', async () => {
  const lines = await recorded()
  const stray: string[] = []
  const extra = hook('beforeStep', (ctx) => (stray.push('extra'), ctx), { name: 'extra', effect: true })
  const later = hook('beforeInference', (ctx) => (stray.push('went on'), ctx))
  await refused(lines, worker(extra, later), /the hook "extra" at beforeStep in step 1 is not recorded/)
  assert.deepEqual(stray, [])
})

test('a replay without a hook that decided nothing diverges, because the record names the hooks in force', async () => {
  const lines = await recorded(worker(guard('beforeStep', (ctx) => ctx, { name: 'quiet' })))
  await refused(lines, worker(), /the state has another execution.hooks/)
})

test('no hook can make a replay continue where it diverged', async () => {
  const lines = await recorded(createAgent({ model: scriptedModel(['done']) }))
  const stubborn = [
    errorPolicy('tolerant'),
    hook('beforeInference', (ctx) => ctx.withRequest({ system: 'Other.' })),
    hook('aroundInference', (_ctx, next) => next()),
    hook('onError', (ctx) => ctx.retry(), { priority: 500 }),
    hook('onStop', (ctx) => ctx.requestContinuation('go on')),
  ]
  const model = scriptedModel(['never'])
  await refused(lines, createAgent({ model, use: stubborn }), /the model call in step 1/)
  assert.equal(model.requests.length, 0)
})

test('a record that ends after any line is incomplete: nothing is performed in place of what is missing', async () => {
  const lines = await recorded()
  for (let length = 2; length < lines.length; length++) {
    const model = scriptedModel(['never'])
    const agent = createAgent({ model, use: [work, lookup, errorPolicy({ backoffMs: 1 })] })
    const { record, differences } = await replay(lines.slice(0, length), { agent })
    assert.deepEqual([length, record.status, differences, model.requests.length], [length, 'incomplete', [], 0])
  }
})

test('one record serves any number of replays, also concurrent ones', async () => {
  const lines = await recorded()
  const reports = await Promise.all([1, 2, 3].map(() => replay(lines, { agent: worker() })))
  assert.deepEqual(
    reports.map(({ record }) => record.status),
    ['complete', 'complete', 'complete'],
  )
  assert.equal(new Set(reports.map(({ run }) => JSON.stringify(run.state))).size, 1)
})

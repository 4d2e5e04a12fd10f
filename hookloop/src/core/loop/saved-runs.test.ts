import assert from 'node:assert/strict'
import { test } from 'node:test'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { hashJson, type Json, type JsonObject } from '../../values/json.ts'
import type { Message } from '../state/message.ts'
import type { SavedRun } from '../state/saved-run.ts'
import type { Approval } from '../state/tool-call.ts'
import { guard, hook } from '../hooks/hook.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import type { Agent } from '../agent/agent.ts'
import type { Use } from '../agent/capability.ts'
import type { Run } from '../agent/run.ts'
import { tool, type Tool } from '../agent/tool.ts'

type Make = Partial<Parameters<typeof tool>[0]>

const make = (name: string, how: Make = {}): Tool =>
  tool({ name, description: name, input: { type: 'object' }, execute: () => 'worked', ...how })
const calling = (...names: readonly string[]): ScriptedTurn => ({ toolCalls: names.map((name) => ({ name })) })
const agentOf = (script: readonly ScriptedTurn[], ...use: readonly Use[]): Agent =>
  createAgent({ model: scriptedModel(script), use })

const saved = (run: Run): SavedRun => JSON.parse(JSON.stringify(run)) as SavedRun
const pendingOf = (run: Run): readonly Approval[] =>
  run.status === 'suspended' ? run.pending : assert.fail(run.status)
const reasonOf = (run: Run): string => (run.status === 'suspended' ? run.status : `${run.status} ${run.final.reason}`)
const executionsOf = (run: Run) => [...run.state.execution!.steps].flatMap((step) => step.toolExecutions)

/** The same agent continues a saved run, which shows that the saved run can be read. */
async function assertReadable(run: Run): Promise<void> {
  await agentOf(['again']).run('again', { from: saved(run) })
}

test('an unknown reason is rejected, and the saved run can be read', async () => {
  const bogus = guard('beforeStep', (ctx) => ctx.stop('no', { reason: 'bogus' as never }))
  const run = await agentOf(['ok'], bogus).run('hi')
  assert.equal(reasonOf(run), 'stopped errorForbade')
  await assertReadable(run)
})

const bogusChanges: readonly JsonObject[] = [
  { content: [{ type: 'bogus' }] },
  { content: 'abc' },
  { content: [{ type: 'tool-result', toolCallId: '1', toolName: 'work', output: 1 }] },
  { finishReason: 'bogus' },
]
for (const change of bogusChanges) {
  test(`a response changed to ${JSON.stringify(change)} is rejected, and the saved run can be read`, async () => {
    const run = await agentOf(
      ['ok'],
      hook('afterInference', (ctx) => ctx.withResponse(change)),
    ).run('hi')
    assert.equal(run.status === 'failed' && run.error.code, 'HOOK_INVALID_OPTION')
    await assertReadable(run)
  })
}

test('a hook that sends a window of the conversation sends the same message objects, not copies', async () => {
  const model = scriptedModel([...Array.from({ length: 10 }, () => calling('work')), 'ok'])
  let whole: readonly Message[] = []
  const recent = hook('beforeInference', (ctx) => {
    whole = [...ctx.request.messages]
    return ctx.withRequest({ messages: ctx.request.messages.slice(-10) })
  })
  await createAgent({ model, use: [make('work'), recent] }).run('hi')
  const sent = [...model.requests.at(-1)!.messages]
  assert.deepEqual([sent.length, sent.every((message, i) => message === whole.at(i - 10))], [10, true])
})

// ── saved runs

const asking = (...use: readonly Use[]): Agent =>
  agentOf(
    [calling('look'), { text: 'May I?', ...(calling('work') as object) }, 'ok'],
    make('look'),
    make('work', { ask: true }),
    approval('suspend'),
    ...use,
  )

test('arguments nested 399 levels deep can be approved, saved, read and used', async () => {
  let args: Json = {}
  for (let level = 1; level < 399; level++) args = { a: args }
  const agent = agentOf(
    [{ toolCalls: [{ name: 'work', args }] }, 'ok'],
    make('work', { ask: true }),
    approval('suspend'),
  )
  const run = await agent.run('hi')
  const resumed = await agent.resume(saved(run), { answers: { [pendingOf(run)[0]!.id]: 'allow' } })
  assert.deepEqual([resumed.status, executionsOf(resumed)[0]!.status], ['completed', 'ok'])
})

test('a saved run has its status and its pending approvals', async () => {
  const waiting = await asking().run('hi')
  const done = await agentOf(['ok']).run('hi')
  assert.deepEqual([saved(waiting).status, saved(waiting).pending], ['suspended', pendingOf(waiting)])
  assert.deepEqual([saved(done).status, saved(done).pending], ['completed', []])
})

test('the text of a suspended run is the model text of the open step', async () => {
  assert.equal((await asking().run('hi')).text, 'May I?')
})

type Loose = { [key: string]: Loose } & Loose[]

const tamperings: { readonly [how: string]: (run: Loose) => unknown } = {
  'fewer executions than calls in a step': (run) =>
    Object.assign(run['state']!['execution']!['steps']![0]!, { toolExecutions: [] }),
  'an empty list of hooks': (run) => Object.assign(run['state']!['execution']!, { hooks: [] }),
  'a record of an unknown kind': (run) => Object.assign(run['run']!['records']![0]!, { t: 'dream' }),
  'no records': (run) => Object.assign(run['run']!, { records: null }),
  'changes in its ledger that are null': (run) =>
    run['ledger']!.push({ hook: 'a', trigger: 'b', mode: 'guard', step: 0, durationMs: 0, changes: null } as never),
}
for (const [how, tamper] of Object.entries(tamperings)) {
  test(`a saved run with ${how} is rejected`, async () => {
    const agent = asking()
    const json = saved(await agent.run('hi'))
    tamper(json as unknown as Loose)
    await assert.rejects(agent.resume(json), { code: 'STATE_INVALID' })
  })
}

test('a saved run whose waits are no times is rejected, also if its checksum fits', async () => {
  const agent = asking()
  const { run, ...json } = saved(await agent.run('hi'))
  const edited = { ...run!, waits: [{ from: 'now' }] }
  const sum = hashJson({ state: json.state, run: edited })
  await assert.rejects(agent.resume({ ...json, run: edited, sum }), { code: 'STATE_INVALID' })
})

test('a guard that was added at a resume must be present at the next resume', async () => {
  const run = await asking().run('hi')
  const joined = await asking(guard('beforeToolUse', (ctx) => ctx, { name: 'joined' })).resume(saved(run))
  await assert.rejects(asking().resume(saved(joined)), { code: 'RESUME_GUARD_MISSING', value: 'joined' })
})

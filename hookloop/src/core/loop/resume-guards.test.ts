import assert from 'node:assert/strict'
import { test } from 'node:test'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { guard } from '../hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import type { SavedRun } from '../state/saved-run.ts'
import type { Agent } from '../agent/agent.ts'
import type { Use } from '../agent/capability.ts'
import type { Run } from '../agent/run.ts'
import { tool } from '../agent/tool.ts'

test('a guard that was moved to another trigger is missing for a run that is resumed, and one with more triggers is not', async () => {
  const written: string[] = []
  const execute = (): string => (written.push('a'), 'written')
  const write = tool({ name: 'write', description: 'Writes.', input: { type: 'object' }, execute })
  const agentWith = (own: Use): Agent =>
    createAgent({
      model: scriptedModel([{ toolCalls: [{ name: 'write' }] }, 'Done.']),
      use: [write, own, approval('suspend')],
    })
  const run = await agentWith(guard('beforeToolUse', (ctx) => ctx.ask('Write?'), { name: 'asks' })).run('Go.')
  assert.ok(run.status === 'suspended')
  const answers = { [run.pending[0]!.id]: 'allow' as const }

  const moved = agentWith(guard('beforeStep', (ctx) => ctx, { name: 'asks' }))
  const message = /"asks" at beforeToolUse, which this agent does not have.*acceptMissing: \['asks'\]/
  await assert.rejects(moved.resume(run, { answers }), { code: 'RESUME_GUARD_MISSING', message })
  assert.deepEqual(written, [])
  assert.equal((await moved.resume(run, { answers, acceptMissing: ['asks'] })).status, 'completed')

  const wider = agentWith(guard(['beforeStep', 'beforeToolUse'], (ctx) => ctx, { name: 'asks' }))
  assert.equal((await wider.resume(run, { answers })).status, 'completed')
})

const tools = ['write', 'wipe', 'read'].map((name) =>
  tool({ name, description: 'Acts.', input: { type: 'object' }, execute: () => 'done' }),
)

/** An agent whose guard is for these tools, or for all. It has asked about a call, or resumes. */
function guardedBy(selected: string | RegExp | undefined): Agent {
  const careful = guard('beforeToolUse', (ctx) => ctx.ask('Act?'), {
    name: 'careful',
    ...(selected !== undefined && { tool: selected }),
  })
  const model = scriptedModel(({ messages }) => (messages.length === 1 ? { toolCalls: [{ name: 'write' }] } : 'Done.'))
  return createAgent({ model, use: [...tools, careful, approval('suspend')] })
}

const narrowed = [
  [undefined, 'w*', 'for "read"'],
  [undefined, /^write$/, 'for "wipe", "read"'],
  ['w*', 'write', 'for "wipe"'],
  [/^w/, 'write', 'for "wipe"'],
  ['write', 'wipe', 'for "write"', 'completed'],
] as const

for (const [before, after, left, accepted = 'suspended'] of narrowed) {
  test(`a guard for ${before ?? 'all tools'} that is for ${after} when a run is resumed is missing ${left}`, async () => {
    const run = await guardedBy(before).run('Go.')
    assert.ok(run.status === 'suspended')
    const missing = { code: 'RESUME_GUARD_MISSING', message: new RegExp(`guard "careful" ${left}, which this agent`) }
    await assert.rejects(guardedBy(after).resume(run), missing)
    const resumed = await guardedBy(after).resume(run, { acceptMissing: ['careful'] })
    assert.equal(resumed.status, accepted) // the guards of now decide whether the call is asked about
  })
}

test('a guard that is for the same tools or for more of them when a run is resumed is not missing', async () => {
  for (const [before, after] of [
    ['write', 'w*'],
    ['w*', /^w/],
    [/^w/, 'w*'],
    [/^w/, undefined],
    [undefined, '*'],
    ['wr*', /^(write|read)$/],
  ] as const) {
    const run = await guardedBy(before).run('Go.')
    assert.equal((await guardedBy(after).resume(run)).status, 'suspended', `${before} ${after}`)
  }
})

/** A suspended run, and an agent with one more guard, which asks. */
async function askedByNewGuard() {
  const run = await guardedBy('write').run('Go.')
  assert.ok(run.status === 'suspended')
  const stricter = guardedBy('write').with(guard('beforeToolUse', (ctx) => ctx.ask('At night?'), { name: 'new rule' }))
  return { run, first: run.pending[0]!, stricter }
}

const statusOfCall = (run: Run): string => run.state.execution!.steps.at(0)!.toolExecutions[0]!.status

test('a new guard that asks about a pending call has its question answered before the call runs, whatever the first answer', async () => {
  const { run, first, stricter } = await askedByNewGuard()
  for (const answer of ['allow', { block: 'No.' }, { allow: { path: 'b' } }] as const) {
    const asked = await stricter.resume(run, { answers: { [first.id]: answer } })
    assert.deepEqual(asked.status === 'suspended' && asked.pending.map(({ message }) => message), ['Act?; At night?'])
  }
  const again = await stricter.resume(run, { answers: { [first.id]: 'allow' } })
  assert.ok(again.status === 'suspended')
  const second = again.pending[0]!
  await assert.rejects(stricter.resume(again, { answers: { [first.id]: 'allow' } }), { code: 'ANSWER_USED' })
  const saved = JSON.parse(JSON.stringify(again)) as SavedRun
  const resumed = await stricter.resume(saved, { answers: { [second.id]: 'allow' } })
  assert.deepEqual([resumed.status, statusOfCall(resumed)], ['completed', 'ok'])
})

test('a guard without a name that was removed is missing, also if another one of the same source is left', async () => {
  const deny = (name: string): Use =>
    guard('beforeToolUse', (ctx) => (ctx.toolCall.name === name ? ctx.block('No.') : ctx))
  const guardedFrom = (...names: readonly string[]): Agent => guardedBy(undefined).with(...names.map(deny))
  const run = await guardedFrom('wipe', 'read').run('Go.')
  assert.equal((await guardedFrom('wipe', 'read').resume(run)).status, 'suspended')
  for (const left of ['wipe', 'read'])
    await assert.rejects(guardedFrom(left).resume(run), { code: 'RESUME_GUARD_MISSING' })
})

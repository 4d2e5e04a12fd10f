import assert from 'node:assert/strict'
import { test } from 'node:test'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { guard } from '../../hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import type { Agent } from '../agent.ts'
import type { Use } from '../capability.ts'
import { tool } from '../tool.ts'

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

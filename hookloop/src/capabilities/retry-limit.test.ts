import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Use } from '../core/agent/capability.ts'
import type { Run } from '../core/agent/run.ts'
import { tool } from '../core/agent/tool.ts'
import { createAgent } from '../create-agent.ts'
import type { Json } from '../values/json.ts'
import { guard } from '../core/hooks/hook.ts'
import { scriptedModel, type Script, type ScriptedTurn } from '../models/scripted.ts'
import { retryLimit } from './retry-limit.ts'

const open = tool({
  name: 'open',
  description: 'Opens a file.',
  input: { type: 'object' },
  execute: ({ path }) => {
    if (path === 'missing') throw new Error('no such file')
    return 'content'
  },
})

function call(...paths: readonly string[]): ScriptedTurn {
  return { toolCalls: paths.map((path) => ({ name: 'open', args: { path } })) }
}

function run(script: Script, ...use: readonly Use[]): Promise<Run> {
  return createAgent({ model: scriptedModel(script), use: [open, ...use] }).run('go')
}

function stopOf(run: Run): { reason: string; by: string; value: Json | undefined } | undefined {
  return run.status === 'stopped' ? { reason: run.reason, by: run.by, value: run.final.value } : undefined
}

test('a failing call is repeated at most maxRetries times', async () => {
  const ended = await run(
    Array.from({ length: 9 }, () => call('missing')),
    retryLimit({ maxRetries: 2 }),
  )
  assert.deepEqual(stopOf(ended), { reason: 'retryLimit', by: 'retryLimit', value: { value: 2, limit: 2 } })
  assert.equal(ended.state.stepCount, 3)
})

test('other arguments or a success restart the count', async () => {
  const limit = retryLimit({ maxRetries: 1 })
  const other = [call('missing'), call('found'), call('missing'), call('missing', 'found'), call('missing'), 'done']
  assert.equal((await run(other, limit)).status, 'completed')
})

test('a call that is blocked repeatedly counts as a retry', async () => {
  const never = guard('beforeToolUse', (ctx) => ctx.block('Never.'), { name: 'never' })
  const ended = await run([call('found'), call('found'), 'done'], never, retryLimit({ maxRetries: 1 }))
  assert.equal(stopOf(ended)?.reason, 'retryLimit')
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Use } from '../agent/capability.ts'
import type { Run } from '../agent/run.ts'
import { tool } from '../agent/tool.ts'
import { createAgent } from '../create-agent.ts'
import type { Json } from '../values/json.ts'
import type { AgentError } from '../errors.ts'
import { guard } from '../hooks/hook.ts'
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

test('the default is three retries', async () => {
  const ended = await run(
    Array.from({ length: 9 }, () => call('missing')),
    retryLimit(),
  )
  assert.equal(ended.state.stepCount, 4)
})

test('with maxRetries 0 the first failing call is the last', async () => {
  const ended = await run([call('missing'), 'done'], retryLimit({ maxRetries: 0 }))
  assert.equal(stopOf(ended)?.reason, 'retryLimit')
  assert.equal(ended.state.stepCount, 1)
})

test('other arguments or a success restart the count', async () => {
  const limit = retryLimit({ maxRetries: 1 })
  const other = [call('missing'), call('found'), call('missing'), call('missing', 'found'), call('missing'), 'done']
  assert.equal((await run(other, limit)).status, 'completed')
})

test('successful calls may be repeated without limit', async () => {
  const same = Array.from({ length: 6 }, () => call('found'))
  assert.equal((await run([...same, 'done'], retryLimit({ maxRetries: 1 }))).status, 'completed')
})

test('a call that is blocked repeatedly counts as a retry', async () => {
  const never = guard('beforeToolUse', (ctx) => ctx.block('Never.'), { name: 'never' })
  const ended = await run([call('found'), call('found'), 'done'], never, retryLimit({ maxRetries: 1 }))
  assert.equal(stopOf(ended)?.reason, 'retryLimit')
})

test('the order of arguments does not matter', async () => {
  const first = { toolCalls: [{ name: 'open', args: { path: 'missing', line: 1 } }] }
  const second = { toolCalls: [{ name: 'open', args: { line: 1, path: 'missing' } }] }
  const ended = await run([first, second, 'done'], retryLimit({ maxRetries: 1 }))
  assert.equal(stopOf(ended)?.reason, 'retryLimit')
})

test('an invalid maxRetries is rejected', () => {
  for (const maxRetries of [-1, 0.5, Number.NaN, Infinity, '3']) {
    assert.throws(
      () => retryLimit({ maxRetries: maxRetries as number }),
      (error: AgentError) => error.code === 'AGENT_INVALID_OPTION' && error.message.includes('"maxRetries"'),
      String(maxRetries),
    )
  }
})

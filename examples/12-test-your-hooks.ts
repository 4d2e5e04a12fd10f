// Tests for hooks: `fire` invokes one hook at one trigger and returns what it decided and changed; a scripted model
// tests how hooks work together. This file is such a test and runs with plain `node`.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAgent, guard, hook, tool } from 'hookloop'
import { fire, recordEvents, scriptedModel } from 'hookloop/testing'

// The hooks

const officeHours = guard('beforeStep', (ctx) => {
  const hour = new Date(ctx.now).getUTCHours()
  return hour >= 9 && hour < 17 ? ctx : ctx.stop('Agents work from 9 to 17.', { reason: 'timeLimit', value: hour })
})

const shout = hook('beforeToolUse', (ctx) => {
  const { text } = ctx.toolCall.args
  return typeof text === 'string' ? ctx.withArgs({ text: text.toUpperCase() }) : ctx
})

// Their tests

test('an agent works at noon', async () => {
  assert.deepEqual(await fire(officeHours, 'beforeStep', { now: Date.UTC(2030, 0, 1, 12) }), {})
})

test('an agent stops at night and reports the hour', async () => {
  const { votes } = await fire(officeHours, 'beforeStep', { now: Date.UTC(2030, 0, 1, 23) })
  assert.deepEqual(
    votes?.map(({ decision, value }) => [decision, value]),
    [['forbidContinuation', 23]],
  )
})

test('the text is converted to capitals', async () => {
  const { args } = await fire(shout, 'beforeToolUse', { toolCall: { name: 'say', args: { text: 'hello' } } })
  assert.deepEqual(args, { text: 'HELLO' })
})

test('the tool receives the changed arguments', async () => {
  const say = tool({ name: 'say', description: 'Says it.', input: { type: 'object' }, execute: ({ text }) => text })
  const model = scriptedModel([{ toolCalls: [{ name: 'say', args: { text: 'hello' } }] }, 'Said.'])
  const events = await recordEvents(createAgent({ model, use: [say, shout] }).stream('Say hello.'))
  assert.equal(events.of('toolFinished')[0]?.execution.output, 'HELLO')
  assert.equal(events.run.status, 'completed')
})

// Your hooks are code, so test them: `fire` fires one hook at one trigger and gives what it decided and changed;
// a scripted model tests how they work together. This file is such a test and runs with plain `node`.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAgent, guard, hook, tool } from 'hookloop'
import { fire, recordEvents, scriptedModel } from 'hookloop/testing'

// ── the hooks

const officeHours = guard('beforeStep', (ctx) => {
  const hour = new Date(ctx.now).getUTCHours()
  return hour >= 9 && hour < 17 ? ctx : ctx.stop('Agents work from 9 to 17.', { reason: 'timeLimit', value: hour })
})

const shout = hook('beforeToolUse', (ctx) => {
  const { text } = ctx.toolCall.args
  return typeof text === 'string' ? ctx.withArgs({ text: text.toUpperCase() }) : ctx
})

// ── their tests

test('an agent works at noon', async () => {
  assert.deepEqual(await fire(officeHours, 'beforeStep', { now: Date.UTC(2030, 0, 1, 12) }), {})
})

test('an agent rests at night, and says on what value', async () => {
  const { votes } = await fire(officeHours, 'beforeStep', { now: Date.UTC(2030, 0, 1, 23) })
  assert.deepEqual(
    votes?.map(({ decision, value }) => [decision, value]),
    [['forbidContinuation', 23]],
  )
})

test('whatever is said is said in capitals', async () => {
  const { args } = await fire(shout, 'beforeToolUse', { toolCall: { name: 'say', args: { text: 'hello' } } })
  assert.deepEqual(args, { text: 'HELLO' })
})

test('the tool gets what the hook made of it', async () => {
  const say = tool({ name: 'say', description: 'Says it.', input: { type: 'object' }, execute: ({ text }) => text })
  const model = scriptedModel([{ toolCalls: [{ name: 'say', args: { text: 'hello' } }] }, 'Said.'])
  const events = await recordEvents(createAgent({ model, use: [say, shout] }).stream('Say hello.'))
  assert.equal(events.of('toolFinished')[0]?.execution.output, 'HELLO')
  assert.equal(events.run.status, 'completed')
})

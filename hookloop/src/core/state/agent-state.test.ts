import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { tool } from '../agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import { hook } from '../hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { AgentState } from './agent-state.ts'
import type { JsonObject } from '../../values/json.ts'
import { textMessage, textOf, type Message } from './message.ts'
import { noUsage } from './usage.ts'

const state = AgentState.create({ agentId: 'a' })

/** The places of everything in a state that could be written to. */
function writable(value: unknown, path = 'state'): string[] {
  if (typeof value !== 'object' || value === null) return []
  if (value instanceof AgentState) {
    const { messages, metadata, usage, execution, responseFormat } = value
    return writable({ messages, metadata, usage, execution, responseFormat }, '').slice(1)
  }
  const inner = Object.entries(value).flatMap(([key, each]) => writable(each, `${path}.${key}`))
  return Object.isFrozen(value) ? inner : [path, ...inner]
}

const look = tool({ name: 'look', description: 'looks', input: z.object({}), execute: () => ['seen'] })

test('messages and steps are frozen arrays, the same at every read', async () => {
  const { messages } = state.withMessages(['one', 'two'].map((text) => textMessage('user', text)))
  assert.deepEqual(messages, [textMessage('user', 'one'), textMessage('user', 'two')])
  const run = await createAgent({ model: scriptedModel(['done']) }).run('x')
  const { execution } = run.state
  assert.deepEqual([run.state.messages.length, execution?.steps[0]?.text], [2, 'done'])
  assert.equal(run.state.messages, run.state.messages)
  assert.equal(run.state.execution?.steps, execution?.steps)
  assert.deepEqual({ ...execution }.steps, run.state.withMetadata('k', 1).execution?.steps)
  for (const array of [messages, execution?.steps]) assert.throws(() => (array as unknown[]).push(1), TypeError)
})

test('states that are made from the same one do not see the messages of each other', () => {
  const base = state.withMessage('one')
  const [left, right] = [base.withMessage('left').withMessage('more'), base.withMessage('right').withMessage('more')]
  const texts = [base, left, right].map(({ messages }) => messages.map(({ content }) => textOf(content)))
  assert.deepEqual(texts, [['one'], ['one', 'left', 'more'], ['one', 'right', 'more']])
})

test('every change gives a new state and leaves the old one as it was', () => {
  const before = JSON.stringify(state)
  const after = state
    .withMessage('hello')
    .withSystemPrompt('Be brief.')
    .withResponseFormat({ type: 'json' })
    .withMetadata('a', { b: [1] })
  assert.equal(JSON.stringify(state), before)
  assert.equal(after.messages.length, 1)
  assert.equal(after.systemPrompt, 'Be brief.')
  assert.deepEqual(after.responseFormat, { type: 'json' })
  assert.deepEqual({ ...after.metadata }, { a: { b: [1] } })
})

test('metadata is a copy: writing to the original or to what was read changes nothing', () => {
  const original = { list: [1] }
  const after = state.withMetadata('k', original)
  original.list.push(2)
  const read = after.metadata['k'] as { list: number[] }
  assert.throws(() => read.list.push(3), TypeError)
  assert.throws(() => Object.assign(after.metadata, { other: 1 }), TypeError)
  assert.equal(JSON.stringify(after.metadata), '{"k":{"list":[1]}}')
})

test('metadata has no prototype, so a guard that reads a missing key gets undefined', () => {
  const { metadata } = state.withMetadata('a', 1)
  for (const key of ['constructor', 'toString', '__proto__', 'hasOwnProperty', 'valueOf']) {
    assert.equal(metadata[key], undefined, key)
  }
})

test('a metadata key "__proto__" adds no inherited values', () => {
  const after = state
    .withMetadata('__proto__', { role: 'admin' })
    .withMetadata('nested', JSON.parse('{"__proto__":{"role":"admin"}}'))
  assert.equal(after.metadata['role'], undefined)
  assert.equal((after.metadata['nested'] as JsonObject)['role'], undefined)
  assert.equal(({} as { role?: string }).role, undefined)
})

class Money {
  readonly amount = 5
}

function circle(): unknown {
  const ring: unknown[] = []
  ring.push({ ring })
  return ring
}

let deep: unknown = 1
for (let i = 0; i < 10_000; i++) deep = [deep]

const notJson: { readonly [what: string]: unknown } = {
  undefined: undefined,
  NaN: Number.NaN,
  'a Date': new Date(0),
  'a function': () => 1,
  'a class instance': new Money(),
  'a bigint': 1n,
  'a circle': circle(),
  'a value nested 10,000 levels deep': deep,
}

for (const [what, value] of Object.entries(notJson)) {
  test(`${what} as metadata throws at the write and names the key`, () => {
    assert.throws(() => state.withMetadata('when', { inside: [value] }), {
      code: 'JSON_INVALID',
      message: /^The metadata "when" cannot be stored/,
    })
    assert.throws(() => state.withMetadata('when', value), { code: 'JSON_INVALID' })
  })
}

test('metadata of a run that is not JSON is rejected before anything runs', async () => {
  const model = scriptedModel(['never'])
  const metadata = { when: new Date(0) } as unknown as JsonObject
  await assert.rejects(createAgent({ model }).run('x', { metadata }), { code: 'JSON_INVALID' })
  assert.equal(model.requests.length, 0)
})

test('a system prompt that is not a string and an invalid message are rejected', () => {
  assert.throws(() => state.withSystemPrompt(5 as unknown as string), { code: 'AGENT_INVALID_OPTION' })
  assert.throws(() => state.withMessage({ role: 'boss', content: [] } as unknown as Message), { code: 'INPUT_INVALID' })
  assert.throws(() => state.withMessages([{ role: 'user' } as unknown as Message]), { code: 'INPUT_INVALID' })
})

test('everything in the state of a finished run is frozen', async () => {
  let asked = 0
  const agent = createAgent({
    model: scriptedModel(['draft', { toolCalls: [{ name: 'look' }, { name: 'nothing' }] }, 'done']),
    use: [look, hook('onStop', (ctx) => (asked++ === 0 ? ctx.requestContinuation('Check it.') : ctx))],
  })
  const run = await agent.run('x', { metadata: { a: { b: [1] } } })
  assert.equal(run.status, 'completed')
  assert.deepEqual(writable(run.state), [])
})

test('usage counts every execution of a state, not only the last', async () => {
  const agent = createAgent({ model: scriptedModel(() => 'hi', { usage: { inputTokens: 10, outputTokens: 5 } }) })
  const first = await agent.run('one')
  const second = await agent.run('two', { from: first })
  assert.deepEqual(second.state.usage, { ...noUsage, inputTokens: 20, outputTokens: 10, steps: 2 })
  assert.equal(second.state.executionCount, 2)
  assert.equal(first.state.usage.inputTokens, 10)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Use } from '../core/agent/capability.ts'
import { createAgent } from '../create-agent.ts'
import type { Json } from '../values/json.ts'
import { guard } from '../core/hooks/hook.ts'
import { hasMetadata } from '../core/hooks/matchers.ts'
import { scriptedModel, type ScriptedCall } from '../models/scripted.ts'
import { metadata, getMetadata, type MetadataOptions } from './metadata.ts'

const store = (key: Json, value: Json): ScriptedCall => ({ name: 'store_metadata', args: { key, value } })
const read = (key: string): ScriptedCall => ({ name: 'read_metadata', args: { key } })
const list: ScriptedCall = { name: 'list_metadata' }

/** A run in which the model makes these calls in one step. */
async function callAll(calls: readonly ScriptedCall[], options: MetadataOptions = {}, ...use: readonly Use[]) {
  const model = scriptedModel([{ toolCalls: calls }, 'Done.'])
  const run = await createAgent({ model, use: [metadata(options), ...use] }).run('Go.')
  const executions = run.state.execution!.steps.at(0)!.toolExecutions
  return { run, model, executions, stored: { ...getMetadata(run.state) } }
}

test('stored values are in the state under their own key, and the model can read and list them', async () => {
  const address = { city: 'Oslo', zip: ['0150'] }
  const { run, executions } = await callAll([store('customer.address', address), read('customer.address'), list])
  assert.deepEqual(
    executions.map(({ status, output }) => [status, output]),
    [
      ['ok', 'Stored 30 bytes under "customer.address".'],
      ['ok', address],
      ['ok', [{ key: 'customer.address', bytes: 30, value: '{"city":"Oslo","zip":["0150"]}' }]],
    ],
  )
  assert.deepEqual({ ...run.state.metadata }, { 'hookloop.metadata': { 'customer.address': address } })
})

test('storing null removes a value', async () => {
  const { stored, executions } = await callAll([store('a', 1), store('a', null), store('a', null), read('a')])
  assert.deepEqual(stored, {})
  assert.deepEqual(
    executions.slice(1).map(({ output }) => output),
    ['Removed "a".', 'Nothing is stored under "a".', 'Nothing is stored under this key. There are no stored keys.'],
  )
})

test('reading a missing key is a failed call that lists the stored keys', async () => {
  const { executions } = await callAll([store('a', 1), store('b', 1), read('c')])
  assert.deepEqual(
    [executions[2]!.status, executions[2]!.output],
    ['failed', 'Nothing is stored under this key. Stored keys: a, b.'],
  )
})

// ── limits

for (const [what, call, words] of [
  ['an empty key', store('', 1), /letters, digits/],
  ['a key that begins with no letter', store('_a', 1), /start with a letter/],
  ['a key with other characters', store('a b', 1), /letters, digits/],
  ['a key with a line break', store('a\n', 1), /letters, digits/],
  ['a key in other letters', store('clé', 1), /letters, digits/],
  ['the key __proto__', store('__proto__', { admin: true }), /start with a letter/],
  ['a key of 65 characters', store('k'.repeat(65), 1), /at most 64 characters/],
  ['a key that is no text', store(7, 1), /arguments do not fit/],
  ['a call without a value', { name: 'store_metadata', args: { key: 'a' } }, /arguments do not fit/],
  ['the key hookloop', store('hookloop', 1), /reserved/],
  ['the key of a capability', store('hookloop.metadata', 1), /reserved/],
  ['a key that the application reserved', store('user.role', 'admin'), /reserved/],
  ['a value of more than 65,536 bytes', store('a', 'x'.repeat(65_535)), /65537 bytes; the maximum is 65536/],
  ['bytes, not characters', store('a', '€'.repeat(22_000)), /66002 bytes/],
  ['a value nested too deep', store('a', nested(33)), /more than 32 levels/],
] as const) {
  test(`${what} is rejected with a message, and nothing is stored`, async () => {
    const { run, executions, stored } = await callAll([call], { reserved: ['user.*'] })
    assert.deepEqual([run.status, executions[0]!.status, stored], ['completed', 'failed', {}])
    assert.match(JSON.stringify(executions[0]!.output), words)
  })
}

test('the number of keys is limited, but existing ones can be replaced and removed', async () => {
  const calls = [store('a', 1), store('b', 2), store('c', 3), store('a', 4), store('b', null), store('c', 5)]
  const { executions, stored } = await callAll(calls, { maxKeys: 2 })
  assert.deepEqual(
    executions.map(({ status }) => status),
    ['ok', 'ok', 'failed', 'ok', 'ok', 'ok'],
  )
  assert.deepEqual(stored, { a: 4, c: 5 })
})

test('the total size of all values is limited', async () => {
  const calls = [store('a', 'x'.repeat(50)), store('b', 'x'.repeat(50)), store('a', null), store('b', 'x'.repeat(50))]
  const { executions, stored } = await callAll(calls, { maxTotalBytes: 100 })
  assert.deepEqual(
    executions.map(({ status }) => status),
    ['ok', 'failed', 'ok', 'ok'],
  )
  assert.deepEqual(Object.keys(stored), ['b'])
})

test('stored values cannot change a prototype', async () => {
  const value = JSON.parse('{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}}}') as Json
  const { stored } = await callAll([store('a', value), read('toString')])
  assert.equal(({} as { admin?: boolean }).admin, undefined)
  assert.equal((stored['a'] as { admin?: boolean }).admin, undefined)
})

// ── trust

test('a role that the model stores is not one that a guard reads', async () => {
  const admins = guard('beforeToolUse', (ctx) => ctx.block('Only admins.'), {
    name: 'admins',
    tool: 'list_metadata',
    when: (ctx) => !hasMetadata('role', 'admin')(ctx),
  })
  const { executions } = await callAll([store('role', 'admin'), list], {}, admins)
  assert.deepEqual(
    executions.map(({ status }) => status),
    ['ok', 'blocked'],
  )
})

test('invalid metadata is read as empty and replaced by the next call', async () => {
  for (const stored of ['text', 7, ['a'], null]) {
    const model = scriptedModel([{ toolCalls: [list, store('a', 1)] }, 'Done.'])
    const run = await createAgent({ model, use: [metadata()] }).run('Go.', {
      metadata: { 'hookloop.metadata': stored },
    })
    assert.deepEqual({ ...getMetadata(run.state) }, { a: 1 })
  }
})

function nested(levels: number): Json {
  return levels === 1 ? [] : [nested(levels - 1)]
}

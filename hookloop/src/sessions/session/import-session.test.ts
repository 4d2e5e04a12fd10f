import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { guard } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { exportSession, importSession } from './export-session.ts'

/** The text of a session that waits for an approval, with a guard. */
async function exported(): Promise<string> {
  const store = memoryStore()
  const pay = tool({ name: 'pay', description: '', input: { type: 'object' }, ask: true, execute: () => 'paid' })
  const careful = guard('beforeToolUse', (ctx) => ctx, { name: 'careful' })
  const model = scriptedModel([{ toolCalls: [{ name: 'pay', args: { to: 'ann' } }] }])
  await createAgent({ model, store, use: [pay, careful, approval('suspend')] }).run('Pay.', { session: 's' })
  return exportSession(store, 's')
}

test('an export that was edited, cut or extended anywhere is rejected, and nothing is stored', async () => {
  const text = await exported()
  const lines = text.trimEnd().split('\n')
  const forged = {
    'other arguments': text.replaceAll('"ann"', '"eve"'),
    'no hooks': text.replaceAll(/"hooks":\[[^\]]*\]/g, '"hooks":[]'),
    'another id': text.replace('"id":"s"', '"id":"t"'),
    'a line less': [...lines.slice(0, 3), ...lines.slice(4)].join('\n'),
    'a line more': [...lines.slice(0, 3), lines[2], ...lines.slice(3)].join('\n'),
    'no end': lines.slice(0, -1).join('\n'),
    'a text after it': `${text}{"type":"sessionResumed","at":1}\n`,
  }
  for (const [how, forgery] of Object.entries(forged)) {
    const store = memoryStore()
    assert.notEqual(forgery, text, how)
    await assert.rejects(importSession(store, forgery), { code: 'SESSION_CORRUPT' }, how)
    assert.deepEqual(await store.list(), [], how)
  }
  const store = memoryStore()
  assert.equal(await importSession(store, text), 's')
  assert.equal(await importSession(store, text.trimEnd(), { as: 'copy' }), 'copy')
})

test('a session that is longer than a snapshot is the same after an export and an import', async () => {
  const [store, other] = [memoryStore(), memoryStore()]
  const read = tool({ name: 'read', description: '', input: { type: 'object' }, execute: () => 'x'.repeat(9_000) })
  const model = scriptedModel(({ messages }) => (messages.length < 24 ? { toolCalls: [{ name: 'read' }] } : 'Done.'))
  const agent = createAgent({ model, store, use: [read] })
  await agent.run('Read all of it.', { session: 's' })
  const { lines } = (await store.read('s'))!
  assert.ok(lines.some((line) => line.includes('"t":"snapshot"')))
  await importSession(other, await exportSession(store, 's'))
  const imported = createAgent({ model, store: other, use: [read] }).session('s')
  assert.deepEqual((await imported.state())!.toJSON(), (await agent.session('s').state())!.toJSON())
})

test('an export of another version is refused', async () => {
  const store = memoryStore()
  for (const version of [1, 3, 5]) {
    const other = (await exported()).replace('"version":4', `"version":${version}`)
    await assert.rejects(importSession(store, other), { code: 'STATE_VERSION', value: version })
  }
})

test('an import is bounded: by its size, before anything is parsed, and by its first invalid record', async () => {
  const store = memoryStore()
  const text = await exported()
  await assert.rejects(importSession(store, text, { maxBytes: 100 }), { code: 'SESSION_CORRUPT', message: /maxBytes/ })
  const header = text.slice(0, text.indexOf('\n'))
  const before = process.memoryUsage().heapUsed
  for (const line of ['{}', '[[],[],[],[]]', '{"type":"answers","answers":{"a":[]},"at":1}']) {
    const hostile = `${header}\n${`${line}\n`.repeat(200_000)}`
    await assert.rejects(importSession(store, hostile), { code: 'SESSION_CORRUPT' })
  }
  assert.ok(process.memoryUsage().heapUsed - before < 200_000_000)
  assert.deepEqual(await store.list(), [])
})

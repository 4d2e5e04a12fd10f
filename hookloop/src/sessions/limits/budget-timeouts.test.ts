import assert from 'node:assert/strict'
import { test } from 'node:test'
import { estimateTokens } from '../../agent/model/estimate-usage.ts'
import { createAgent } from '../../create-agent.ts'
import type { JsonObject } from '../../state/json.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { budget } from './budget.ts'

test('a budget counts the prompt of a call that timed out, and frees what was reserved', async () => {
  const store = memoryStore()
  const silent = { provider: 'test', modelId: 'silent', infer: () => new Promise<never>(() => undefined) }
  const use = [budget({ store, key: 'ann', maxTokens: 100_000 })]
  const run = await createAgent({ model: silent, use, settings: { timeoutMs: 5 } }).run('x'.repeat(4_000))
  assert.equal(run.status === 'failed' && run.error.code, 'MODEL_TIMED_OUT')
  const { tokens, reserved } = (await store.update('budget ann', (value) => value ?? {})) as JsonObject
  assert.equal(tokens, estimateTokens([{ type: 'text', text: 'x'.repeat(4_000) }]))
  assert.deepEqual(reserved, {})
})

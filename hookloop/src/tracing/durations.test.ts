import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { createAgent } from '../create-agent.ts'
import { guard, hook } from '../hooks/hook.ts'
import { scriptedModel } from '../models/scripted.ts'
import { inMemory, timesOf } from './in-memory.fixture.ts'

test('spans of hooks have their duration, which is not part of the call they judge', async () => {
  const otel = inMemory({ slowHookMs: 100 })
  const onInput = hook('onUserInput', async (ctx) => (await delay(130), ctx), { name: 'moderate' })
  const judge = guard('afterInference', async (ctx) => (await delay(120), ctx), { name: 'judge' })
  const wait = hook('aroundInference', async (_ctx, next) => (await delay(110), next()), { name: 'wait' })
  const model = scriptedModel([{ text: 'Done.', delayMs: 20 }])
  await createAgent({ model, use: [onInput, judge, wait, otel.tracing] }).run('Go.')
  const length = (name: string): number => timesOf(otel.span(name)).end - timesOf(otel.span(name)).start
  for (const [name, ms] of Object.entries({
    'hook moderate': 130,
    'hook judge': 120,
    'hook wait': 130,
    'chat script': 130,
    invoke_agent: 380,
  })) {
    assert.ok(length(name) >= ms - 5, `${name}: ${length(name)} ms`)
  }
  assert.ok(length('chat script') + length('hook judge') + length('hook moderate') <= length('invoke_agent') + 1)
})

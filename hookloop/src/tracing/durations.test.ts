import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { createAgent } from '../create-agent.ts'
import { guard, hook } from '../core/hooks/hook.ts'
import { scriptedModel } from '../models/scripted.ts'
import { inMemory, timesOf } from './in-memory.fixture.ts'

test('spans of hooks have their duration, which is not part of the call they judge', async () => {
  const otel = inMemory()
  const moderate = hook(
    'onUserInput',
    async (ctx) => (await delay(130), ctx.withState((state) => state.withMetadata('moderated', true))),
    { name: 'moderate' },
  )
  const judge = guard('afterInference', async (ctx) => (await delay(120), ctx.stop('enough')), { name: 'judge' })
  const silent = guard('afterInference', (ctx) => delay(90, ctx), { name: 'silent' })
  const twice = hook('aroundInference', async (_ctx, next) => (await delay(110), await next(), next()), {
    name: 'twice',
  })
  const model = scriptedModel(() => ({ text: 'Done.', delayMs: 10 }))
  await createAgent({ model, use: [moderate, judge, silent, twice, otel.tracing] }).run('Go.')
  const length = (name: string): number => timesOf(otel.span(name)).end - timesOf(otel.span(name)).start
  for (const [name, ms] of Object.entries({
    'hook moderate': 130,
    'hook judge': 120,
    'hook twice': 130,
    'chat script': 130,
    invoke_agent: 470,
  })) {
    assert.ok(length(name) >= ms - 5, `${name}: ${length(name)} ms`)
  }
  const hooks = length('hook judge') + length('hook moderate')
  assert.ok(
    length('chat script') + hooks + 85 <= length('invoke_agent') + 1,
    'the hook without a span is no part of the call',
  )
})

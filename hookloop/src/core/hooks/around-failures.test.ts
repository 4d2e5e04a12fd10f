import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { explain } from '../explain/explain.ts'
import { fallback } from '../../capabilities/fallback.ts'
import { createAgent } from '../../create-agent.ts'
import { AgentError } from '../../errors.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { hook, type Hook } from './hook.ts'

const overloaded = new AgentError('MODEL_OVERLOADED', 'try later')

/** Runs an agent whose model is overloaded, with a second model to fall back to. */
async function fallBackAround(inner: Hook) {
  const other = scriptedModel(['from the other model'])
  const run = await createAgent({
    model: scriptedModel([{ error: overloaded }, { error: overloaded }]),
    use: [fallback([other]), inner],
  }).run('go')
  return { run, requests: other.requests.length }
}

describe('the error of a hook around a model call', () => {
  const router = hook(
    'aroundInference',
    () => {
      throw new Error('cannot read policy')
    },
    { name: 'my-router' },
  )

  test('names the hook, and explain advises to fix it', async () => {
    const run = await createAgent({ model: scriptedModel(['done']), use: [router] }).run('go')
    assert.ok(run.status === 'failed')
    assert.equal(run.error.code, 'HOOK_FAILED')
    assert.equal(run.error.message, 'Hook "my-router" failed at aroundInference: cannot read policy')
    const text = explain(run)
    assert.match(text, /^The run failed: Hook "my-router" failed at aroundInference: cannot read policy\n/)
    assert.match(text, /to continue .*"my-router"/)
    assert.doesNotMatch(text, /fallback/)
  })

  test('is no failure of the model, so fallback() does not call another one', async () => {
    const { run, requests } = await fallBackAround(router)
    assert.deepEqual([run.status === 'failed' && run.error.code, requests], ['HOOK_FAILED', 0])
  })

  test('is that of the model if the hook passes it on, also from attempts that it races', async () => {
    const passing = hook('aroundInference', async (_ctx, next) => next())
    const racing = hook('aroundInference', (_ctx, next) => Promise.any([next(), next()]))
    for (const inner of [passing, racing]) {
      const { run, requests } = await fallBackAround(inner)
      assert.deepEqual([run.text, requests], ['from the other model', inner === passing ? 1 : 2])
    }
    const run = await createAgent({ model: scriptedModel([{ error: overloaded }]), use: [passing] }).run('go')
    assert.ok(run.status === 'failed')
    assert.deepEqual([run.error.code, run.error.message], ['MODEL_OVERLOADED', 'try later'])
  })

  test('is about the call if the hook throws a code of a model', async () => {
    const limit = hook('aroundInference', () => Promise.reject(new AgentError('MODEL_RATE_LIMITED', 'not now')))
    const run = await createAgent({ model: scriptedModel(['done']), use: [limit] }).run('go')
    assert.ok(run.status === 'failed')
    assert.deepEqual([run.error.code, run.error.message], ['MODEL_RATE_LIMITED', 'not now'])
  })
})

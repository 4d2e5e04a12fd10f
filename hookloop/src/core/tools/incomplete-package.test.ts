import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { AgentError, createAgent, guard, hook, shadow, tool, type Schema } from 'hookloop'
import { scriptedModel } from 'hookloop/testing'

// A part of the package that is missing is not a problem of a call: the model can do nothing about it.

const missing = (): never => {
  throw new AgentError('PACKAGE_INCOMPLETE', 'A part of Hookloop cannot be loaded: re2js.')
}

function schema(validate: () => never | Promise<never>): Schema<object, object> {
  const jsonSchema = { input: () => ({ type: 'object' }), output: () => ({ type: 'object' }) }
  return { '~standard': { version: 1, vendor: 'test', validate, jsonSchema } }
}

const places = {
  'the schema of a tool': { input: schema(missing), execute: () => 'ran' },
  'an asynchronous schema': { input: schema(async () => missing()), execute: () => 'ran' },
  'a tool': { input: { type: 'object' }, execute: missing },
  'an asynchronous tool': { input: { type: 'object' }, execute: async () => missing() },
}

suite('a part of Hookloop that cannot be loaded', () => {
  for (const [place, { input, execute }] of Object.entries(places)) {
    test(`ends the run if ${place} needs it`, async () => {
      const work = tool({ name: 'work', description: 'Works.', input, execute })
      const model = scriptedModel([{ toolCalls: [{ name: 'work', args: {} }] }, 'The model got a result.'])
      const run = await createAgent({ model, use: [work] }).run('go')
      assert.equal(run.status, 'failed')
      assert.equal(run.status === 'failed' && run.error.code, 'PACKAGE_INCOMPLETE')
      assert.equal(model.requests.length, 1)
      assert.match(run.state.lastStep!.errors.map(({ during }) => during).join(), /^(?:before|around)ToolUse$/)
    })
  }

  test('ends the run if an asynchronous schema needs it, and a typed hook in shadow mode is skipped', async () => {
    const input = schema(async () => missing())
    const work = tool({ name: 'work', description: 'Works.', input, execute: () => 'ran' })
    const looks = shadow(hook('beforeToolUse', (ctx) => ctx, { name: 'looks', tool: work }))
    const model = scriptedModel([{ toolCalls: [{ name: 'work', args: {} }] }, 'The model got a result.'])
    const run = await createAgent({ model, use: [work, looks] }).run('go')
    assert.equal(run.status === 'failed' && run.error.code, 'PACKAGE_INCOMPLETE')
    const decisions = run.ledger.filter((entry) => entry.hook === 'looks').map(({ decision }) => decision)
    assert.deepEqual(decisions, ['skipped'])
  })

  test('is not reported as an invalid tool if the tool is defined', () => {
    const jsonSchema = { input: missing, output: missing }
    const input: Schema<object, object> = { '~standard': { ...schema(missing)['~standard'], jsonSchema } }
    const define = () => tool({ name: 'work', description: 'Works.', input, execute: () => 'ran' })
    assert.throws(define, { code: 'PACKAGE_INCOMPLETE' })
  })

  test('ends the run if a guard needs it', async () => {
    const work = tool({ name: 'work', description: 'Works.', input: { type: 'object' }, execute: () => 'ran' })
    const model = scriptedModel([{ toolCalls: [{ name: 'work', args: {} }] }, 'The model got a result.'])
    const run = await createAgent({ model, use: [work, guard('beforeToolUse', missing)] }).run('go')
    assert.equal(run.status === 'failed' && run.error.code, 'PACKAGE_INCOMPLETE')
  })

  test('ends the run if a hook at onStop needs it', async () => {
    const stops = hook('onStop', missing)
    const run = await createAgent({ model: scriptedModel(['Done.']), use: [stops] }).run('go')
    assert.equal(run.status === 'failed' && run.error.code, 'PACKAGE_INCOMPLETE')
  })

  test('is in the ledger of a completed run if a hook at afterExecution needs it', async () => {
    const ends = hook('afterExecution', missing)
    const run = await createAgent({ model: scriptedModel(['Done.']), use: [ends] }).run('go')
    assert.equal(run.status, 'completed')
    assert.match(run.ledger.map(({ error }) => error ?? '').join(), /cannot be loaded: re2js/)
  })
})

import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { explain } from '../../core/explain/explain.ts'
import { explanation } from '../../core/explain/explanation.ts'
import type { Use } from '../../core/agent/capability.ts'
import { tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { AgentError } from '../../errors.ts'
import { guard, hook } from '../../core/hooks/hook.ts'
import { scriptedModel, type Script } from '../../models/scripted.ts'
import { diffRuns } from '../replay/diff-runs.ts'
import { storeOf } from '../session/dying-store.fixture.ts'
import { drive, eventfulAgent } from '../session/eventful-run.fixture.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { readRuns } from './read-runs.ts'

const echo = tool({ name: 'echo', description: 'Repeats.', input: { type: 'object' }, execute: (args) => args })
const other = tool({ name: 'other', description: 'Does more.', input: { type: 'object' }, execute: () => 'more' })
const calls = { toolCalls: [{ name: 'echo', args: { a: 1 } }] }
const asks = guard('beforeToolUse', (ctx) => ctx.ask('Really?'), { name: 'asks', tool: 'echo' })
const overloaded = { error: new AgentError('MODEL_OVERLOADED', 'Too much to do.') }

type Case = { readonly script: Script; readonly use?: readonly Use[] }

const cases: { readonly [what: string]: Case } = {
  'stopped by a vote': {
    script: [calls, 'Done.'],
    use: [guard('afterStep', (ctx) => ctx.stop('Enough.', { value: { files: 7 } }), { name: 'enough' })],
  },
  'failed with a model error': { script: [calls, overloaded] },
  'failed because of a hook': {
    script: ['Done.'],
    use: [hook('beforeStep', () => assert.fail('boom'), { name: 'broken' })],
  },
  'whose input was blocked': {
    script: ['Done.'],
    use: [guard('onUserInput', (ctx) => ctx.block('Rude.'), { name: 'manners' })],
  },
  'that waits for an approval while another call was blocked': {
    script: [{ toolCalls: [{ name: 'echo', args: { a: 1 } }, { name: 'other' }] }, 'Done.'],
    use: [
      asks,
      other,
      guard('beforeToolUse', (ctx) => ctx.block('No.'), { name: 'no', tool: 'other' }),
      approval('suspend'),
    ],
  },
  'with a request for another step': {
    script: ['Done.', 'Really done.'],
    use: [
      hook('onStop', (ctx) => (ctx.continuations === 0 ? ctx.requestContinuation('Check it.') : ctx), {
        name: 'once more',
      }),
    ],
  },
}

suite('the explanation of a stored run is that of the run itself, if it is', () => {
  for (const [what, { script, use = [] }] of Object.entries(cases))
    test(what, async () => {
      const store = memoryStore()
      const run = await createAgent({ model: scriptedModel(script), store, use: [echo, ...use] }).run('Go.', {
        session: 's',
      })
      const [stored] = await readRuns(store, 's')
      assert.deepEqual(explanation(stored!), explanation(run))
      assert.equal(explain(stored!, { verbose: true }), explain(run, { verbose: true }))
    })

  test('resumed several times, with everything that a session must remember', async () => {
    const store = memoryStore()
    const run = await drive(eventfulAgent(store, { note: () => undefined }), store)
    const [stored] = await readRuns(store, 'eventful')
    assert.deepEqual(explanation(JSON.parse(JSON.stringify(stored)) as typeof stored & object), explanation(run!))
  })
})

test('explain of a stored run without an end says so, and how to resume it', async () => {
  const store = memoryStore()
  await createAgent({ model: scriptedModel([calls, 'Done.']), store, use: [echo] }).run('Go.', { session: 's' })
  const { lines } = (await store.read('s'))!
  const [stored] = await readRuns(await storeOf('s', lines.slice(0, -3)), 's')
  assert.match(explain(stored!), /^The run has not ended: it is still running, or its process was killed\.\n/)
  assert.match(explain(stored!), /to continue +agent\.resume\('s'\)$/)
  assert.equal(explanation(stored!).decided.reason, 'unfinished')
})

test('diffRuns compares stored runs step by step, also of one session', async () => {
  const store = memoryStore()
  const model = scriptedModel([
    calls,
    'Done.',
    { toolCalls: [{ name: 'echo', args: { a: 2 } }] },
    'Done.',
    calls,
    'Done.',
  ])
  const agent = createAgent({ model, store, use: [echo] })
  for (let i = 0; i < 3; i++) await agent.run('Go.', { session: 's' })
  const [one, two, three] = await readRuns(store, 's')
  const diff = diffRuns(one!, two!)
  assert.deepEqual(diff.partsAt, { step: 0, in: 'toolCalls' })
  assert.deepEqual(diff.messages, { shared: 1, a: 1, b: 1 })
  assert.equal(diffRuns(one!, three!).same, true)
})

import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Use } from '../../core/agent/capability.ts'
import { tool, type Tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { guard, hook } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { hashText } from '../../values/json.ts'
import { NO_SUM } from '../log/session-log.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { dyingStore, storeOf, toolBegin, toolEnd, type Death } from './dying-store.fixture.ts'

// Sentences of site/concepts/sessions.md, one example each.

type Pay = { readonly idempotent?: boolean; readonly ask?: boolean }

function paying(paid: unknown[], { idempotent = false, ask = false }: Pay = {}): Tool {
  return tool({
    name: 'pay',
    description: 'Pays.',
    input: { type: 'object' },
    idempotent,
    ask,
    execute: (args) => (paid.push((args as { euros: number }).euros), 'paid'),
  })
}

/** An agent that pays ten euros, in its first step. */
function payer(store: SessionStore, use: readonly Use[], instructions = 'Pay.') {
  const pays = { toolCalls: [{ name: 'pay', args: { euros: 10 } }] }
  const model = scriptedModel(({ messages }) => (messages.length < 2 ? pays : 'Done.'))
  return { model, agent: createAgent({ model, store, instructions, use }) }
}

/** A session whose process died. */
async function interrupted(use: readonly Use[], death: Death): Promise<SessionStore> {
  const store = memoryStore()
  const dying = dyingStore(store, death)
  await Promise.race([payer(dying, use).agent.run('Pay.', { session: 's' }), dying.died])
  return store
}

const inTheCall: Death = { at: toolEnd, stored: false }
const afterTheCall: Death = { at: /"t":"step"/, stored: false }
const inTheSecondStep: Death = { at: /"t":"final"/, stored: false }

test('the hooks of the open step run again, and none of a closed step', async () => {
  const fired: string[] = []
  const look = hook('afterToolUse', (ctx) => (fired.push('afterToolUse'), ctx))
  for (const [death, expected] of [
    [afterTheCall, ['afterToolUse']],
    [inTheSecondStep, []],
  ] as const) {
    const store = await interrupted([paying([]), look], death)
    fired.length = 0
    assert.equal((await payer(store, [paying([]), look]).agent.resume('s')).status, 'completed')
    assert.deepEqual(fired, expected)
  }
})

test('effect: true keeps its recorded result after a resume, if its input is the same', async () => {
  const decides = (text: string, made: string[]) =>
    hook('afterToolUse', (ctx) => (made.push(text), ctx.withOutput(text)), { name: 'decides', effect: true })
  const changes = hook('afterToolUse', (ctx) => ctx.withOutput('changed'), { name: 'changes', priority: 1 })
  for (const [before, output] of [
    [[], 'first'],
    [[changes], 'second'],
  ] as const) {
    const made: string[] = []
    const store = await interrupted([paying([]), decides('first', made)], afterTheCall)
    const run = await payer(store, [paying([]), ...before, decides('second', made)]).agent.resume('s')
    assert.equal(run.state.execution!.steps.at(0)!.toolExecutions[0]!.output, output)
    assert.deepEqual(made, output === 'first' ? ['first'] : ['first', 'second'])
  }
})

suite('an interrupted call', () => {
  const stops = guard('beforeStep', (ctx) => ctx.stop('Enough.'), { name: 'stops' })
  const blocks = guard('beforeToolUse', (ctx) => ctx.block('No.'), { name: 'blocks' })
  const more = hook('beforeToolUse', (ctx) => ctx.withArgs({ euros: 20 }), { name: 'more' })
  for (const [what, then, now, use, paid] of [
    ['runs again if its tool is idempotent then and now', true, true, [], [10, 10]],
    ['does not run again if its tool was not idempotent', false, true, [], [10]],
    ['does not run again if its tool is no longer idempotent', true, false, [], [10]],
    ['of an idempotent tool does not run again with other arguments', true, true, [more], [10]],
    ['of an idempotent tool does not run again if a guard blocks it', true, true, [blocks], [10]],
    ['of an idempotent tool does not run again if the run is stopped', true, true, [stops], [10]],
  ] as const) {
    test(what, async () => {
      const done: unknown[] = []
      const store = await interrupted([paying(done, { idempotent: then })], inTheCall)
      const run = await payer(store, [paying(done, { idempotent: now }), ...use]).agent.resume('s')
      assert.deepEqual(done, paid)
      const { status } = run.state.execution!.steps.at(0)!.toolExecutions[0]!
      assert.equal(status, paid.length === 2 ? 'ok' : 'outcomeUnknown')
    })
  }
})

test('an edit is asked about again by guards whose question was not shown', async () => {
  const paid: unknown[] = []
  const large = guard(
    'beforeToolUse',
    (ctx) => ((ctx.toolCall.args as { euros: number }).euros > 100 ? ctx.ask('So much?') : ctx),
    { name: 'large' },
  )
  const { agent } = payer(memoryStore(), [paying(paid, { ask: true }), large, approval('suspend')])
  const asked = await agent.run('Pay.', { session: 's' })
  assert.ok(asked.status === 'suspended')
  const edited = await agent.resume('s', { answers: { [asked.pending[0]!.id]: { allow: { euros: 200 } } } })
  assert.ok(edited.status === 'suspended')
  assert.deepEqual([edited.pending[0]!.toolCall.args, paid], [{ euros: 200 }, []])
  assert.match(edited.pending[0]!.message, /So much\?/)
  await agent.resume('s', { answers: { [edited.pending[0]!.id]: 'allow' } })
  assert.deepEqual(paid, [200])
})

test('a stop by a new guard closes the open step with the results that are known, and nothing new begins in it', async () => {
  const paid: unknown[] = []
  const stops = guard('beforeStep', (ctx) => ctx.stop('Enough.'), { name: 'stops' })
  for (const [death, status, count] of [
    [afterTheCall, 'ok', 1],
    [{ at: toolBegin, stored: false }, 'blocked', 0],
  ] as const) {
    paid.length = 0
    const store = await interrupted([paying(paid)], death)
    const run = await payer(store, [paying(paid), stops]).agent.resume('s')
    const [result] = run.state.execution!.steps.at(0)!.toolExecutions
    assert.deepEqual([run.status, result!.status, paid.length], ['stopped', status, count])
  }
})

test('a conversation keeps the instructions that it started with, until changeSystemPrompt', async () => {
  const store = memoryStore()
  await payer(store, [paying([])], 'First.').agent.run('Pay.', { session: 's' })
  const { agent, model } = payer(store, [paying([])], 'Second.')
  await agent.run('Again.', { session: 's' })
  await agent.session('s').changeSystemPrompt('Third.')
  await agent.run('Again.', { session: 's' })
  assert.deepEqual(
    model.requests.map(({ system }) => system),
    ['First.', 'Third.'],
  )
})

test('a guard whose when has changed is not missing, and one that was moved to another trigger is', async () => {
  const careful = (when: boolean) => guard('beforeToolUse', (ctx) => ctx, { name: 'careful', when: () => when })
  const store = await interrupted([paying([]), careful(true)], inTheCall)
  const moved = guard('beforeStep', (ctx) => ctx, { name: 'careful' })
  await assert.rejects(payer(store, [paying([]), moved]).agent.resume('s'), { code: 'RESUME_GUARD_MISSING' })
  assert.equal((await payer(store, [paying([]), careful(false)]).agent.resume('s')).status, 'completed')
})

test('a turn that failed before its input was taken can be sent again', async () => {
  let isBroken = true
  const fails = hook('onUserInput', (ctx) => {
    if (isBroken) throw new Error('broken')
    return ctx
  })
  const paid: unknown[] = []
  const { agent } = payer(memoryStore(), [paying(paid), fails])
  const turn = { session: 's', turn: 'first' }
  assert.equal((await agent.run('Pay.', turn)).status, 'failed')
  isBroken = false
  assert.equal((await agent.run('Pay.', turn)).status, 'completed')
  assert.deepEqual(paid, [10])
})

test('agent.run and agent.resume do not fire onSessionStart', async () => {
  const fired: string[] = []
  const starts = hook('onSessionStart', (ctx) => (fired.push(ctx.trigger), ctx))
  const store = await interrupted([paying([]), starts], afterTheCall)
  const { agent } = payer(store, [paying([]), starts])
  await agent.resume('s')
  assert.deepEqual(fired, [])
  await agent.session('s').send('Again.')
  assert.deepEqual(fired, ['onSessionStart'])
})

test('a session of an older format version is rejected', async () => {
  const store = memoryStore()
  await payer(store, [paying([])]).agent.run('Pay.', { session: 's' })
  let sum = NO_SUM
  const older = (await store.read('s'))!.lines.map((line) => {
    const body = line.replace(/,"sum":"\w+"}$/, '}').replace('"t":"session","version":4', '"t":"session","version":2')
    sum = hashText(`${sum}${body}`).slice(0, 16)
    return `${body.slice(0, -1)},"sum":"${sum}"}`
  })
  const { agent } = payer(await storeOf('s', older), [paying([])])
  await assert.rejects(agent.run('Again.', { session: 's' }), { code: 'STATE_VERSION', value: 2 })
  await assert.rejects(agent.resume('s'), { code: 'STATE_VERSION', value: 2 })
})

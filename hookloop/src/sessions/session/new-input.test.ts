import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { agentTool } from '../../core/agent/agent-tool.ts'
import { tool } from '../../core/agent/tool.ts'
import type { Use } from '../../core/agent/capability.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { guard, hook } from '../../core/hooks/hook.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import type { ModelRequest } from '../../core/state/inference.ts'
import type { AgentEvent } from '../../core/state/event.ts'
import { historyOf } from '../log/history.fixture.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { answerApproval, listApprovals } from './approvals.ts'
import { dyingStore } from './dying-store.fixture.ts'
import { replay } from '../replay/replay.ts'

function shop(store: SessionStore, { use = [] as readonly Use[], first = undefined as ScriptedTurn | undefined } = {}) {
  const paid: string[] = []
  const requests: ModelRequest['messages'][] = []
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    input: { type: 'object' },
    ask: true,
    execute: async ({ to }) => {
      paid.push(to as string)
      return `paid ${to as string}`
    },
  })
  const asks: ScriptedTurn = { toolCalls: ['ann', 'bob'].map((to) => ({ name: 'pay', args: { to }, id: `pay-${to}` })) }
  const model = scriptedModel(({ messages }) => {
    requests.push(messages)
    return messages.slice().some(({ role }) => role === 'assistant') ? 'As you like.' : (first ?? asks)
  })
  const agent = createAgent({ model, store, use: [pay, approval('suspend'), ...use] })
  return { agent, paid, requests }
}

async function kept(store: SessionStore) {
  return historyOf((await store.read('s'))!.lines, 's')
}

suite('new input to a session that waits for an answer', () => {
  test('is rejected by default, with the option that takes it', async () => {
    const store = memoryStore()
    const { agent } = shop(store)
    await agent.run('Pay.', { session: 's' })
    const rejected = {
      code: 'STATE_SUSPENDED',
      message: /agent\.resume\('s', \{ answers \}\) first.*onNewInput: 'block'/,
    }
    await assert.rejects(agent.run('Wait!', { session: 's' }), rejected)
    await assert.rejects(agent.run('Wait!', { session: 's', onNewInput: 'reject' }), rejected)
    await assert.rejects(agent.session('s').send('Wait!'), rejected)
    await assert.rejects(agent.run('Wait!', { session: 's', onNewInput: 'no' as never }), {
      code: 'AGENT_INVALID_OPTION',
    })
    await assert.rejects(agent.session('s').clear(), /waits for an approval and cannot be changed/)
    assert.equal((await listApprovals(store)).length, 2)
  })

  for (const how of ['run', 'send', 'stream'] as const) {
    test(`blocks the open questions with onNewInput: block, and the model receives that and the input: ${how}`, async () => {
      const store = memoryStore()
      const { agent, paid, requests } = shop(store)
      await agent.run('Pay.', { session: 's' })
      const options = { onNewInput: 'block' } as const
      const events: AgentEvent[] = []
      if (how === 'run') await agent.run('Do not pay.', { session: 's', ...options })
      else if (how === 'send') await agent.session('s').send('Do not pay.', options)
      else for await (const event of agent.stream('Do not pay.', { session: 's', ...options })) events.push(event)
      const { state, open, records } = await kept(store)
      assert.deepEqual([paid, open, state!.execution!.status], [[], undefined, 'completed'])
      const last = requests.at(-1)!.slice()
      assert.deepEqual(
        last.map(({ role }) => role),
        ['user', 'assistant', 'tool', 'user'],
      )
      assert.match(JSON.stringify(last[2]), /The user sent a new message.*The user sent a new message/)
      assert.equal(requests.length, 2, 'the model is not called for the run that ended')
      assert.equal(records.filter(({ t }) => t === 'final').length, 2)
      assert.deepEqual(await listApprovals(store), [])
      assert.ok(events.filter(({ type }) => type === 'finished').length <= 1)
    })
  }

  test('runs nothing new, also if it was approved before', async () => {
    const store = memoryStore()
    const { agent, paid, requests } = shop(store)
    await agent.run('Pay.', { session: 's' })
    const [first] = await listApprovals(store)
    await answerApproval(store, { session: 's', approval: first!.id, answer: 'allow' })
    await agent.run('Stop here.', { session: 's', onNewInput: 'block' })
    assert.deepEqual(paid, [])
    assert.match(JSON.stringify(requests.at(-1)), /The user sent a new message.*The user sent a new message/)
  })

  test('ends the run like any other, and both runs can be replayed', async () => {
    const store = memoryStore()
    const ends: unknown[] = []
    const watch = hook('afterExecution', (ctx) => (ends.push(ctx.outcome.resolvedBy), ctx), { name: 'watch' })
    const { agent } = shop(store, { use: [watch] })
    await agent.run('Pay.', { session: 's' })
    await agent.run('Stop.', { session: 's', onNewInput: 'block' })
    assert.deepEqual(ends, ['newInput', 'completion'])
    const stored = (await store.read('s'))!
    for (const run of [0, 1]) assert.deepEqual((await replay(stored, { agent, run })).record, { status: 'complete' })
  })

  test('ends a run that waits for approval of its end, without another step', async () => {
    const store = memoryStore()
    const ends: unknown[] = []
    const asks = guard('onStop', (ctx) => (ends.length === 0 ? ctx.ask('Enough?') : ctx))
    const watch = hook('afterExecution', (ctx) => (ends.push(ctx.outcome.resolvedBy), ctx), { name: 'watch' })
    const { agent, requests } = shop(store, { use: [asks, watch], first: 'Hello.' })
    assert.equal((await agent.run('Hello?', { session: 's' })).status, 'suspended')
    await agent.run('Stop.', { session: 's', onNewInput: 'block' })
    assert.deepEqual([ends, requests.length], [['newInput', 'completion'], 2])
  })

  test('stops a subagent that waits, and the model receives that', async () => {
    const store = memoryStore()
    const done: string[] = []
    const dig = tool({
      name: 'dig',
      description: '',
      input: { type: 'object' },
      execute: () => (done.push('dug'), 'dug 3 m'),
    })
    const childModel = scriptedModel(({ messages }) =>
      messages.length === 1
        ? { toolCalls: [{ name: 'dig', args: {} }] }
        : { toolCalls: [{ name: 'pay', args: { to: 'eve' } }] },
    )
    const delegate = agentTool({
      name: 'delegate',
      description: '',
      input: { type: 'object' },
      to: () => ({ name: 'digger', to: child, input: 'Dig.' }),
    })
    const child = { model: childModel }
    const first = { toolCalls: [{ name: 'delegate', args: {} }] }
    const { agent, paid, requests } = shop(store, { use: [dig, delegate], first })
    assert.equal((await agent.run('Go.', { session: 's' })).status, 'suspended')
    await agent.run('Never mind.', { session: 's', onNewInput: 'block' })
    assert.deepEqual([paid, done], [[], ['dug']])
    assert.match(
      JSON.stringify(requests.at(-1)),
      /The subagent .*digger.* was stopped by .*newInput.* before it had finished/,
    )
  })
})

test('new input to a session that was interrupted closes its step, and no effect is lost or repeated', async () => {
  for (let at = 1; at <= 12; at++) {
    const store = memoryStore()
    const dying = dyingStore(store, { at, stored: true })
    const done: string[] = []
    const act = tool({
      name: 'act',
      description: '',
      input: { type: 'object' },
      execute: async ({ on }) => {
        done.push(on as string)
        return `acted on ${on as string}`
      },
    })
    const turns = [['a', 'b'], ['c']].map((all) => ({ toolCalls: all.map((on) => ({ name: 'act', args: { on } })) }))
    const ends: unknown[] = []
    const watch = hook('afterExecution', (ctx) => (ends.push(ctx.outcome.resolvedBy), ctx), { name: 'watch' })
    const make = (over: SessionStore) =>
      createAgent({
        model: scriptedModel(
          ({ messages }) =>
            turns[messages.slice().filter(({ role }) => role === 'assistant').length] ?? JSON.stringify(messages),
        ),
        store: over,
        use: [act, watch],
      })
    await Promise.race([make(dying).run('Go.', { session: 's' }), dying.died])
    const before = done.slice()
    const isOpen = (await kept(store)).open !== undefined
    ends.length = 0
    const run = await make(store).run('And now?', { session: 's', onNewInput: 'block' })
    assert.deepEqual(ends, isOpen ? ['newInput', 'completion'] : ['completion'], String(at))
    const { open, state } = await kept(store)
    assert.deepEqual([run.status, open], ['completed', undefined], String(at))
    assert.equal(new Set(done).size, done.length, String(at))
    const said = JSON.stringify(state!.messages)
    for (const on of before) assert.ok(said.includes(`acted on ${on}`) || said.includes('may have had an effect'), on)
  }
})

test('new input to a session that was interrupted before its first step ends that run without a model call', async () => {
  const store = memoryStore()
  const ends: unknown[] = []
  const use = [
    hook('beforeExecution', async (ctx) => ctx, { name: 'prepare', effect: true }),
    hook('afterExecution', (ctx) => (ends.push(ctx.outcome.resolvedBy), ctx), { name: 'watch' }),
  ]
  const dying = dyingStore(store, { at: /"kind":"hook"/, stored: true })
  await Promise.race([shop(dying, { use }).agent.run('Pay.', { session: 's' }), dying.died])
  const { open, state } = await kept(store)
  assert.deepEqual([open?.root.hasBegun, state], [false, undefined])
  const { agent, requests } = shop(store, { use, first: 'Hello.' })
  await agent.run('Hello?', { session: 's', onNewInput: 'block' })
  assert.deepEqual([ends, requests.length], [['newInput', 'completion'], 1])
})

/** What calls that were approved have become, by the record after which the process died. */
const interrupted = [
  [/"t":"resume"/, 'pay-ann blocked', 'pay-bob blocked'],
  [/"t":"begin".*"call":"pay-ann"/, 'pay-ann outcomeUnknown', 'pay-bob blocked'],
  [/"t":"begin".*"call":"pay-bob"/, 'pay-ann ok', 'pay-bob outcomeUnknown'],
] as const

for (const [at, ...expected] of interrupted) {
  test(`new input after a crash during approved calls: the model gets what has become of each, ${expected.join(', ')}`, async () => {
    const store = memoryStore()
    const first = await shop(store).agent.run('Pay.', { session: 's' })
    assert.ok(first.status === 'suspended')
    const answers = Object.fromEntries(first.pending.map(({ id }) => [id, 'allow' as const]))
    const dying = dyingStore(store, { at, stored: true })
    await Promise.race([shop(dying).agent.resume('s', { answers }), dying.died])

    const seen: string[] = []
    const looks = hook(
      'afterToolUse',
      async (ctx) => (seen.push(`${ctx.toolCall.id} ${ctx.toolExecution.status}`), ctx),
    )
    const { agent, paid, requests } = shop(store, { use: [looks] })
    await agent.run('Wait!', { session: 's', onNewInput: 'block' })
    const results = JSON.stringify(
      requests
        .at(-1)!
        .slice()
        .filter(({ role }) => role === 'tool'),
    )
    assert.deepEqual([seen.toSorted(), paid], [expected, []])
    const told = { blocked: /Not run/, outcomeUnknown: /It may have had an effect/, ok: /paid ann/ }
    for (const each of expected) assert.match(results, told[each.split(' ')[1] as keyof typeof told])
  })
}

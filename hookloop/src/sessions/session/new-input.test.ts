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

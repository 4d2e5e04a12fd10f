import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as soon } from 'node:timers/promises'
import type { Use } from '../../core/agent/capability.ts'
import { tool, type OnUnknownOutcome } from '../../core/agent/tool.ts'
import { approval, type ApprovalOptions } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import type { Answer } from '../../core/state/tool-call.ts'
import { guard, observe } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { answerApproval, listApprovals } from './approvals.ts'
import { dyingStore, toolEnd } from './dying-store.fixture.ts'
import { readSession } from '../log/read-session.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'

type Shop = {
  readonly to?: readonly string[]
  readonly ask?: boolean
  readonly onUnknownOutcome?: OnUnknownOutcome | undefined
  readonly how?: ApprovalOptions['answer'] | ApprovalOptions
  readonly use?: readonly Use[]
}

/** Processes that pay over one store, and what was really paid by all of them. */
function shop({ to = ['ann'], ask = false, onUnknownOutcome = 'ask', how = 'suspend', use = [] }: Shop = {}) {
  const store = memoryStore()
  const paid: { readonly to: string; readonly key: string }[] = []
  const agentOver = (over: SessionStore) => {
    const pay = tool({
      name: 'pay',
      description: 'Pays.',
      input: { type: 'object' },
      concurrent: true,
      ask,
      ...(onUnknownOutcome !== undefined && { onUnknownOutcome }),
      execute: async (args, { idempotencyKey }) => {
        const payee = (args as { to: string }).to
        paid.push({ to: payee, key: idempotencyKey })
        await soon()
        return `paid ${payee}`
      },
    })
    const model = scriptedModel(({ messages }) => {
      if (messages.at(-1)?.role === 'tool') return 'Done.'
      return { toolCalls: to.map((each) => ({ name: 'pay', args: { to: each }, id: `pay-${each}` })) }
    })
    return createAgent({ model, store: over, use: [pay, approval(how), ...use] })
  }
  const agent = agentOver(store)
  const listed = () => listApprovals(store)
  return {
    store,
    paid,
    agent,
    listed,
    /** A process that dies when the call is made, and what became of it is not stored. */
    dieIn: async (work: (process: typeof agent) => Promise<unknown>, at: number | RegExp = toolEnd) => {
      const dying = dyingStore(store, { at, stored: false })
      await Promise.race([work(agentOver(dying)), dying.died])
      await soon()
    },
    answer: async (given: Answer) => {
      const [asked] = await listed()
      await answerApproval(store, { session: 's', approval: asked!.id, answer: given })
    },
    results: async () => {
      const { state } = readSession((await store.read('s'))!.lines)
      return state!.execution!.steps.at(0)!.toolExecutions.map(({ name: _tool, ...rest }) => rest)
    },
  }
}

const begin = (agent: ReturnType<typeof shop>['agent']) => agent.run('Pay.', { session: 's' })
const resume = (agent: ReturnType<typeof shop>['agent']) => agent.resume('s')
const mayHave = 'The process ended while the tool was running. It may have had an effect.'

test('D04: the approver is asked about a call that a crash interrupted, and allow runs it again under the same key', async () => {
  const { agent, dieIn, listed, answer, paid, results } = shop()
  await dieIn(begin)
  assert.equal((await resume(agent)).status, 'suspended')
  assert.deepEqual(
    (await listed()).map(({ message, by, interruptions }) => [message, by, interruptions]),
    [
      [
        '"pay" was started and interrupted before its result was known: it may have had an effect. Run it again?',
        'tool "pay"',
        1,
      ],
    ],
  )
  await answer('allow')
  assert.equal((await resume(agent)).status, 'completed')
  assert.deepEqual([paid.length, paid[0]], [2, paid[1]])
  assert.deepEqual(await results(), [{ status: 'ok', output: 'paid ann' }])
})

test('D04: a blocked call is not run again, and the model receives outcomeUnknown with the reason of the approver', async () => {
  const { agent, dieIn, answer, paid, results } = shop()
  await dieIn(begin)
  await resume(agent)
  await answer({ block: 'The bank says it arrived.' })
  assert.equal((await resume(agent)).status, 'completed')
  const output = `${mayHave} It was not run again: The bank says it arrived.`
  assert.deepEqual(await results(), [{ status: 'outcomeUnknown', output, interrupted: true, by: 'approval' }])
  assert.equal(paid.length, 1)
})

test('D04: an allow of the call does not allow running it again', async () => {
  const { agent, store, dieIn, listed, answer, paid } = shop({ ask: true })
  await begin(agent)
  const [first] = await listed()
  await answer('allow')
  await dieIn(resume)
  assert.equal(paid.length, 1)
  assert.equal((await resume(agent)).status, 'suspended')
  const [second] = await listed()
  assert.notEqual(second!.id.split('#')[1], first!.id.split('#')[1])
  await assert.rejects(answerApproval(store, { session: 's', approval: first!.id, answer: 'allow' }), {
    code: 'ANSWER_USED',
  })
  await answer({ block: 'no' })
  await resume(agent)
  assert.equal(paid.length, 1)
})

test('D04: without an approver the model receives outcomeUnknown', async () => {
  const { agent, dieIn, paid, results } = shop({ how: 'block' })
  await dieIn(begin)
  assert.equal((await resume(agent)).status, 'completed')
  assert.deepEqual([paid.length, (await results())[0]?.status], [1, 'outcomeUnknown'])
})

test('D04: an agent asks about every tool if its approval says so, except for tools with a policy of their own', async () => {
  const how = { answer: 'suspend', onUnknownOutcome: 'ask' } as const
  const statuses = await Promise.all(
    [undefined, 'ask', 'tell'].map(async (onUnknownOutcome) => {
      const store = memoryStore()
      const pay = tool({
        name: 'pay',
        description: 'Pays.',
        input: { type: 'object' },
        execute: async () => 'paid',
        ...(onUnknownOutcome !== undefined && { onUnknownOutcome: onUnknownOutcome as OnUnknownOutcome }),
      })
      const model = () =>
        scriptedModel(({ messages }) =>
          messages.at(-1)?.role === 'tool' ? 'Done.' : { toolCalls: [{ name: 'pay', id: 'p' }] },
        )
      const dying = dyingStore(store, { at: toolEnd, stored: false })
      const use = [pay, approval(how)]
      void createAgent({ model: model(), store: dying, use }).run('Pay.', { session: 's' })
      await dying.died
      await soon()
      const run = await createAgent({ model: model(), store, use }).resume('s')
      return run.status === 'suspended' ? `asked by ${run.pending[0]!.by}` : run.status
    }),
  )
  assert.deepEqual(statuses, ['asked by approval', 'asked by tool "pay"', 'completed'])
})

test('D04: what may have been done is not run again with other arguments', async () => {
  const { agent, store, dieIn, listed, paid } = shop()
  await dieIn(begin)
  await resume(agent)
  const [asked] = await listed()
  const other = { allow: { to: 'bob' } }
  await assert.rejects(answerApproval(store, { session: 's', approval: asked!.id, answer: other }), {
    code: 'ANSWER_INVALID',
  })
  await assert.rejects(agent.resume('s', { answers: { [asked!.id]: other } }), { code: 'ANSWER_INVALID' })
  assert.equal(paid.length, 1)
  const here = shop({ how: () => other })
  await here.dieIn(begin)
  await resume(here.agent)
  assert.deepEqual([here.paid.length, (await here.results())[0]?.status], [1, 'outcomeUnknown'])
})

test('D04: a guard that blocks running it again leaves the outcome unknown', async () => {
  let closed = false
  const hours = guard('beforeToolUse', (ctx) => (closed ? ctx.block('The bank is closed.') : ctx), { name: 'hours' })
  const { agent, dieIn, answer, paid, results } = shop({ use: [hours] })
  await dieIn(begin)
  await resume(agent)
  await answer('allow')
  closed = true
  await resume(agent)
  const output = `${mayHave} It was not run again: The bank is closed.`
  assert.deepEqual(await results(), [{ status: 'outcomeUnknown', output, interrupted: true, by: 'hours' }])
  assert.equal(paid.length, 1)
})

test('D04: a run that ends while the question is open has an unknown outcome', async () => {
  const cancel = new AbortController()
  const ending = observe('onPause', () => cancel.abort(), { name: 'impatient' })
  const { agent, dieIn, results } = shop({ use: [ending] })
  await dieIn(begin)
  assert.equal((await agent.resume('s', { signal: cancel.signal })).status, 'cancelled')
  const [result] = await results()
  assert.deepEqual([result?.status, result?.interrupted], ['outcomeUnknown', true])
  assert.match(result!.output as string, /^The process ended while .* It was not run again: Not run: .*cancelled\./)
})

test('an invalid policy for interrupted calls is rejected', () => {
  const define = (how: object) => () =>
    tool({ name: 'pay', description: 'Pays.', input: { type: 'object' }, execute: () => 1, ...how })
  assert.throws(define({ idempotent: true, onUnknownOutcome: 'ask' }), { code: 'TOOL_INVALID' })
  assert.throws(() => approval({ answer: 'suspend', onUnknownOutcome: 'retry' as never }), {
    code: 'AGENT_INVALID_OPTION',
  })
})

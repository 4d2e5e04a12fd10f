import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { approval } from '../../capabilities/approval.ts'
import { subagents } from '../../capabilities/subagents/index.ts'
import { createAgent } from '../../create-agent.ts'
import { guard, hook, shadow, type Hook } from '../hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { answerApproval, listApprovals, memoryStore } from '../../sessions/index.ts'
import type { SavedRun } from '../state/saved-run.ts'
import { textOf } from '../state/message.ts'
import { askTriggers, type Answer, type AskTrigger } from '../state/tool-call.ts'
import type { Agent } from '../agent/agent.ts'
import type { Use } from '../agent/capability.ts'
import { explain } from '../explain/explain.ts'
import { explanation } from '../explain/explanation.ts'
import type { Run } from '../agent/run.ts'

// ctx.ask at every trigger but beforeToolUse: one mechanism, with every approver and at any time.

const once = (trigger: AskTrigger, name = 'asks'): Hook<AskTrigger> =>
  guard(
    trigger,
    (ctx) =>
      trigger === 'onStop' && ctx.state.stepCount > 1
        ? ctx
        : ctx.state.stepCount > 0 && trigger !== 'onStop'
          ? ctx
          : ctx.ask('Really?'),
    { name },
  )

/** Counts what happens once per run: a hook of the trigger that changes the state. */
const marks = (trigger: AskTrigger): Hook<AskTrigger> =>
  hook(
    trigger,
    (ctx) => ctx.withState((state) => state.withMetadata('marks', Number(state.metadata['marks'] ?? 0) + 1)),
    {
      name: 'marks',
    },
  )

function agentWith(
  trigger: AskTrigger,
  ...use: readonly Use[]
): { readonly agent: Agent; readonly calls: () => number } {
  const model = scriptedModel(() => 'The answer.')
  const agent = createAgent({ model, use: [once(trigger), marks(trigger), ...use], store: memoryStore() })
  return { agent, calls: () => model.requests.length }
}

const endOf = (run: Run) => [run.status, run.reason, run.final?.by ?? '']

/** What a blocked question means at each trigger, and how often the model was called then. */
const blocked: { readonly [T in AskTrigger]: { readonly end: readonly unknown[]; readonly calls: number } } = {
  onUserInput: { end: ['stopped', 'inputBlocked', 'approval'], calls: 0 },
  beforeStep: { end: ['stopped', 'stopRequested', 'approval'], calls: 0 },
  beforeInference: { end: ['stopped', 'stopRequested', 'approval'], calls: 0 },
  onStop: { end: ['completed', 'completed', 'completion'], calls: 2 },
}

/** Every way in which an answer reaches the run. */
const ways: { readonly [way: string]: (trigger: AskTrigger, answer: Answer) => Promise<readonly [Run, number]> } = {
  'an approver': async (trigger, answer) => {
    const { agent, calls } = agentWith(
      trigger,
      approval(() => answer),
    )
    return [await agent.run('go'), calls()]
  },
  'a resume': async (trigger, answer) => {
    const { agent, calls } = agentWith(trigger, approval('suspend'))
    const run = await agent.run('go')
    assert.ok(run.status === 'suspended' && run.pending.length === 1)
    return [await agent.resume(run, { answers: { [run.pending[0]!.id]: answer } }), calls()]
  },
  'a resume of a saved run': async (trigger, answer) => {
    const { agent, calls } = agentWith(trigger, approval('suspend'))
    const saved = JSON.parse(JSON.stringify(await agent.run('go'))) as SavedRun
    const id = saved.pending[0]!.id
    const still = await agent.resume(saved)
    assert.ok(still.status === 'suspended' && still.pending[0]!.id === id)
    return [await agent.resume(JSON.parse(JSON.stringify(still)) as SavedRun, { answers: { [id]: answer } }), calls()]
  },
  'a resume of a session': async (trigger, answer) => {
    const { agent, calls } = agentWith(trigger, approval('suspend'))
    const run = await agent.run('go', { session: 's' })
    assert.ok(run.status === 'suspended')
    return [await agent.resume('s', { answers: { [run.pending[0]!.id]: answer } }), calls()]
  },
}

for (const trigger of askTriggers) {
  suite(`a guard that asks at ${trigger}`, () => {
    for (const [way, run] of Object.entries(ways)) {
      test(`lets the run continue when it is allowed by ${way}`, async () => {
        const [ended, calls] = await run(trigger, 'allow')
        assert.deepEqual([endOf(ended), calls], [['completed', 'completed', 'completion'], 1])
        assert.equal(ended.state.metadata['marks'], 1)
        assert.equal(ended.state.messages.filter(({ role }) => role === 'user').length, 1)
        assert.match(explain(ended), /The run is complete/)
        const asked = { step: 0, tool: trigger, answer: 'approved', message: 'Really?', askers: [{ by: 'asks' }] }
        assert.deepEqual(explanation(ended).asked, [asked])
        assert.ok(ended.ledger.some((entry) => entry.trigger === trigger && entry.decision === 'approved'))
      })

      test(`is blocked by ${way}, and explain says why`, async () => {
        const [ended, calls] = await run(trigger, { block: 'Not today.' })
        assert.deepEqual([endOf(ended), calls], [blocked[trigger].end, blocked[trigger].calls])
        const said = ended.state.messages.map(({ content }) => textOf(content))
        if (trigger === 'onStop') assert.ok(said.includes('Not today.'))
        else assert.ok(ended.final?.message === 'Not today.')
        assert.equal(said.includes('go'), trigger !== 'onUserInput')
        const asked = { step: 0, tool: trigger, answer: 'blocked', message: 'Really?', reason: 'Not today.' }
        assert.deepEqual(explanation(ended).asked, [{ ...asked, askers: [{ by: 'asks' }] }])
        assert.match(explain(ended), new RegExp(`step 1, ${trigger}.*: Really\\? blocked: Not today\\.`))
        assert.ok(ended.ledger.some((entry) => entry.trigger === trigger && entry.decision === 'blocked'))
      })
    }

    test('is cancelled if the run is cancelled while the approver is asked', async () => {
      const user = new AbortController()
      const never = approval(() => new Promise<never>(() => setImmediate(() => user.abort())))
      const { agent } = agentWith(trigger, never)
      const run = await agent.run('go', { signal: user.signal })
      assert.deepEqual([run.status, run.reason], ['cancelled', 'userRequested'])
    })

    test('is blocked if the agent has no approver', async () => {
      const { agent } = agentWith(trigger)
      const run = await agent.run('go')
      assert.deepEqual(endOf(run), blocked[trigger].end)
    })

    test('is listed and answered in the store', async () => {
      const store = memoryStore()
      const model = scriptedModel(() => 'The answer.')
      const agent = createAgent({ model, use: [once(trigger), approval('suspend')], store })
      await agent.run('go', { session: 's' })
      const [open] = await listApprovals(store)
      assert.deepEqual(
        [open?.trigger, open?.toolCall.name, open?.message, open?.by],
        [trigger, trigger, 'Really?', 'asks'],
      )
      await answerApproval(store, { session: 's', approval: open!.id, answer: 'allow' })
      assert.equal((await agent.resume('s')).status, 'completed')
    })

    test('asks once together with another guard, and a block or a stop wins', async () => {
      const asked: string[] = []
      const approver = approval(({ message }) => (asked.push(message), 'allow'))
      const { agent } = agentWith(trigger, once(trigger, 'too'), approver)
      await agent.run('go')
      assert.deepEqual(asked, ['Really?; Really?'])
      const urgent = guard(trigger, (ctx) =>
        'block' in ctx ? ctx.block('no') : (ctx as { stop: (why: string) => typeof ctx }).stop('no'),
      )
      const ended = await agentWith(trigger, urgent, approver).agent.run('go')
      assert.deepEqual([asked.length, ended.status], [1, 'stopped'])
    })

    test('asks nothing in shadow mode', async () => {
      const model = scriptedModel(() => 'done')
      const run = await createAgent({ model, use: [shadow(once(trigger)), approval('suspend')] }).run('go')
      assert.equal(run.status, 'completed')
      assert.ok(run.ledger.some((entry) => entry.shadow === true && entry.decision === 'ask'))
    })

    test('rejects an answer with arguments', async () => {
      const { agent } = agentWith(trigger, approval('suspend'))
      const run = await agent.run('go')
      assert.ok(run.status === 'suspended')
      const answers = { [run.pending[0]!.id]: { allow: { x: 1 } } }
      await assert.rejects(agent.resume(run, { answers }), { code: 'ANSWER_INVALID' })
    })

    if (trigger !== 'onUserInput') {
      test('suspends its parent if it asks in a subagent', async () => {
        const child = createAgent({ model: scriptedModel(() => 'child answer'), use: [once(trigger)] })
        const spawn = { name: 'spawn_subagent', args: { subagent: 'child', prompt: 'work' } }
        const agent = createAgent({
          model: scriptedModel([{ toolCalls: [spawn] }, 'done']),
          use: [subagents({ agents: { child: { description: 'Works.', agent: child } } }), approval('suspend')],
        })
        const run = await agent.run('go')
        assert.ok(run.status === 'suspended' && run.pending[0]?.trigger === trigger)
        const ended = await agent.resume(run, { answers: { [run.pending[0].id]: 'allow' } })
        assert.deepEqual([ended.status, ended.text], ['completed', 'done'])
        assert.match(JSON.stringify(ended.state.messages), /child answer/)
      })
    }
  })
}

test('a question before a step names the step, counted from 1', async () => {
  const asks = guard('beforeStep', (ctx) => ctx.ask('Really?'), { name: 'asks' })
  const asked: unknown[] = []
  const model = scriptedModel(['A.', 'B.'])
  const more = hook('onStop', (ctx) => (ctx.state.stepCount > 1 ? ctx : ctx.requestContinuation('more')))
  const approver = approval(({ toolCall }) => (asked.push(toolCall.args), 'allow'))
  await createAgent({ model, use: [asks, more, approver] }).run('go')
  assert.deepEqual(asked, [{ step: 1 }, { step: 2 }])
})

for (const trigger of askTriggers) {
  test(`an approver that answers a question at ${trigger} with arguments blocks it, with a warning`, async () => {
    const { agent } = agentWith(
      trigger,
      approval(() => ({ allow: { a: 1 } })),
    )
    const run = await agent.run('go')
    assert.deepEqual(endOf(run), blocked[trigger].end)
    assert.deepEqual(
      run.warnings.map(({ message }) => message),
      [
        `The approver failed, so the question was blocked: A question at ${trigger} has no arguments to edit. Answer with 'allow' or { block: 'reason' }.`,
      ],
    )
  })
}

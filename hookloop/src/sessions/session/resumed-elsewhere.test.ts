import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { ENVIRONMENT_KEY, type AgentState } from '../../core/state/agent-state.ts'
import { textOf } from '../../core/state/message.ts'
import { hook } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { getSessionVariables, setSessionVariables } from '../../system/processes/session-variables.ts'
import { answerApproval, listApprovals } from './approvals.ts'
import { dyingStore } from './dying-store.fixture.ts'
import { replay } from '../replay/replay.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'

/** An agent whose hooks count how often its session started and add that to the conversation, so that requests depend on it. */
function counting(store: SessionStore) {
  const seen: string[] = []
  const counts = hook(
    'onSessionStart',
    (ctx) => {
      seen.push(ctx.source)
      const starts = startsIn(ctx.state) + 1
      return ctx.withState((state) => state.withMetadata('starts', starts).withMessage(`Taken up ${starts}.`))
    },
    { name: 'counts' },
  )
  const tells = hook(
    'beforeInference',
    (ctx) => ctx.withRequest({ ...ctx.request, system: `Start ${startsIn(ctx.state)}.` }),
    { name: 'tells' },
  )
  const pay = tool({ name: 'pay', description: 'Pays.', input: { type: 'object' }, ask: true, execute: () => 'paid' })
  const model = scriptedModel(({ messages, system }) => {
    const last = messages.at(-1)!
    if (last.role === 'user' && textOf(last.content) === 'Pay.') return { toolCalls: [{ name: 'pay', args: {} }] }
    return system
  })
  return { seen, agent: createAgent({ model, store, use: [pay, approval('suspend'), counts, tells] }) }
}

function startsIn({ metadata }: AgentState): number {
  return Number(metadata['starts'] ?? 0)
}

suite('a session with an open run is resumed', () => {
  test('after an answer: onSessionStart fires, and its changes apply when the open step closes', async () => {
    const store = memoryStore()
    await counting(store).agent.session('s').send('Pay.')
    const { id } = (await listApprovals(store))[0]!
    await answerApproval(store, { session: 's', approval: id, answer: 'allow' })
    const { seen, agent } = counting(store)
    const session = agent.session('s')
    const run = await session.resume()
    assert.deepEqual([run?.text, seen], ['Start 2.', ['resume']])
    assert.equal((await session.send('And now?')).text, 'Start 2.')
    const { record } = await replay((await store.read('s'))!, { agent, run: 0 })
    assert.deepEqual(record, { status: 'complete' })
    const { messages, metadata } = (await session.state())!
    const said = [...messages].map(({ content }) => textOf(content))
    assert.deepEqual([seen, metadata['starts']], [['resume'], 2])
    assert.deepEqual(said.slice(-4), ['Taken up 2.', 'Start 2.', 'And now?', 'Start 2.'])
  })

  for (let at = 2; at <= 9; at++) {
    test(`after a crash at write ${at}: it resumes as recorded, whatever hooks change`, async () => {
      const store = memoryStore()
      const dying = dyingStore(store, { at, stored: true })
      await Promise.race([counting(dying).agent.session('s').send('Hello.'), dying.died])
      const { agent } = counting(store)
      const session = agent.session('s')
      const run = await session.resume()
      assert.ok(run === undefined || run.status === 'completed', run?.status)
      const next = await session.send('And now?')
      assert.deepEqual([next.status, next.text], ['completed', `Start ${startsIn((await session.state())!)}.`])
    })
  }

  test('by sending an input: onSessionStart does not fire, and the input is rejected', async () => {
    const store = memoryStore()
    await counting(store).agent.session('s').send('Pay.')
    const { seen, agent } = counting(store)
    await assert.rejects(agent.session('s').send('More.'), { code: 'STATE_SUSPENDED' })
    assert.deepEqual(seen, [])
  })

  for (const before of ['none', 'blue']) {
    test(`with the variables that hooks set for its commands now, and not with those of before: ${before}`, async () => {
      const store = memoryStore()
      const over = (color: string) => {
        const sets = hook('onSessionStart', (ctx) =>
          color === 'none'
            ? ctx
            : ctx.withState((state) => state.withMetadata(ENVIRONMENT_KEY, setSessionVariables({ COLOR: color }))),
        )
        const look = tool({
          name: 'look',
          description: 'Reads a variable.',
          input: { type: 'object' },
          ask: true,
          execute: (_args, { state }) => getSessionVariables(state.metadata[ENVIRONMENT_KEY])['COLOR'] ?? 'no color',
        })
        const model = scriptedModel([{ toolCalls: [{ name: 'look' }] }, 'Done.'])
        return createAgent({ model, store, use: [look, approval('suspend'), sets] })
      }
      await over(before).session('s').send('Look.')
      const { id } = (await listApprovals(store))[0]!
      await answerApproval(store, { session: 's', approval: id, answer: 'allow' })
      const run = await over('red').session('s').resume()
      assert.equal(run!.state.execution!.steps.at(0)!.toolExecutions[0]!.output, 'red')
    })
  }
})

import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { agentTool } from '../core/agent/agent-tool.ts'
import { tool } from '../core/agent/tool.ts'
import { guards } from '../capabilities/guards.ts'
import { createAgent } from '../create-agent.ts'
import { scriptedModel } from '../models/scripted.ts'
import { action } from '../core/hooks/action.ts'
import { guard, hook, type Hook } from '../core/hooks/hook.ts'
import { memoryStore } from '../sessions/stores/memory-store.ts'
import { strictReplay } from '../sessions/replay/strict-replay.fixture.ts'
import { shell } from './shell.ts'
import { subagent, type SubagentOptions } from './subagent.ts'

const usage = { inputTokens: 100, outputTokens: 10 }
const yes = { text: '{"ok":true,"reason":"fine"}', usage }

function world(definition: SubagentOptions['definition'], more: readonly Hook[] = [], timeoutMs = 10_000) {
  const done: string[] = []
  const named = (name: string) =>
    tool({ name, description: 'Does.', input: { type: 'object' }, execute: () => void done.push(name) })
  const judge = subagent({ definition, prompt: 'Look into it.' })
  const judges = guard('beforeToolUse', judge, { name: 'judge', tool: 'work', timeoutMs })
  const model = () => scriptedModel([{ toolCalls: [{ name: 'work', args: {} }] }, 'done'])
  const store = memoryStore()
  return {
    done,
    store,
    agent: createAgent({ model: model(), store, use: [named('work'), named('look'), judges, ...more] }),
  }
}

suite('subagent as a guard', () => {
  const ends: readonly [
    what: string,
    said: Parameters<typeof scriptedModel>[0],
    done: readonly string[],
    why: RegExp,
  ][] = [
    ['answers ok', [yes], ['work'], /^$/],
    ['answers not ok', ['{"ok":false,"reason":"It deletes."}'], [], /It deletes/],
    ['answers not ok among other text', ['I looked.\n```json\n{"ok":false,"reason":"No."}\n```'], [], /No\./],
    ['does not answer with JSON', ['Looks good to me!'], [], /The answer is not/],
    [
      'runs out of steps',
      Array.from({ length: 30 }, () => ({ toolCalls: [{ name: 'look', args: {} }] })),
      [],
      /it did not answer/,
    ],
  ]
  for (const [what, said, worked, why] of ends) {
    test(`an agent that ${what} ${worked.length > 0 ? 'lets the call run' : 'blocks the call'}`, async () => {
      const { agent, done } = world({ model: scriptedModel(said), tools: ['look'] })
      const run = await agent.run('go')
      const entry = run.ledger.findLast(({ hook: by }) => by === 'judge')
      assert.deepEqual(
        done.filter((each) => each === 'work'),
        worked,
      )
      assert.match(entry?.message ?? '', why)
    })
  }

  test('an agent has the tools that are listed, and none by default', async () => {
    const look = { toolCalls: [{ name: 'look', args: {} }] }
    const [given, none] = [scriptedModel([look, yes]), scriptedModel([look, yes])]
    const [first, second] = [world({ model: given, tools: ['look'] }), world({ model: none })]
    await first.agent.run('go')
    await second.agent.run('go')
    assert.deepEqual([first.done, second.done], [['look', 'work'], ['work']])
  })

  test('the guards of the run apply to the agent, which does not call itself', async () => {
    const seen: string[] = []
    const noLook = guard(
      'beforeToolUse',
      (ctx) => {
        seen.push(ctx.toolCall.name)
        return ctx.toolCall.name === 'look' ? ctx.block('No looking.') : ctx
      },
      { name: 'no look' },
    )
    const model = scriptedModel([
      {
        toolCalls: [
          { name: 'look', args: {} },
          { name: 'work', args: {} },
        ],
      },
      yes,
    ])
    const { agent, done } = world({ model, tools: ['look', 'work'] }, [noLook])
    const run = await agent.run('go')
    assert.deepEqual([run.status, seen], ['completed', ['look', 'work']])
    assert.deepEqual(done, ['work'])
  })

  test('the cost of the agent counts towards the run, and its remaining budget applies', async () => {
    const paid = await world({ model: scriptedModel([yes]) }).agent.run('go')
    const entry = paid.ledger.find(({ hook: by }) => by === 'judge')
    assert.ok(paid.state.usage.inputTokens >= 100)
    assert.equal((entry!.value as { spent: { inputTokens: number } }).spent.inputTokens, 100)
    const look = { toolCalls: [{ name: 'look', args: {} }], usage }
    const greedy = world({ model: scriptedModel([look, look, look, yes]), tools: ['look'] }, [])
    const limited = await greedy.agent.with(guards({ maxTokens: 250 })).run('go')
    assert.ok(!greedy.done.includes('work'))
    assert.equal(limited.status, 'stopped')
  })

  test('a replay does not run the agent again, and counts its cost', async () => {
    const { agent, store, done } = world({ model: scriptedModel([yes]) })
    await agent.run('go', { session: 's' })
    await strictReplay(agent, store, 's')
    assert.deepEqual(done, ['work'])
  })

  test('an agent that times out blocks', async () => {
    const model = { provider: 'test', modelId: 'slow', infer: () => new Promise<never>(() => undefined) }
    const { agent, done } = world({ model }, [], 100)
    const run = await agent.run('go')
    const entry = run.ledger.find(({ hook: by }) => by === 'judge')
    assert.deepEqual([done, /timed out/.test(`${entry?.message}${entry?.error}`)], [[], true])
  })
})

test('subagent throws for an invalid definition', () => {
  const wrong = [
    { definition: { tool: [] }, prompt: 'x' },
    { definition: { settings: { maxTokens: 5 } }, prompt: 'x' },
  ]
  for (const options of wrong) {
    assert.throws(() => subagent(options as unknown as SubagentOptions), { code: 'AGENT_INVALID_OPTION' })
  }
})

suite('actions inside a subagent', () => {
  const ask = agentTool({
    name: 'ask',
    description: 'Asks another.',
    input: { type: 'object' },
    to: () => ({ name: 'other', to: spec, input: 'go' }),
  })
  const spec = { tools: ['work'], model: 'unset' as never }

  function family(own: Hook, childs: Hook) {
    const done: string[] = []
    const work = tool({
      name: 'work',
      description: 'Works.',
      input: { type: 'object' },
      execute: () => void done.push('work'),
    })
    Object.assign(spec, {
      model: scriptedModel([{ toolCalls: [{ name: 'work', args: {} }] }, 'done']),
      use: [childs],
    })
    const model = scriptedModel([{ toolCalls: [{ name: 'ask', args: {} }] }, 'done'])
    return { done, agent: createAgent({ model, use: [work, ask, own] }) }
  }

  test('an inherited action also applies as a hook', async () => {
    const blocking = (inherited: boolean) =>
      hook(
        'beforeToolUse',
        action({
          kind: 'test',
          label: 'test',
          ...(inherited && { inherited: true as const }),
          perform: async () => ({ decision: 'block' as const, message: 'no' }),
        }),
        { name: 'policy', tool: 'work' },
      )
    const pass = guard('beforeToolUse', shell({ command: 'true' }), { name: 'child', tool: 'work' })
    const own = family(blocking(false), pass)
    await own.agent.run('go')
    const inherited = family(blocking(true), pass)
    await inherited.agent.run('go')
    assert.deepEqual([own.done, inherited.done], [['work'], []])
  })
})

test('S17: a call by the agent of a guard is blocked instead of being judged by that guard again', async () => {
  const inspector = scriptedModel([
    { toolCalls: [{ name: 'work', args: {} }] },
    { toolCalls: [{ name: 'look', args: {} }] },
    yes,
  ])
  const { agent, done } = world({ model: inspector, tools: ['work', 'look'] })
  const run = await agent.run('go')
  assert.deepEqual([run.status, done, inspector.requests.length], ['completed', ['look', 'work'], 3])
  assert.match(
    JSON.stringify(inspector.requests[1]!.messages.at(-1)),
    /\\"judge\\" starts an agent to decide on such calls/,
  )
})

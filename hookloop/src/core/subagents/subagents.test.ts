import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as z from 'zod'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import type { AgentEvent } from '../state/event.ts'
import type { ToolExecution } from '../state/tool-call.ts'
import { guard, hook, observe } from '../hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { explain } from '../explain/explain.ts'
import { calls, familyWorld, look, plan, spawn } from './family-world.fixture.ts'
import type { Run } from '../agent/run.ts'
import { tool } from '../agent/tool.ts'
import { recordedRun } from '../../sessions/replay/replayed-run.fixture.ts'
import { strictReplay } from '../../sessions/replay/strict-replay.fixture.ts'

const results = (run: Run, step = 0): readonly ToolExecution[] => run.state.execution!.steps.at(step)!.toolExecutions
const outputs = (run: Run, step = 0): readonly unknown[] => results(run, step).map(({ output }) => output)

test('the answer of a subagent is the result of the call, and nothing else of it is in the conversation', async () => {
  const { agent, looked } = familyWorld()
  const run = await agent.run(plan(calls(spawn('s', 'plain', calls(look('a')), 'I saw it.')), 'All done.'))
  assert.deepEqual([run.status, run.text, outputs(run), looked], ['completed', 'All done.', ['I saw it.'], ['a']])
  assert.deepEqual(
    run.state.messages.map(({ role }) => role),
    ['user', 'assistant', 'tool', 'assistant'],
  )
})

test('a subagent sees its prompt and nothing of the conversation of its parent', async () => {
  const { agent, model } = familyWorld()
  await agent.run(plan(calls(spawn('s', 'plain', 'Hi.')), 'Done.'))
  const child = model.requests.find(({ system }) => system === 'plain')!
  assert.deepEqual(
    [...child.messages].map(({ role, content }) => [role, content[0]?.type === 'text' && content[0].text]),
    [['user', plan('Hi.')]],
  )
})

test('a subagent has the metadata and the id of its parent, and its own changes stay with it', async () => {
  const seen: unknown[] = []
  const { agent } = familyWorld({
    use: [
      observe(
        'beforeStep',
        (ctx) => void seen.push([ctx.state.metadata['user'], ctx.state.metadata['hookloop.subagent']]),
      ),
    ],
    who: {
      writer: { use: [hook('beforeStep', (ctx) => ctx.withState((state) => state.withMetadata('user', 'eve')))] },
    },
  })
  const run = await agent.run(plan(calls(spawn('s', 'writer', 'Hi.'))), { metadata: { user: 'ann' } })
  assert.deepEqual(seen, [
    ['ann', undefined],
    ['eve', { name: 'writer', depth: 1 }],
    ['ann', undefined],
  ])
  assert.deepEqual({ ...run.state.metadata }, { user: 'ann' })
})

test('without "tools" a subagent has all tools of its parent, with an empty list none, and never others', async () => {
  const { agent, model } = familyWorld({
    who: {
      all: { instructions: 'all' },
      none: { instructions: 'none', tools: [] },
      some: { instructions: 'some', tools: ['look', 'delete_everything'] },
      most: { instructions: 'most', disallowedTools: ['spawn'] },
      contrary: { instructions: 'contrary', tools: ['look', 'spawn'], disallowedTools: ['look'] },
    },
  })
  const inner = calls(spawn('x', 'all', 'Hi.'))
  await agent.run(
    plan(
      calls(
        ...['all', 'none', 'some', 'most'].map((who) => spawn(who, who, 'Hi.')),
        spawn('c', 'contrary', inner, 'Hi.'),
      ),
    ),
  )
  const offered = (system: string) =>
    model.requests.filter((each) => each.system === system).map(({ tools }) => tools.map(({ name }) => name))
  assert.deepEqual(offered('all'), [['look', 'spawn'], ['spawn']], 'the second is inside one that may not look')
  assert.deepEqual(offered('none'), [[]])
  assert.deepEqual(offered('some'), [['look']])
  assert.deepEqual(offered('most'), [['look']])
})

test('a call of a tool that a subagent does not have fails, and executes nothing', async () => {
  const { agent, looked } = familyWorld({ who: { none: { tools: [] } } })
  const run = await agent.run(plan(calls(spawn('s', 'none', calls(look('a')), 'Done.'))))
  assert.deepEqual([run.status, looked], ['completed', []])
})

test('a tool comes with the hooks that its capability bound to it', async () => {
  const bound = hook('afterToolUse', (ctx) => ctx.withState((state) => state.withMetadata('looked', true)), {
    tool: 'keep',
    name: 'keep.write',
  })
  const keep = tool({ name: 'keep', description: 'Keeps.', input: { type: 'object' }, execute: () => 'kept' })
  const seen: unknown[] = []
  const { agent } = familyWorld({
    use: [
      { name: 'keeping', tools: [keep], hooks: [bound, hook('afterStep', (ctx) => ctx, { name: 'keep.remind' })] },
      observe(
        'afterStep',
        (ctx) => void seen.push([ctx.state.metadata['hookloop.subagent'] !== undefined, ctx.state.metadata['looked']]),
      ),
    ],
  })
  const run = await agent.run(plan(calls(spawn('s', 'plain', calls({ name: 'keep', id: 'k' }), 'Done.'))))
  assert.deepEqual(seen.slice(0, 2), [
    [true, true],
    [true, true],
  ])
  assert.deepEqual(
    run.ledger.filter(({ path, hook: name }) => path !== undefined && name === 'keep.remind'),
    [],
  )
})

test('an agent as a subagent uses its own model and tools, under the guards of its parent', async () => {
  const own = tool({ name: 'rm', description: 'Removes.', input: { type: 'object' }, execute: () => 'removed' })
  const inner = createAgent({
    name: 'cleaner',
    model: scriptedModel([{ toolCalls: [{ name: 'rm', id: 'r' }] }, 'Cleaned.']),
    use: [own],
  })
  const noRm = guard('beforeToolUse', (ctx) => (ctx.toolCall.name === 'rm' ? ctx.block('no') : ctx), { name: 'noRm' })
  const { agent } = familyWorld({ use: [noRm], who: { cleaner: inner } })
  const run = await agent.run(plan(calls(spawn('s', 'cleaner', 'ignored'))))
  const blocked = run.ledger.filter(({ decision }) => decision === 'block')
  assert.deepEqual(
    blocked.map(({ hook: by, path, call, tool: name }) => ({ by, path, call, name })),
    [{ by: 'noRm', path: [{ agent: 'cleaner', step: 0, call: 's' }], call: 'r', name: 'rm' }],
  )
  assert.deepEqual(outputs(run), ['Cleaned.'])
})

test('the typed answer of an agent as a subagent is the result', async () => {
  const inner = createAgent({
    model: scriptedModel(['{"found":3}']),
    output: z.object({ found: z.number() }),
  })
  const { agent } = familyWorld({ who: { counter: inner } })
  const run = await agent.run(plan(calls(spawn('s', 'counter', 'ignored'))))
  assert.deepEqual(outputs(run), [{ found: 3 }])
})

describe('a guard of the parent fires exactly once for every call of every subagent', () => {
  // a and b concurrently, each with a call, b with a nested subagent, and one call blocked
  const task = plan(
    calls(
      look('top'),
      spawn('a', 'plain', calls(look('a1')), calls(look('a2', 'rm')), 'A.'),
      spawn('b', 'plain', calls(spawn('c', 'plain', calls(look('c1'), look('c2')), 'C.'), look('b1')), 'B.'),
    ),
    'Done.',
  )
  const judgedCalls = ['a', 'a1', 'a2', 'b', 'b1', 'c', 'c1', 'c2', 'top']
  const lookedAt = ['a1', 'b1', 'c1', 'c2', 'top']

  function judgedWorld(use: Parameters<typeof familyWorld>[0] = {}) {
    const judged: string[] = []
    const judge = guard(
      'beforeToolUse',
      (ctx) => {
        judged.push(ctx.toolCall.id)
        return ctx.toolCall.args['at'] === 'rm' ? ctx.block('no rm') : ctx
      },
      { name: 'judge' },
    )
    return { ...familyWorld({ ...use, use: [judge, ...(use.use ?? [])] }), judged }
  }
  type Judged = ReturnType<typeof judgedWorld>

  const ways: { readonly [how: string]: (world: Judged) => Promise<Run> } = {
    'when it is run': ({ agent }) => agent.run(task),
    'when it is streamed': async ({ agent }) => {
      const live = agent.stream(task)
      for await (const event of live) assert.ok(event)
      return live.run
    },
    'when it is iterated': async ({ agent }) => {
      const live = agent.iterate(task)
      for await (const state of live) assert.ok(state)
      return live.run
    },
    'when it is recorded': async ({ agent }) => (await recordedRun(agent, task)).run,
  }
  for (const [how, go] of Object.entries(ways)) {
    test(how, async () => {
      const world = judgedWorld()
      const run = await go(world)
      assert.deepEqual(
        [run.status, world.judged.toSorted(), world.looked.toSorted()],
        ['completed', judgedCalls, lookedAt],
      )
      const inLedger = run.ledger.filter(({ hook: by, trigger }) => by === 'judge' && trigger === 'beforeToolUse')
      assert.deepEqual(
        inLedger.map(({ call }) => call),
        ['a2'],
      ) // the one that it blocked
    })
  }

  test('when it is replayed, without effects', async () => {
    const { store } = await recordedRun(judgedWorld().agent, task)
    const world = judgedWorld()
    await strictReplay(world.agent, store, 's')
    assert.deepEqual([world.judged.toSorted(), world.looked], [judgedCalls, []])
    assert.equal(world.model.requests.length, 0)
  })

  test('when it is suspended and resumed: again for every call of an open step, and once more before an approved one runs', async () => {
    const ask = guard('beforeToolUse', (ctx) => (ctx.toolCall.id === 'c1' ? ctx.ask('Really?') : ctx), { name: 'ask' })
    const world = judgedWorld({ use: [ask, approval('suspend')] })
    const waiting = await world.agent.run(task)
    assert.equal(waiting.status, 'suspended')
    const [asked] = waiting.pending
    const run = await world.agent.resume(JSON.parse(JSON.stringify(waiting)), { answers: { [asked!.id]: 'allow' } })
    const again = ['a', 'b', 'b1', 'c', 'c1', 'c1', 'c2', 'top'] // "a" has ended: its steps are closed
    assert.deepEqual([run.status, world.judged.toSorted()], ['completed', [...judgedCalls, ...again].toSorted()])
    assert.deepEqual(world.looked.toSorted(), lookedAt)
  })
})

test('a guard of both parent and subagent judges once', async () => {
  const judged: string[] = []
  const shared = guard('beforeToolUse', (ctx) => (judged.push(ctx.toolCall.id), ctx), { name: 'shared' })
  const { agent } = familyWorld({ use: [shared], who: { both: { use: [shared] } } })
  await agent.run(plan(calls(spawn('s', 'both', calls(look('a')), 'Done.'))))
  assert.deepEqual(judged, ['s', 'a'])
})

test('hooks that transform are not inherited, and a subagent may have its own', async () => {
  const { agent, looked } = familyWorld({
    use: [hook('beforeToolUse', (ctx) => ctx.withArgs({ at: 'parent' }), { tool: 'look', name: 'parent' })],
    who: { own: { use: [hook('beforeToolUse', (ctx) => ctx.withArgs({ at: 'own' }), { tool: 'look', name: 'own' })] } },
  })
  const run = await agent.run(plan(calls(look('top'), spawn('s', 'own', calls(look('a')), 'Done.'))))
  assert.deepEqual([run.status, looked.toSorted()], ['completed', ['own', 'parent']])
})

test('observers see the events of subagents, with their path', async () => {
  const seen: string[] = []
  const { agent } = familyWorld({
    use: [
      observe('afterToolUse', (ctx) => {
        const { name = 'main' } = (ctx.state.metadata['hookloop.subagent'] ?? {}) as { name?: string }
        seen.push(`${name}: ${ctx.toolCall.name}`)
      }),
    ],
  })
  await agent.run(plan(calls(spawn('s', 'plain', calls(look('a')), 'Done.'))))
  assert.deepEqual(seen, ['plain: look', 'main: spawn'])
})

test('a stream has the events of a subagent from start to end, with its path', async () => {
  const { agent } = familyWorld()
  const events: AgentEvent[] = []
  const task = plan(calls(spawn('s', 'plain', calls(spawn('t', 'plain', calls(look('a')), 'In.')), 'Out.')), 'End.')
  for await (const event of agent.stream(task)) events.push(event)
  const said = events.flatMap((event) => {
    if (event.type !== 'subagent')
      return event.type === 'started' || event.type === 'finished' ? [`: ${event.type}`] : []
    const way = event.path.map(({ agent: name, call }) => `${name}(${call})`).join(' > ')
    const told = event.event.type === 'toolStarted' ? `${event.event.type} ${event.event.call.name}` : event.event.type
    return ['started', 'toolStarted', 'finished'].includes(event.event.type) ? [`${way}: ${told}`] : []
  })
  assert.deepEqual(said, [
    ': started',
    'plain(s): started',
    'plain(s): toolStarted spawn',
    'plain(s) > plain(t): started',
    'plain(s) > plain(t): toolStarted look',
    'plain(s) > plain(t): finished',
    'plain(s): finished',
    ': finished',
  ])
  const words = events.flatMap((event) =>
    event.type === 'subagent' && event.event.type === 'text' ? [event.event.delta] : [],
  )
  assert.deepEqual(words, ['In.', 'Out.'])
})

test('an around hook on a subagent call is reported as having no effect', async () => {
  const wrapped: string[] = []
  const around = hook('aroundToolUse', async (ctx, next) => (wrapped.push(ctx.toolCall.name), next()), {
    name: 'around',
  })
  const { agent } = familyWorld({ use: [around] })
  const run = await agent.run(plan(calls(look('a'), spawn('s', 'plain', 'Hi.'))))
  const skipped = run.ledger.filter(({ hook: by, decision }) => by === 'around' && decision === 'skipped')
  assert.deepEqual([wrapped, skipped.map(({ call }) => call)], [['look'], ['s']])
})

test('explain of the parent includes the explanation of its subagents', async () => {
  const noRm = guard('beforeToolUse', (ctx) => (ctx.toolCall.args['at'] === 'rm' ? ctx.block('Never.') : ctx), {
    name: 'noRm',
  })
  const { agent } = familyWorld({ use: [noRm] })
  const run = await agent.run(
    plan(
      calls(spawn('s', 'plain', calls(look('x', 'rm'), spawn('t', 'plain', calls(look('y', 'rm')), 'In.')), 'Out.')),
      'End.',
    ),
  )
  assert.match(
    explain(run),
    new RegExp(
      [
        '  subagents    step 1, plain completed: 4 steps, 3 tool calls, 60 tokens',
        '                 step 1, look blocked by noRm: Never\\.',
        '                 step 1, plain completed: 2 steps, 1 tool call, 30 tokens',
        '                   step 1, look blocked by noRm: Never\\.',
      ].join('\\n'),
    ),
  )
})

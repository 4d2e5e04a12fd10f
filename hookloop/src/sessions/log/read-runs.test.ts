import assert from 'node:assert/strict'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { agentTool } from '../../core/agent/agent-tool.ts'
import { tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import { liveEffects } from '../../core/effects/effects.ts'
import { guard, hook } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import type { StoredRun } from '../../core/state/stored-run.ts'
import { fakeClock } from '../../testing/fake-clock.ts'
import { answerApproval } from '../session/approvals.ts'
import { storeOf } from '../session/dying-store.fixture.ts'
import { drive, eventfulAgent } from '../session/eventful-run.fixture.ts'
import { forkSession } from '../session/fork-session.ts'
import { rewindSession } from '../session/rewind-session.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { sqliteStore } from '../stores/sqlite-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { readRuns } from './read-runs.ts'

const echo = tool({ name: 'echo', description: 'Repeats.', input: { type: 'object' }, execute: (args) => args })
const calls = (name: string, args = {}) => ({ toolCalls: [{ name, args }] })

async function onlyRun(store: SessionStore, id = 's'): Promise<StoredRun> {
  const [run, ...more] = await readRuns(store, id)
  assert.deepEqual(more, [])
  return run!
}

test('readRuns returns input, metadata, agent, cwd, limits, steps, ledger, cost and final record of each run', async () => {
  const store = sqliteStore(join(mkdtempSync(join(tmpdir(), 'runs-')), 'sessions.db'))
  const noEcho = guard('beforeToolUse', (ctx) => ctx.block('No echo.'), { name: 'no-echo', tool: 'echo' })
  const cost = { inputTokens: 10, outputTokens: 5, costUsd: 0.5 }
  const model = scriptedModel([{ ...calls('echo', { a: 1 }), text: 'Let me see.', usage: cost }, 'Done.', 'Again.'])
  const use = [echo, noEcho, guards({ maxSteps: 7, maxTokens: null, maxTimeMs: null, maxCost: 3, maxToolCalls: 4 })]
  const first = await createAgent({ name: 'one', model, store, use }).run('Go.', {
    session: 's',
    metadata: { user: 'ann' },
  })
  const second = await createAgent({ name: 'two', model, store }).run('More.', { session: 's' })
  const runs = await readRuns(store, 's')
  await store.close()
  const [run, next] = runs as readonly [StoredRun, StoredRun]
  assert.deepEqual(
    runs.map(({ index, agent, status, session, cwd, steps }) => [index, agent, status, session, cwd, steps.length]),
    [
      [0, 'one', 'completed', 's', process.cwd(), 2],
      [1, 'two', 'completed', 's', process.cwd(), 1],
    ],
  )
  assert.deepEqual(
    [run.input.content, run.metadata, next.metadata],
    [[{ type: 'text', text: 'Go.' }], { user: 'ann' }, undefined],
  )
  assert.deepEqual(run.limits, { maxSteps: 7, maxCost: 3, maxToolCalls: 4 })
  assert.deepEqual(next.limits, { maxSteps: 50, maxTokens: 2_000_000, maxTimeMs: 1_800_000 })
  assert.ok(first.status === 'completed' && second.status === 'completed')
  assert.deepEqual([run.final, run.ledger, run.usage], [first.final, first.ledger, first.state.execution!.usage])
  assert.deepEqual([next.final, next.ledger, next.endedAt], [second.final, second.ledger, second.final.at])
  assert.deepEqual(run.hooks, first.state.execution!.hooks)
  const [step, last] = run.steps
  assert.deepEqual(
    [step!.text, step!.model, step!.usage.costUsd, step!.finishReason],
    ['Let me see.', 'scripted/script', 0.5, 'tool-calls'],
  )
  assert.deepEqual(step!.toolCalls[0]!.result, { name: 'echo', status: 'blocked', output: 'No echo.', by: 'no-echo' })
  assert.deepEqual(last!.outcome, first.state.lastStep!.outcome)
  assert.deepEqual(
    run.models.map(({ model, calls: count, costUsd }) => ({ model, count, costUsd })),
    [{ model: 'scripted/script', count: 2, costUsd: 0.5 }],
  )
})

test('a stored run says when each call to the outside began and ended', async () => {
  const clock = fakeClock({ startAt: 1_000 })
  const store = memoryStore()
  const slow = tool({
    name: 'slow',
    description: 'Waits.',
    input: { type: 'object' },
    execute: () => clock.advance(30).then(() => 'ok'),
  })
  const notes = hook('afterToolUse', (ctx) => clock.advance(5).then(() => ctx), { name: 'notes', effect: true })
  const thinks = hook('beforeInference', (ctx) => clock.advance(100).then(() => ctx), { name: 'thinks' })
  const model = scriptedModel([calls('slow'), 'Done.'])
  const agent = createAgent({ model, store, use: [slow, notes, thinks] })
  await agent.run('Go.', { session: 's', effects: liveEffects({ clock, id: 'r' }) })
  const run = await onlyRun(store)
  assert.deepEqual(
    run.calls.map(({ kind, step, hook: by, began, ended }) => [kind, step, by, began, ended]),
    [
      ['inference', 0, undefined, 1_100, 1_100],
      ['tool', 0, undefined, 1_100, 1_130],
      ['hook', 0, 'notes', 1_130, 1_135],
      ['inference', 1, undefined, 1_235, 1_235],
    ],
  )
  const [{ toolCalls, began, at }] = run.steps as [StoredRun['steps'][0]]
  assert.deepEqual([toolCalls[0]!.began, toolCalls[0]!.ended, began, at], [1_100, 1_130, 1_100, 1_135])
  assert.deepEqual([run.at, run.endedAt], [1_000, 1_235])
})

suite('a run that has not ended', () => {
  test('has its open step and the approvals that it waits for, until they are answered', async () => {
    const store = memoryStore()
    const asks = guard('beforeToolUse', (ctx) => ctx.ask('Sure?'), { name: 'asks', tool: 'echo' })
    const agent = createAgent({
      model: scriptedModel([calls('echo', { a: 1 }), 'Done.']),
      store,
      use: [echo, asks, approval('suspend')],
    })
    const waiting = await agent.run('Go.', { session: 's' })
    assert.ok(waiting.status === 'suspended')
    const before = await onlyRun(store)
    const [step] = before.steps
    assert.deepEqual([before.status, before.pending, before.final], ['suspended', waiting.pending, undefined])
    assert.deepEqual([step!.isOpen, step!.seq, step!.toolCalls[0]!.approval], [true, undefined, waiting.pending[0]])
    const [{ id }] = before.pending as [StoredRun['pending'][0]]
    await answerApproval(store, { session: 's', approval: id, answer: { allow: { a: 2 } }, by: 'eve' })
    assert.deepEqual((await onlyRun(store)).pending, [])
    await agent.resume('s')
    const after = await onlyRun(store)
    assert.deepEqual(after.steps[0]!.toolCalls[0]!.args, { a: 2 })
    assert.deepEqual(after.steps[0]!.toolCalls[0]!.sentArgs, { a: 1 })
    assert.deepEqual(
      after.events.map((event) => [event.type, event.step, event.type === 'answered' ? event.by : undefined]),
      [
        ['suspended', 0, undefined],
        ['answered', 0, 'eve'],
        ['resumed', 0, undefined],
      ],
    )
  })

  test('is read while it runs, with the call that has no result yet', async () => {
    const store = memoryStore()
    let seen: StoredRun | undefined
    const look = tool({
      name: 'look',
      description: 'Reads the session.',
      input: { type: 'object' },
      execute: async () => {
        seen = await onlyRun(store)
        return 'seen'
      },
    })
    const model = scriptedModel([{ ...calls('look', { a: 1 }), text: 'Looking.' }, 'Done.'])
    await createAgent({ model, store, use: [look] }).run('Go.', { session: 's' })
    const [step] = seen!.steps
    const [call] = step!.toolCalls
    assert.deepEqual([seen!.status, step!.isOpen, step!.text], ['running', true, 'Looking.'])
    assert.deepEqual(
      [call!.name, call!.args, call!.result, typeof call!.began, call!.ended],
      ['look', { a: 1 }, undefined, 'number', undefined],
    )
  })

  test('is read at every point where its process may have ended, as plain JSON', async () => {
    const store = memoryStore()
    await drive(eventfulAgent(store, { note: () => undefined }), store)
    const { lines } = (await store.read('eventful'))!
    let steps = 0
    for (let length = 2; length <= lines.length; length++) {
      const run = await onlyRun(await storeOf('eventful', lines.slice(0, length)), 'eventful')
      assert.deepEqual(JSON.parse(JSON.stringify(run)), run)
      assert.ok(run.steps.length >= steps, `line ${length}`)
      steps = run.steps.length
      for (const [i, { index, isOpen }] of run.steps.entries())
        assert.deepEqual([index, isOpen === true && i < steps - 1], [i, false])
    }
    assert.equal(steps, 6)
  })

  test('says when it was interrupted, and for how long', async () => {
    const store = memoryStore()
    const clock = fakeClock({ startAt: 1_000 })
    const agent = createAgent({
      model: scriptedModel(({ messages }) => (messages.length < 3 ? calls('echo') : 'Done.')),
      use: [echo],
      store,
    })
    await agent.run('Go.', { session: 's', effects: liveEffects({ clock }) })
    const { lines } = (await store.read('s'))!
    const died = await storeOf('s', lines.slice(0, lines.findIndex((line) => line.includes('"t":"begin"')) + 1))
    await clock.advance(500)
    await createAgent({ model: scriptedModel(['Done.']), use: [echo], store: died }).resume('s', {
      effects: liveEffects({ clock }),
    })
    const run = await onlyRun(died)
    assert.deepEqual(
      run.events.map((event) => [event.type, event.at, event.type === 'interrupted' && event.downMs]),
      [['interrupted', 1_500, 500]],
    )
    assert.equal(run.steps[0]!.toolCalls[0]!.result!.status, 'outcomeUnknown')
  })
})

test('calls of subagents and of hooks say who made them', async () => {
  const store = memoryStore()
  const child = createAgent({
    name: 'child',
    model: scriptedModel([calls('echo', { deep: true }), 'Done.'], { modelId: 'small' }),
    use: [echo],
  })
  const ask = agentTool({
    name: 'ask',
    description: 'Asks.',
    input: { type: 'object' },
    to: () => ({ name: 'kid', to: child, input: 'Hi.' }),
  })
  const judge = scriptedModel(['Yes.'], { modelId: 'judge' })
  const judges = hook(
    'beforeStep',
    async (ctx) => {
      if (ctx.state.stepCount === 0) await ctx.infer({ prompt: 'Fine?', model: judge })
      return ctx
    },
    { name: 'judge/slow ~2' },
  )
  await createAgent({ model: scriptedModel([calls('ask'), 'Done.']), store, use: [ask, judges] }).run('Go.', {
    session: 's',
  })
  const run = await onlyRun(store)
  const kid = [{ step: 0, call: run.steps[0]!.toolCalls[0]!.id, agent: 'kid' }]
  assert.deepEqual(
    run.calls.map(({ kind, step, model, trigger, hook: by, path }) => [kind, step, model, trigger, by, path]),
    [
      ['inference', 0, 'scripted/judge', 'beforeStep', 'judge/slow ~2', undefined],
      ['inference', 0, 'scripted/script', undefined, undefined, undefined],
      ['inference', 0, 'scripted/small', undefined, undefined, kid],
      ['tool', 0, undefined, undefined, undefined, kid],
      ['inference', 1, 'scripted/small', undefined, undefined, kid],
      ['inference', 1, 'scripted/script', undefined, undefined, undefined],
    ],
  )
  assert.deepEqual(
    run.models.map(({ model, calls: count }) => [model, count]),
    [
      ['scripted/judge', 1],
      ['scripted/script', 2],
      ['scripted/small', 2],
    ],
  )
  assert.equal(
    run.models.reduce((sum, { inputTokens }) => sum + inputTokens, 0),
    run.usage.inputTokens,
  )
})

test('a run whose input was blocked has a final record with the hook that blocked it, and no steps of an earlier run', async () => {
  const store = memoryStore()
  const manners = guard('onUserInput', (ctx) => (ctx.state.executionCount > 0 ? ctx.block('Rude.') : ctx), {
    name: 'manners',
  })
  const agent = createAgent({ model: scriptedModel([calls('echo'), 'Done.']), store, use: [echo, manners] })
  await agent.run('Go.', { session: 's' })
  const blocked = await agent.run('Now!', { session: 's' })
  const [, run] = await readRuns(store, 's')
  assert.ok(blocked.status === 'stopped')
  assert.deepEqual([run!.status, run!.final, run!.steps, run!.calls], ['stopped', blocked.final, [], []])
  assert.deepEqual(run!.usage.steps, 0)
})

test('steps that were rewound are marked, and a fork names its origin', async () => {
  const store = memoryStore()
  const agent = createAgent({ model: scriptedModel(() => 'Yes.'), store })
  await agent.run('One.', { session: 's' })
  await agent.run('Two.', { session: 's' })
  await rewindSession(store, 's', { message: 'Three.' })
  await agent.resume('s')
  const runs = await readRuns(store, 's')
  assert.deepEqual(
    runs.map(({ steps, status, events }) => [
      steps.map(({ isRewound }) => isRewound === true),
      status,
      events.map(({ type }) => type),
    ]),
    [
      [[false], 'completed', []],
      [[true], 'completed', ['rewound']],
      [[false], 'completed', []],
    ],
  )
  const { seq } = runs[0]!.steps[0]!
  const id = await forkSession(store, 's', { at: seq!, message: 'Four.' })
  await agent.resume(id)
  assert.deepEqual((await onlyRun(store, id)).forkedFrom, { id: 's', seq })
})

test('readRuns returns nothing for a run that a session does not have, and rejects for a session that does not exist', async () => {
  const store = memoryStore()
  await createAgent({ model: scriptedModel(['Yes.']), store }).run('One.', { session: 's' })
  assert.deepEqual([await readRuns(store, 's', { run: 1 }), await readRuns(store, 's', { run: -2 })], [[], []])
  await assert.rejects(readRuns(store, 'other'), { code: 'SESSION_UNKNOWN' })
})

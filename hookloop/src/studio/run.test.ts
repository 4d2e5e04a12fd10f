import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { tool } from '../core/agent/tool.ts'
import { approval } from '../capabilities/approval.ts'
import { createAgent } from '../create-agent.ts'
import { subagents } from '../capabilities/subagents/subagents.ts'
import { guards } from '../capabilities/guards.ts'
import { guard } from '../core/hooks/hook.ts'
import { scriptedModel } from '../models/scripted.ts'
import { readRuns } from '../sessions/log/read-runs.ts'
import { matrixOf } from './matrix.ts'
import { completed, waiting } from './scenes.fixture.ts'
import { cleaner, newStore, studioFor, type TestStudio } from './studio.fixture.ts'

const ref = { session: 'clean-up' }

async function cells(studio: TestStudio, hook: string): Promise<readonly string[]> {
  const { columns } = await studio.call('run', ref)
  const { rows } = await studio.call('rows', { ...ref, from: 0, count: 100 })
  const { id } = columns.find((each) => each.hook === hook)!
  return rows.filter(({ kind }) => kind === 'call').map((row) => row.cells[id] ?? ' ')
}

suite('a run', () => {
  test('is a matrix: a row for everything that happened, a column for every hook, in firing order', async () => {
    await using studio = await studioFor((await completed()).store)
    const { columns, rows: total, decided, status, decisions } = await studio.call('run', ref)
    assert.match((await studio.call('explanation', ref)).text, /blocked +step 2, bash, by no-push: Agents never push\./)
    const { rows } = await studio.call('rows', { ...ref, from: 0, count: 100 })
    assert.deepEqual(
      rows.map(({ kind, step, text, status: how = '', decision }) => [kind, step, text, how, decision]),
      [
        ['input', 0, 'Clean up the folder, then publish.', '', false],
        ['model', 0, 'Let me look.', '', false],
        ['call', 0, 'ls', 'ok', true],
        ['model', 1, '', '', false],
        ['call', 1, 'git push', 'blocked', true],
        ['model', 2, '', '', false],
        ['call', 2, 'rm b.txt', 'ok', true],
        ['note', 2, 'allowed (bob)', '', false],
        ['model', 3, 'All done.', '', false],
        ['votes', 3, 'stops: completed (completion)', '', true],
        ['end', 4, 'completion: The model called no more tools.', '', false],
      ],
    )
    assert.deepEqual([total, status, decided?.by, decisions], [11, 'completed', 'completion', 4])
    const shown = columns.filter(({ hook }) => ['no-ls', 'no-push', 'ask-rm', 'mark', 'completion'].includes(hook))
    assert.deepEqual(
      shown.map(({ hook, mode, group, shadow }) => [hook, mode, group, shadow]),
      [
        ['no-push', 'guard', 'beforeToolUse', false],
        ['ask-rm', 'guard', 'beforeToolUse', false],
        ['no-ls', 'guard', 'beforeToolUse', true],
        ['mark', 'transform', 'afterToolUse', false],
        ['completion', 'guard', 'afterStep', false],
      ],
    )
  })

  test('says of each hook what it did about each call: block, ask, change, nothing, or that it was skipped', async () => {
    await using studio = await studioFor((await completed()).store)
    assert.deepEqual(await cells(studio, 'no-push'), [' ', 'x', ' '])
    assert.deepEqual(await cells(studio, 'ask-rm'), [' ', '-', '?'])
    assert.deepEqual(await cells(studio, 'no-ls'), ['x', ' ', ' '])
    assert.deepEqual(await cells(studio, 'mark'), ['~', '~', '~'])
    assert.deepEqual(await cells(studio, 'completion'), [' ', ' ', ' '])
  })

  test('has a detail of each row: who decided, why, what was changed, and how votes were counted', async () => {
    await using studio = await studioFor((await completed()).store)
    const push = await studio.call('row', { ...ref, row: 4 })
    const blocked = push.entries.find(({ hook }) => hook === 'no-push')!
    assert.deepEqual(
      [push.args, blocked.decision, blocked.message],
      [{ command: 'git push' }, 'block', 'Agents never push.'],
    )
    const look = await studio.call('row', { ...ref, row: 2 })
    const { changes } = look.entries.find(({ hook }) => hook === 'mark')!
    assert.deepEqual([look.output, changes], ['"ran ls" [checked]', [{ path: 'output', after: '"ran ls" [checked]' }]])
    assert.equal(look.entries.find(({ hook }) => hook === 'no-ls')?.shadow, true)
    const { votes } = await studio.call('row', { ...ref, row: 9 })
    assert.deepEqual([votes?.shouldContinue, votes?.resolvedBy], [false, 'completion'])
    assert.match(votes!.how, /"completion" decided by allowStop \(completed\)/)
    assert.deepEqual(await studio.failure('row', { ...ref, row: 11 }), [404, 'ROW_UNKNOWN'])
  })

  test('that waits shows the question in the row of its call', async () => {
    await using studio = await studioFor((await waiting()).store)
    const { status, pending, decided } = await studio.call('run', ref)
    const { rows } = await studio.call('rows', { ...ref, from: 0, count: 100 })
    const row = rows.find(({ question }) => question !== undefined)!
    assert.deepEqual([status, decided?.by, pending.length], ['suspended', 'ask-rm', 1])
    assert.deepEqual([row.text, row.status, row.question], ['rm b.txt', 'asked', pending[0]!.id])
    assert.deepEqual((await studio.call('row', { ...ref, row: row.index })).question, pending[0])
  })

  test('is searched by text and by decision, forwards and backwards', async () => {
    await using studio = await studioFor((await completed()).store)
    const find = async (request: object): Promise<number | null> =>
      (await studio.call('find', { ...ref, from: -1, what: 'decision', ...request })).row
    assert.deepEqual([await find({}), await find({ from: 2 }), await find({ from: 9 })], [2, 4, null])
    assert.equal(await find({ from: 4, back: true }), 2)
    assert.deepEqual(
      [await find({ what: { text: 'NEVER PUSH' } }), await find({ what: { text: 'nowhere' } })],
      [4, null],
    )
  })

  test('has gauges of the limits in force, and the time and cost of models, tools and hooks', async () => {
    const { store } = newStore()
    await cleaner(store)
      .with(guards({ maxSteps: 20, maxTokens: 32_000, maxCost: 0.1 }))
      .run('Clean up.', ref)
    await using studio = await studioFor(store)
    const { gauges } = await studio.call('run', ref)
    assert.deepEqual(
      gauges.map(({ limit, max }) => [limit, max]),
      [
        ['maxSteps', 20],
        ['maxTokens', 32_000],
        ['maxCost', 0.1],
        ['maxTimeMs', 1_800_000],
      ],
    )
    const { spans, models, totals } = await studio.call('time', ref)
    assert.deepEqual(
      spans.filter(({ kind }) => kind !== 'hook').map(({ kind, step }) => `${kind} ${step}`),
      ['model 0', 'tool 0', 'model 1', 'model 2'],
    )
    assert.deepEqual(
      models.map(({ model, calls }) => [model, calls]),
      [['scripted/script', 3]],
    )
    assert.ok(totals.hooksMs > 0)
  })

  test('that waits says so, counts its question as a decision, and does not count the time that it waits', async () => {
    const { store } = newStore()
    const pay = tool({ name: 'pay', description: 'Pays.', input: { type: 'object' }, ask: true, execute: () => 'paid' })
    const agent = createAgent({
      model: scriptedModel([{ toolCalls: [{ name: 'pay' }] }]),
      store,
      use: [pay, approval('suspend')],
    })
    await agent.run('Pay.', ref)
    await using studio = await studioFor(store)
    const { decisions, wayOn, gauges, ...first } = await studio.call('run', ref)
    assert.deepEqual([first.status, decisions, wayOn], ['suspended', 1, 'Answer the question, then resume.'])
    const [run] = await readRuns(store, ref.session)
    const suspended = run!.events.find(({ type }) => type === 'suspended')!
    assert.equal(gauges.find(({ limit }) => limit === 'maxTimeMs')?.used, suspended.at - run!.at - run!.waitedMs)
  })

  test('of a subagent is in rows of its own below the call, and every entry of the ledger is in exactly one row', async () => {
    const { store } = newStore()
    const helper = scriptedModel(['Helped.'])
    const model = scriptedModel([
      { toolCalls: [{ name: 'spawn_subagent', args: { subagent: 'helper', prompt: 'Help.' } }] },
      'Done.',
    ])
    const watch = guard('beforeStep', (ctx) => ctx, { name: 'watch' })
    const agent = createAgent({
      model,
      store,
      use: [subagents({ agents: { helper: createAgent({ model: helper, use: [watch] }) } })],
    })
    await agent.run('Go.', ref)
    const [run] = await readRuns(store, 'clean-up')
    const { rows } = matrixOf(run!)
    const placed = rows.flatMap(({ entries }) => entries)
    assert.equal(placed.length, run!.ledger.length)
    assert.deepEqual(new Set(placed), new Set(run!.ledger))
    const below = rows.filter(({ row }) => row.path !== undefined).map(({ row }) => [row.kind, row.path, row.text])
    assert.deepEqual(below[0], ['model', ['helper'], 'Helped.'])
    await store.close()
  })

  test('of 500 steps is sent in pages, and none of its answers grows with it', async () => {
    const { store } = newStore()
    const steps = 500
    const model = scriptedModel(({ messages }) =>
      messages.length < 2 * steps ? { toolCalls: [{ name: 'bash', args: { command: 'ls' } }] } : 'Done.',
    )
    const agent = cleaner(store, { models: 0, tools: [] }, model).with(guards({ maxSteps: null, maxTokens: null }))
    await agent.run('Look again and again.', ref)
    await using studio = await studioFor(store)
    const { rows: total } = await studio.call('run', ref)
    const page = await studio.call('rows', { ...ref, from: 700, count: 50 })
    assert.ok(total > 2 * steps)
    assert.deepEqual([page.total, page.rows.length, page.rows[0]?.index], [total, 50, 700])
    const sizes = await Promise.all(
      [
        studio.call('run', ref),
        studio.call('row', { ...ref, row: 700 }),
        studio.call('rows', { ...ref, from: 0, count: 100 }),
      ].map(async (answer) => JSON.stringify(await answer).length),
    )
    assert.ok(Math.max(...sizes) < 50_000, sizes.join(', '))
    assert.deepEqual(await studio.failure('rows', { ...ref, from: 0, count: 5000 }), [400, 'REQUEST_INVALID'])
  })

  test('that does not exist is an error with status 404', async () => {
    await using studio = await studioFor((await waiting()).store)
    assert.deepEqual(await studio.failure('run', { session: 'other' }), [404, 'SESSION_UNKNOWN'])
    assert.deepEqual(await studio.failure('run', { ...ref, run: 7 }), [404, 'RUN_UNKNOWN'])
    assert.deepEqual(await studio.failure('run', { session: '' }), [400, 'SESSION_ID_INVALID'])
    assert.deepEqual(await studio.failure('run', { session: 7 }), [400, 'REQUEST_INVALID'])
  })
})

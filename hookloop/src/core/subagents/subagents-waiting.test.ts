import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'node:test'
import { approval } from '../../capabilities/approval.ts'
import type { AgentError } from '../../errors.ts'
import type { SavedRun } from '../state/saved-run.ts'
import type { Answer, Approval } from '../state/tool-call.ts'
import { guard } from '../hooks/hook.ts'
import {
  calls,
  familyWorld,
  isAsked,
  look,
  plan,
  spawn,
  type World,
  type WorldOptions,
} from './family-world.fixture.ts'
import type { Run } from '../agent/run.ts'

const asksAbout = guard('beforeToolUse', (ctx) => (isAsked(ctx.toolCall.args) ? ctx.ask('Look?') : ctx), {
  name: 'ask',
  tool: 'look',
})
const world = (options: WorldOptions = {}): World =>
  familyWorld({ ...options, use: [asksAbout, approval('suspend'), ...(options.use ?? [])] })

function pendingOf(run: Run): readonly Approval[] {
  return run.status === 'suspended' ? run.pending : []
}
const saved = (run: Run): SavedRun => JSON.parse(JSON.stringify(run)) as SavedRun
const answerAll = (run: Run, answer: Answer = 'allow') =>
  Object.fromEntries(pendingOf(run).map(({ id }) => [id, answer]))

test('a call of a subagent that needs approval suspends the run, and names the subagent', async () => {
  const { agent, looked } = world()
  const run = await agent.run(plan(calls(spawn('s', 'plain', calls(look('a'), look('b', '?b')), 'Done.')), 'End.'))
  assert.deepEqual([run.status, looked], ['suspended', ['a']])
  assert.deepEqual(
    pendingOf(run).map(({ by, toolCall, path }) => [by, toolCall.id, path]),
    [['ask', 'b', [{ agent: 'plain', step: 0, call: 's' }]]],
  )
})

test('a blocked call of a subagent is blocked, and edited arguments are used', async () => {
  for (const [answer, expected] of [
    [{ block: 'not today' }, []],
    [{ allow: { at: 'other' } }, ['other']],
  ] as const) {
    const { agent, looked } = world()
    const run = await agent.run(plan(calls(spawn('s', 'plain', calls(look('b', '?b')), 'Done.')), 'End.'))
    const resumed = await agent.resume(saved(run), { answers: answerAll(run, answer) })
    assert.deepEqual([resumed.status, looked], ['completed', expected])
  }
})

test('an approved subagent call waits for the approvals inside it, and cannot be answered twice', async () => {
  const asksAboutAgents = guard('beforeToolUse', (ctx) => ctx.ask('Another agent?'), { name: 'agents', tool: 'spawn' })
  const { agent, looked } = world({ use: [asksAboutAgents] })
  const first = await agent.run(plan(calls(spawn('s', 'plain', calls(look('x', '?x')), 'Done.')), 'End.'))
  const [spawning] = pendingOf(first)
  const second = await agent.resume(saved(first), { answers: { [spawning!.id]: 'allow' } })
  assert.deepEqual(
    pendingOf(second).map(({ toolCall }) => toolCall.name),
    ['look'],
  )
  await assert.rejects(agent.resume(saved(second), { answers: { [spawning!.id]: 'allow' } }), { code: 'ANSWER_USED' })
  const third = await agent.resume(saved(second), { answers: answerAll(second) })
  assert.deepEqual([third.status, looked], ['completed', ['?x']])
})

test('several subagents that ask a handler ask one after the other', async () => {
  let [asking, most] = [0, 0]
  const { agent, looked } = familyWorld({
    use: [
      asksAbout,
      approval(async () => {
        most = Math.max(most, ++asking)
        await delay(2)
        asking--
        return 'allow' as const
      }),
    ],
  })
  const run = await agent.run(
    plan(calls(...['a', 'b', 'c', 'd'].map((id) => spawn(id, 'plain', calls(look(`${id}1`, `?${id}`)), 'Done.')))),
  )
  assert.deepEqual([run.status, most, looked.toSorted()], ['completed', 1, ['?a', '?b', '?c', '?d']])
})

test('answers for calls of subagents are validated like others', async () => {
  const { agent } = world()
  const run = await agent.run(plan(calls(spawn('s', 'plain', calls(look('b', '?b')), 'Done.')), 'End.'))
  const [{ id }] = pendingOf(run) as [Approval]
  const refused = async (from: unknown, answers: object): Promise<string> =>
    agent.resume(from as SavedRun, { answers: answers as never }).then(
      (ended) => ended.status,
      (error: AgentError) => error.code,
    )
  const text = JSON.stringify(run)
  assert.equal(await refused(saved(run), { nonsense: 'allow' }), 'ANSWER_UNKNOWN')
  assert.equal(await refused(saved(run), { [id]: 'maybe' }), 'ANSWER_INVALID')
  const forged = JSON.parse(text.replaceAll('"args":{"at":"?b"}', '"args":{"at":"/etc/passwd"}')) as SavedRun
  assert.equal(await refused(forged, { [id]: 'allow' }), 'STATE_INVALID')
})

test('an agent that lacks a guard of a subagent cannot resume; one that lacks its tool or the subagent does not run the call', async () => {
  const task = plan(calls(spawn('s', 'mine', calls(look('b', '?b')), 'Done.')), 'End.')
  const inner = guard('beforeStep', (ctx) => ctx, { name: 'inner' })
  const run = await world({ who: { mine: { use: [inner] } } }).agent.run(task)
  const answers = answerAll(run)
  const resume = async (options: WorldOptions): Promise<readonly unknown[]> => {
    const { agent, looked } = world(options)
    const { status, state } = await agent.resume(saved(run), { answers })
    return [status, looked, JSON.stringify(state.execution!.steps.at(0)!.toolExecutions)]
  }
  await assert.rejects(resume({ who: { mine: {} } }), { code: 'RESUME_GUARD_MISSING', value: 'inner' })
  const [status, looked] = await resume({ who: { mine: { use: [inner], tools: [] } } })
  assert.deepEqual([status, looked], ['completed', []])
  const [ended, did, results] = await resume({})
  assert.deepEqual([ended, did], ['completed', []])
  assert.match(results as string, /The subagent was interrupted and is not continued/)
  assert.deepEqual((await resume({ who: { mine: { use: [inner] } } })).slice(0, 2), ['completed', ['?b']])
})

test('the ledger of a subagent that waited is complete when it ends, without duplicates', async () => {
  const { agent } = world()
  const task = (quiet: boolean) =>
    plan(calls(spawn('s', 'plain', calls(look('a'), look('b', quiet ? 'b' : '?b')), 'Done.')), 'End.')
  const straight = await agent.run(task(true))
  const waiting = await agent.run(task(false))
  const resumed = await agent.resume(saved(waiting), { answers: answerAll(waiting) })
  const firings = (run: Run): readonly string[] =>
    run.ledger
      .filter(({ path, trigger, mode }) => path !== undefined && trigger !== 'beforeToolUse' && mode !== 'loop')
      .map(({ step, trigger, hook: by }) => `${step} ${trigger} ${by}`)
  assert.deepEqual(firings(resumed), firings(straight))
})

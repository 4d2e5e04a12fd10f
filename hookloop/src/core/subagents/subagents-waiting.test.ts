import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { approval } from '../../capabilities/approval.ts'
import type { AgentError } from '../../errors.ts'
import type { SavedRun } from '../state/saved-run.ts'
import type { Answer, Approval } from '../state/tool-call.ts'
import { guard, hook } from '../hooks/hook.ts'
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
import { strictReplay } from '../../sessions/replay/strict-replay.fixture.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'

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
const at = (approval: Approval): unknown => approval.toolCall.args['at']

test('a call of a subagent that needs approval suspends the run, and names the subagent', async () => {
  const { agent, looked } = world()
  const run = await agent.run(plan(calls(spawn('s', 'plain', calls(look('a'), look('b', '?b')), 'Done.')), 'End.'))
  assert.deepEqual([run.status, looked], ['suspended', ['a']])
  assert.deepEqual(
    pendingOf(run).map(({ by, toolCall, path }) => [by, toolCall.id, path]),
    [['ask', 'b', [{ agent: 'plain', step: 0, call: 's' }]]],
  )
})

test('after JSON and an answer to its id, the subagent resumes exactly there', async () => {
  const { agent, looked } = world()
  const run = await agent.run(plan(calls(spawn('s', 'plain', calls(look('a'), look('b', '?b')), 'Done.')), 'End.'))
  const resumed = await agent.resume(saved(run), { answers: answerAll(run) })
  assert.deepEqual([resumed.status, resumed.text, looked], ['completed', 'End.', ['a', '?b']])
  assert.deepEqual(
    [resumed.state.usage.steps, resumed.state.usage.toolCalls, resumed.state.usage.inputTokens],
    [4, 3, 40],
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

test('several subagents wait for approval at once, two of them nested, and are answered one by one', async () => {
  const { agent, looked } = world()
  const deep = (id: string) =>
    spawn(id, 'plain', calls(spawn(`${id}i`, 'plain', calls(look(`${id}x`, `?${id}`)), 'In.')), 'Out.')
  const task = plan(
    calls(deep('a'), look('top', '?top'), deep('b'), spawn('c', 'plain', calls(look('cx', '?c')), 'C.')),
    'End.',
  )
  let run: Run = await agent.run(task)
  assert.deepEqual(pendingOf(run).map(at), ['?a', '?b', '?c', '?top']) // calls that ask come last in their step
  assert.deepEqual(
    pendingOf(run).map(({ path }) => path?.length ?? 0),
    [2, 2, 1, 0],
  )
  for (const [answered, rest] of [
    ['?b', ['?a', '?c', '?top']],
    ['?top', ['?a', '?c']],
    ['?c', ['?a']],
  ] as const) {
    const { id } = pendingOf(run).find((each) => at(each) === answered)!
    run = await agent.resume(saved(run), { answers: { [id]: 'allow' } })
    assert.deepEqual([run.status, pendingOf(run).map(at)], ['suspended', rest])
  }
  run = await agent.resume(saved(run), { answers: answerAll(run) })
  assert.deepEqual([run.status, run.text, looked], ['completed', 'End.', ['?b', '?top', '?c', '?a']])
  assert.equal(run.state.usage.steps, 2 + 4 + 4 + 2)
})

test('a subagent may need approval again after it was answered', async () => {
  const { agent, looked } = world()
  let run: Run = await agent.run(
    plan(calls(spawn('s', 'plain', calls(look('1', '?1')), calls(look('2', '?2')), 'Done.')), 'End.'),
  )
  for (let i = 0; run.status === 'suspended'; i++) {
    assert.deepEqual(pendingOf(run).map(at), [`?${i + 1}`])
    run = await agent.resume(saved(run), { answers: answerAll(run) })
  }
  assert.deepEqual([run.status, looked], ['completed', ['?1', '?2']])
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

test('D06: a run with nested subagents is resumed by other processes, and nothing is executed twice', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'hookloop-subagents-'))
  const script = fileURLToPath(new URL('subagents-process.fixture.ts', import.meta.url))
  const go = (mode: string, given: string): { status: string; text: string; pending: string[]; modelCalls: number } =>
    JSON.parse(
      execFileSync(process.execPath, ['--conditions=hookloop-source', '--no-warnings', script, mode, folder, given], {
        encoding: 'utf8',
      }),
    ) as never
  const deep = spawn(
    'd',
    'plain',
    calls(look('d1'), spawn('e', 'plain', calls(look('e1'), look('e2', '?e')), 'In.')),
    'Out.',
  )
  const task = plan(calls(deep, spawn('f', 'plain', calls(look('f1', '?f')), 'F.')), 'End.')
  const first = go('start', task)
  const second = go('resume', JSON.stringify({ [first.pending[1]!]: 'allow' }))
  const third = go('resume', JSON.stringify({ [second.pending[0]!]: 'allow' }))
  const log = readFileSync(join(folder, 'effects.log'), 'utf8').trim().split('\n')
  rmSync(folder, { recursive: true })
  assert.deepEqual(
    [first.status, second.status, third.status, third.text],
    ['suspended', 'suspended', 'completed', 'End.'],
  )
  assert.deepEqual([first.modelCalls, second.modelCalls, third.modelCalls], [4, 1, 3])
  assert.deepEqual(log.toSorted(), ['?e', '?f', 'd1', 'e1'])
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

test('guards judge a pending call of a subagent again, also new guards', async () => {
  const run = await world().agent.run(plan(calls(spawn('s', 'plain', calls(look('b', '?b')), 'Done.')), 'End.'))
  const never = guard('beforeToolUse', (ctx) => ctx.block('never'), { name: 'never', tool: 'look' })
  const { agent, looked } = world({ use: [never] })
  const resumed = await agent.resume(saved(run), { answers: answerAll(run) })
  assert.deepEqual([resumed.status, looked], ['completed', []])
})

test('a run that is cancelled while a subagent waits ends, and the subagent with it', async () => {
  const controller = new AbortController()
  const { agent, looked } = world({ use: [hook('onPause', (ctx) => (controller.abort(), ctx), { name: 'give up' })] })
  const run = await agent.run(plan(calls(spawn('s', 'plain', calls(look('b', '?b')), 'Done.')), 'End.'), {
    signal: controller.signal,
  })
  assert.deepEqual([run.status, looked], ['cancelled', []])
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

test('a run that was suspended and resumed replays', async () => {
  const task = plan(
    calls(spawn('s', 'plain', calls(look('a'), look('b', '?b')), 'Done.'), spawn('t', 'plain', 'T.')),
    'End.',
  )
  const store = memoryStore()
  const waiting = await world({ store }).agent.run(task, { session: 's' })
  const ended = await world({ store }).agent.resume('s', { answers: answerAll(waiting) })
  assert.equal(ended.status, 'completed')
  const { agent, model, looked } = world()
  await strictReplay(agent, store, 's')
  assert.deepEqual([model.requests.length, looked], [0, []])
})

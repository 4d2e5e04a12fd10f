import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Use } from '../../core/agent/capability.ts'
import { agentTool } from '../../core/agent/agent-tool.ts'
import { tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { liveEffects } from '../../core/effects/effects.ts'
import { AgentError } from '../../errors.ts'
import { guard, hook } from '../../core/hooks/hook.ts'
import { scriptedModel, type Script } from '../../models/scripted.ts'
import type { StoredRun } from '../../core/state/stored-run.ts'
import { fakeClock } from '../../testing/fake-clock.ts'
import { answerApproval } from '../session/approvals.ts'
import { storeOf } from '../session/dying-store.fixture.ts'
import { rewindSession } from '../session/rewind-session.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { readRuns } from './read-runs.ts'

const input = { type: 'object' } as const
const echo = tool({ name: 'echo', description: 'Repeats.', input, execute: (args) => args })
const call = (name: string, args = {}, id = name) => ({ name, args, id })

function agentOf(store: SessionStore, script: Script, ...use: readonly Use[]) {
  return createAgent({ name: 'one', model: scriptedModel(script), store, use: [echo, ...use] })
}

async function runIn(store: SessionStore): Promise<StoredRun> {
  return (await readRuns(store, 's')).at(-1)!
}

/** The session as it was when its process died, right after the first line that has this. */
async function diedAfter(store: SessionStore, ...parts: readonly string[]): Promise<SessionStore> {
  const { lines } = (await store.read('s'))!
  const last = lines.findIndex((line) => parts.every((part) => line.includes(part)))
  assert.notEqual(last, -1)
  return storeOf('s', lines.slice(0, last + 1))
}

test('an open step has the result that the tool returned, a closed one that which hooks let pass', async () => {
  const store = memoryStore()
  const hides = hook('afterToolUse', (ctx) => ctx.withOutput('hidden'), { name: 'hides' })
  await agentOf(store, [{ toolCalls: [call('echo', { a: 1 })] }, 'Done.'], hides).run('Go.', { session: 's' })
  const outputs = async (from: SessionStore) =>
    (await runIn(from)).steps.map(({ toolCalls: [made] }) => made?.result?.output)
  assert.deepEqual(await outputs(await diedAfter(store, '"t":"end"', '"kind":"tool"')), [{ a: 1 }])
  assert.deepEqual(await outputs(store), ['hidden', undefined])
})

test('a call that waits has the arguments that the approver is shown, and those that the model sent', async () => {
  const store = memoryStore()
  const careful = hook('beforeToolUse', (ctx) => ctx.withArgs({ ...ctx.toolCall.args, safe: true }), {
    name: 'careful',
  })
  const asks = guard('beforeToolUse', (ctx) => (ctx.toolCall.id === 'b' ? ctx.ask('Sure?') : ctx), { name: 'asks' })
  const script: Script = [
    { text: 'Both.', toolCalls: [call('echo', { n: 1 }, 'a'), call('echo', { n: 2 }, 'b')] },
    'Done.',
  ]
  await agentOf(store, script, careful, asks, approval('suspend')).run('Go.', { session: 's' })
  const run = await runIn(store)
  assert.deepEqual(
    run.steps.map(({ index, text, isOpen, at }) => [index, text, isOpen, at]),
    [[0, 'Both.', true, undefined]],
  )
  assert.deepEqual(
    run.steps[0]!.toolCalls.map(({ id, args, sentArgs, result, approval: question }) => [
      id,
      args,
      sentArgs,
      result?.status,
      question?.message,
    ]),
    [
      ['a', { n: 1, safe: true }, { n: 1 }, 'ok', undefined],
      ['b', { n: 2, safe: true }, { n: 2 }, undefined, 'Sure?'],
    ],
  )
  assert.deepEqual(
    run.ledger.map(({ hook: name, call: of, decision }) => [name, of, decision]),
    [
      ['careful', 'a', undefined],
      ['careful', 'b', undefined],
      ['asks', 'b', 'ask'],
    ],
  )
  assert.deepEqual([run.usage.inputTokens, run.usage.outputTokens], [10, 5])
})

test('answers, a crash and another question are events in their order, and questions are calls that take as long as their answer', async () => {
  const clock = fakeClock({ startAt: 1_000 })
  const effects = liveEffects({ clock })
  const store = memoryStore()
  const asks = guard('beforeToolUse', (ctx) => ctx.ask('Sure?'), { name: 'asks' })
  const script: Script = [{ toolCalls: [call('echo', {}, 'a'), call('echo', {}, 'b')] }, 'Done.']
  const agent = () => agentOf(store, script, asks, approval('suspend'))
  const waiting = await agent().run('Go.', { session: 's', effects })
  assert.ok(waiting.status === 'suspended')
  const [a, b] = waiting.pending.map(({ id }) => id) as [string, string]
  await clock.advance(10)
  await answerApproval(store, { session: 's', approval: a, answer: 'allow', by: 'eve', now: clock.now() })
  assert.deepEqual([(await runIn(store)).status, (await runIn(store)).pending.map(({ id }) => id)], ['suspended', [b]])
  await clock.advance(5)
  assert.equal((await agent().resume('s', { effects })).status, 'suspended')
  await clock.advance(20)
  const { lines } = (await store.read('s'))!
  const died = await storeOf('s', lines.slice(0, lines.findLastIndex((line) => line.includes('"t":"resume"')) + 1))
  const again = agentOf(died, ['Done.'], asks, approval('suspend'))
  await again.resume('s', { effects, answers: { [b]: { block: 'No.' } } })
  const run = await runIn(died)
  assert.deepEqual(
    run.events.map((event) => [
      event.type,
      event.at,
      'downMs' in event ? event.downMs : 'answers' in event ? event.answers : undefined,
    ]),
    [
      ['suspended', 1_000, undefined],
      ['answered', 1_010, undefined],
      ['resumed', 1_015, { [a]: 'allow' }],
      ['answered', 1_035, undefined],
      ['interrupted', 1_035, 0],
    ],
  )
  assert.deepEqual(
    run.calls.filter(({ kind }) => kind === 'approval').map((each) => [each.call, each.began, each.ended, each.output]),
    [
      ['a', 1_000, 1_010, 'allow'],
      ['b', 1_000, 1_035, { block: 'No.' }],
    ],
  )
  assert.deepEqual(
    [run.status, run.waitedMs, run.steps[0]!.toolCalls.map(({ result }) => result!.status)],
    ['completed', 35, ['ok', 'blocked']],
  )
})

test('a subagent that hooks had continue is one call of its parent, from its first begin to its last end', async () => {
  const clock = fakeClock({ startAt: 1_000 })
  const store = memoryStore()
  const slow = tool({ name: 'slow', description: 'Waits.', input, execute: () => clock.advance(7).then(() => 'ok') })
  const child = createAgent({
    model: scriptedModel([{ toolCalls: [call('slow')] }, 'Half.', 'Whole.'], { modelId: 'kid' }),
    use: [slow],
  })
  const ask = agentTool({
    name: 'ask',
    description: 'Asks.',
    input,
    to: () => ({ name: 'kid', to: child, input: 'Hi.' }),
  })
  const more = hook(
    'onSubagentStop',
    async (ctx) => {
      await clock.advance(3)
      return ctx.output === 'Half.' ? ctx.requestContinuation('And the rest?') : ctx
    },
    { name: 'more' },
  )
  await agentOf(store, [{ toolCalls: [call('ask')] }, 'Done.'], ask, more).run('Go.', {
    session: 's',
    effects: liveEffects({ clock }),
  })
  const run = await runIn(store)
  const [made] = run.steps[0]!.toolCalls
  assert.deepEqual([made!.result?.output, made!.began, made!.ended], ['Whole.', 1_000, 1_010])
  const path = [{ agent: 'kid', step: 0, call: 'ask' }]
  assert.deepEqual(
    run.calls.map(({ kind, step, path: of, call: id }) => [kind, step, of, id]),
    [
      ['inference', 0, undefined, undefined],
      ['inference', 0, path, undefined],
      ['tool', 0, path, 'slow'],
      ['inference', 1, path, undefined],
      ['inference', 0, path, undefined],
      ['inference', 1, undefined, undefined],
    ],
  )
  assert.equal(new Set(run.calls.map(({ key }) => key)).size, 6)
  assert.deepEqual(
    run.models.map(({ model, calls }) => [model, calls]),
    [
      ['scripted/script', 2],
      ['scripted/kid', 3],
    ],
  )
})

test('a subagent that waits or has died is in the calls of its parent, with the question that it asks', async () => {
  const store = memoryStore()
  const child = createAgent({ model: scriptedModel([{ toolCalls: [call('echo', { n: 1 })] }]), use: [echo] })
  const ask = agentTool({
    name: 'ask',
    description: 'Asks.',
    input,
    to: () => ({ name: 'kid', to: child, input: 'Hi.' }),
  })
  const asks = guard('beforeToolUse', (ctx) => ctx.ask('Sure?'), { name: 'asks', tool: 'echo' })
  await agentOf(store, [{ toolCalls: [call('ask', { q: 1 })] }, 'Done.'], ask, asks, approval('suspend')).run('Go.', {
    session: 's',
  })
  const run = await runIn(store)
  const [made] = run.steps[0]!.toolCalls
  assert.deepEqual(
    [made!.args, made!.result, made!.approval, typeof made!.began],
    [{ q: 1 }, undefined, undefined, 'number'],
  )
  assert.deepEqual(
    run.pending.map(({ path, message }) => [path?.[0]?.agent, message]),
    [['kid', 'Sure?']],
  )
  assert.deepEqual(
    run.calls.map(({ kind, path, ended }) => [kind, path?.length, ended !== undefined]),
    [
      ['inference', undefined, true],
      ['inference', 1, true],
      ['approval', 1, false],
    ],
  )
  assert.equal(run.usage.inputTokens, 20)
})

test('attempts at a tool and at a model are calls of their own; the model of a step is the one that answered', async () => {
  const store = memoryStore()
  const again = hook('aroundToolUse', async (_ctx, next) => (await next(), next()), { name: 'again' })
  const other = scriptedModel(['Done.', 'Done.'], { modelId: 'other' })
  const falls = hook(
    'aroundInference',
    async (_ctx, next) => {
      try {
        return await next()
      } catch {
        return next({ model: other })
      }
    },
    { name: 'falls' },
  )
  const script: Script = [{ toolCalls: [call('echo')] }, { error: new AgentError('MODEL_OVERLOADED', 'Too much.') }]
  await agentOf(store, script, again, falls).run('Go.', { session: 's' })
  const run = await runIn(store)
  assert.deepEqual(
    run.calls.map(({ kind, step, call: id, model, error, output }) => [
      kind,
      step,
      id ?? model,
      error?.code ?? typeof output,
    ]),
    [
      ['inference', 0, 'scripted/script', 'object'],
      ['inference', 0, 'scripted/script', 'object'],
      ['tool', 0, 'echo', 'object'],
      ['tool', 0, 'echo', 'object'],
      ['tool', 0, 'echo', 'object'],
      ['inference', 1, 'scripted/script', 'MODEL_OVERLOADED'],
      ['inference', 1, 'scripted/other', 'object'],
      ['inference', 1, 'scripted/script', 'object'],
    ],
  )
  assert.deepEqual(
    run.steps.map(({ model }) => model),
    ['scripted/script', 'scripted/other'],
  )
  assert.deepEqual(
    run.models.map(({ model, calls, inputTokens }) => [model, calls, inputTokens]),
    [
      ['scripted/script', 2, 10],
      ['scripted/other', 1, 10],
    ],
  )
})

test('what a run has spent includes its open step: models, tools with and without hooks around them, and subagents', async () => {
  const store = memoryStore()
  const spends = (name: string) =>
    tool({ name, description: 'Costs.', input, execute: (_args, { spend }) => (spend({ inputTokens: 100 }), 'spent') })
  const child = createAgent({ model: scriptedModel(['Half.', 'Whole.']) })
  const ask = agentTool({
    name: 'ask',
    description: 'Asks.',
    input,
    to: () => ({ name: 'kid', to: child, input: 'Hi.' }),
  })
  const more = hook('onSubagentStop', (ctx) => (ctx.output === 'Half.' ? ctx.requestContinuation('And?') : ctx), {
    name: 'more',
  })
  const around = hook('aroundToolUse', (_ctx, next) => next(), { name: 'around', tool: 'wrapped' })
  const asks = guard('beforeToolUse', (ctx) => ctx.ask('Sure?'), { name: 'asks', tool: 'echo' })
  const script: Script = [{ toolCalls: [call('plain'), call('wrapped'), call('ask'), call('echo')] }, 'Done.']
  const use = [spends('plain'), spends('wrapped'), ask, more, around, asks, approval('suspend')]
  const agent = agentOf(store, script, ...use)
  const waiting = await agent.run('Go.', { session: 's' })
  assert.ok(waiting.status === 'suspended')
  assert.equal((await runIn(store)).usage.inputTokens, 230)
  const run = await agent.resume('s', { answers: { [waiting.pending[0]!.id]: 'allow' } })
  assert.deepEqual([run.state.usage.inputTokens, (await runIn(store)).usage.inputTokens], [240, 240])
})

test('a run that waited when its session was rewound is stopped, has no questions, and keeps its closed steps', async () => {
  const store = memoryStore()
  const asks = guard('beforeToolUse', (ctx) => (ctx.toolCall.id === 'b' ? ctx.ask('Sure?') : ctx), { name: 'asks' })
  const script: Script = [{ toolCalls: [call('echo', {}, 'a')] }, { toolCalls: [call('echo', {}, 'b')] }, 'Done.']
  await agentOf(store, script, asks, approval('suspend')).run('Go.', { session: 's' })
  assert.deepEqual([(await runIn(store)).status, (await runIn(store)).steps.length], ['suspended', 2])
  await rewindSession(store, 's', { at: (await runIn(store)).steps[0]!.seq! })
  const run = await runIn(store)
  assert.deepEqual(
    [run.status, run.final?.by, run.pending, run.steps.map(({ isOpen, isRewound }) => [isOpen, isRewound])],
    ['stopped', 'rewind', [], [[undefined, undefined]]],
  )
  assert.deepEqual(
    run.events.map(({ type }) => type),
    ['suspended', 'rewound'],
  )
})

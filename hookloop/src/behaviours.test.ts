import assert from 'node:assert/strict'
import { test } from 'node:test'
import { approval } from './capabilities/approval.ts'
import { errorPolicy } from './capabilities/error-policy.ts'
import { guards } from './capabilities/guards.ts'
import type { Use } from './core/agent/capability.ts'
import { tool } from './core/agent/tool.ts'
import { createAgent } from './create-agent.ts'
import { AgentState } from './core/state/agent-state.ts'
import { countVotes, type ContinuationEvaluation, type StopReason } from './core/state/continuation.ts'
import type { JsonObject } from './values/json.ts'
import { fromSavedRun, fromStateJson } from './core/state/saved-run.ts'
import type { AgentError } from './errors.ts'
import { guard, hook, observe, type Hook } from './core/hooks/hook.ts'
import { scriptedModel, type Script, type ScriptedModel } from './models/scripted.ts'
import { fire } from './testing/fire.ts'
import { recordEvents } from './testing/record-events.ts'

// Behaviours that the design was compared with, by their number: the loop, hooks, tools and the state.
// behaviours-capabilities.test.ts has those of capabilities and sessions, and a list of what is different here, and why.

const ping = tool({ name: 'ping', description: 'Answers.', input: { type: 'object' }, execute: () => 'pong' })
const callPing: Script[number] = { toolCalls: [{ name: 'ping' }] }
const never = guard('beforeToolUse', (ctx) => ctx.block('Never.'), { name: 'never' })

function agentWith(script: Script | ScriptedModel, ...use: readonly Use[]) {
  return createAgent({ model: 'infer' in script ? script : scriptedModel(script), use: [ping, ...use] })
}

/** The states that iterating over a run yields. */
async function statesOf(agent: ReturnType<typeof agentWith>): Promise<AgentState[]> {
  const states: AgentState[] = []
  for await (const state of agent.iterate('go')) states.push(state)
  return states
}

function stepTypes(state: AgentState): string[] {
  return state.execution!.steps.slice().map((step) => step.type)
}

// ── loop

test('B1: one final response is one step, and the run is completed', async () => {
  const run = await agentWith(['done']).run('go')
  assert.deepEqual([run.status, stepTypes(run.state)], ['completed', ['finalResponse']])
})

test('B2: a tool call and a final response are two steps, and iterating gives two states', async () => {
  const states = await statesOf(agentWith([callPing, 'done']))
  assert.deepEqual(states.map(stepTypes), [['toolExecution'], ['toolExecution', 'finalResponse']])
})

test('B3: a run continues after a step whose tool calls are all blocked', async () => {
  const run = await agentWith([callPing, 'done'], never).run('go')
  assert.deepEqual([run.status, run.text], ['completed', 'done'])
})

test('B4: after a stop at beforeExecution there is no step; onStop and afterExecution still fire, and one state is yielded', async () => {
  const seen: string[] = []
  const watch = observe(['onStop', 'afterExecution'], (ctx) => void seen.push(ctx.trigger))
  const agent = agentWith(
    ['never'],
    guard('beforeExecution', (ctx) => ctx.stop('Not today.')),
    watch,
  )
  const states = await statesOf(agent)
  assert.deepEqual(
    states.map((state) => [state.stepCount, state.execution!.status]),
    [[0, 'stopped']],
  )
  assert.deepEqual(seen, ['onStop', 'afterExecution'])
})

test('B6: a hook that throws at beforeStep fails the run without a step, and afterStep is skipped', async () => {
  const throws = hook('beforeStep', () => assert.fail('no'), { name: 'throws' })
  const { run, types } = await recordEvents(
    agentWith(
      ['never'],
      throws,
      observe('afterStep', () => 0),
    ).stream('go'),
  )
  assert.deepEqual([run.status, run.state.stepCount], ['failed', 0])
  assert.equal(types.includes('stepFinished') || run.ledger.some((entry) => entry.trigger === 'afterStep'), false)
})

test('B7: a model that throws in an open step leaves that step with its error; afterStep fires once', async () => {
  let fired = 0
  const run = await agentWith(
    [{ error: 'down' }],
    observe('afterStep', () => ++fired),
  ).run('go')
  assert.deepEqual([run.status, stepTypes(run.state), fired], ['failed', ['error'], 1])
  assert.equal(run.state.lastStep!.errors[0]!.message, 'down')
})

test('B8: the error of a failed run has the thrown error as its cause', async () => {
  const thrown = new RangeError('down')
  const run = await agentWith([{ error: thrown }]).run('go')
  assert.equal(run.status === 'failed' && run.error.cause, thrown)
})

test('B11: a natural end is reported once, as completed', async () => {
  const events = await recordEvents(agentWith([callPing, 'done']).stream('go'))
  assert.deepEqual(
    events.of('finished').map((event) => event.record.status),
    ['completed'],
  )
  assert.equal(events.types.at(-1), 'finished')
})

test('B14: a continuation requested after a final response adds one step, and the vote does not apply again', async () => {
  const more = hook('afterStep', (ctx) => (ctx.step.index === 0 ? ctx.requestContinuation('More.') : ctx))
  const run = await agentWith(['first', 'second', 'third'], more).run('go')
  assert.deepEqual([run.status, run.text, run.state.execution!.votes], ['completed', 'second', []])
})

test('B15: an error after a tool step yields two states, the second failed', async () => {
  const states = await statesOf(agentWith([callPing, { error: 'down' }]))
  assert.deepEqual(
    states.map((state) => state.execution!.status),
    ['running', 'failed'],
  )
})

test('B16: a run from an ended state starts a new execution, and executions are counted', async () => {
  const agent = agentWith(['one', 'two', 'three'])
  const first = await agent.run('go')
  const second = await agent.run('go', { from: first })
  const third = await agent.run('go', { from: JSON.parse(JSON.stringify(second)) })
  const runs = [first, second, third]
  assert.deepEqual(
    runs.map((run) => run.state.executionCount),
    [1, 2, 3],
  )
  assert.equal(new Set(runs.map((run) => run.state.execution!.id)).size, 3)
})

// ── hooks

test('B19: hooks run by priority, and in order of registration if it is equal', async () => {
  const order: string[] = []
  const at = (name: string, priority: number) =>
    hook('beforeStep', (ctx) => (order.push(name), ctx), { name, priority })
  await agentWith(['done'], at('b', 0), at('d', -5), at('a', 9), at('c', 0)).run('go')
  assert.deepEqual(order, ['a', 'b', 'c', 'd'])
})

test('B20: a hook runs at its own triggers only; an observer may use all of them, and a hook without one is rejected', async () => {
  const [two, all]: [string[], string[]] = [[], []]
  await agentWith(
    ['done'],
    hook(['beforeStep', 'afterStep'], (ctx) => (two.push(ctx.trigger), ctx)),
    observe('*', (ctx) => all.push(ctx.trigger)),
  ).run('go')
  assert.deepEqual(two, ['beforeStep', 'afterStep'])
  const plain = ['onUserInput', 'beforeExecution', 'beforeStep', 'beforeInference', 'afterInference', 'afterStep']
  assert.deepEqual(all, [...plain, 'onStop', 'afterExecution'])
  assert.throws(() => hook([], (ctx: never) => ctx), { code: 'HOOK_INVALID_OPTION' })
})

test('B21: a hook sees the state of the hook before it, and hooks after a stop still run', async () => {
  const seen: unknown[] = []
  await agentWith(
    ['never'],
    hook('beforeStep', (ctx) => ctx.withState((state) => state.withMetadata('mark', 1)).stop('No.'), { priority: 9 }),
    hook('beforeStep', (ctx) => (seen.push(ctx.state.metadata['mark']), ctx)),
    guard('beforeStep', (ctx) => ctx.stop('No.'), { priority: 9 }),
    guard('beforeStep', (ctx) => (seen.push('guard'), ctx)),
  ).run('go')
  assert.deepEqual(seen, [1, 'guard'])
})

test('B27: the model gets the request that a hook replaced at beforeInference', async () => {
  const order: string[] = []
  const model = scriptedModel(({ system }) => (order.push(`model: ${system}`), 'done'))
  const agent = agentWith(
    model,
    hook('beforeInference', (ctx) => (order.push('before'), ctx.withRequest({ system: 'Replaced.' }))),
    hook('afterInference', (ctx) => (order.push('after'), ctx)),
  )
  for await (const event of agent.stream('go')) if (event.type === 'responded') order.push('event')
  assert.deepEqual(order, ['before', 'model: Replaced.', 'after', 'event'])
})

test('B28: events and the step have the response that a hook replaced at afterInference', async () => {
  const replace = hook('afterInference', (ctx) => ctx.withResponse({ text: 'Tidy.', finishReason: 'length' }))
  const events = await recordEvents(agentWith(['Messy.'], replace).stream('go'))
  const { text, finishReason } = events.run.state.lastStep!
  assert.deepEqual([text, finishReason, events.of('responded')[0]!.text], ['Tidy.', 'length', 'Tidy.'])
})

// ── guards

test('B30: limits apply at their value; the vote has the hook, the value and the limit', async () => {
  const run = await agentWith(
    Array.from({ length: 9 }, () => callPing),
    guards({ maxSteps: 3 }),
  ).run('go')
  const { by, value } = run.status === 'stopped' ? run.final : assert.fail(run.status)
  assert.deepEqual({ by, value }, { by: 'guards.maxSteps', value: { value: 3, limit: 3 } })
})

test('B33: finish reasons: a match stops; no match and an empty list do not', async () => {
  const [only] = guards({ maxSteps: null, maxTokens: null, maxTimeMs: null, finishReasons: ['length'] }).hooks as [
    Hook<'afterInference'>,
  ]
  const votes = async (finishReason: 'length' | 'stop') =>
    (await fire(only, 'afterInference', { response: { finishReason } })).votes?.map((vote) => vote.value)
  assert.deepEqual([await votes('length'), await votes('stop')], [['length'], undefined])
  assert.deepEqual(guards({ maxSteps: null, maxTokens: null, maxTimeMs: null, finishReasons: [] }).hooks, [])
})

test('B34: a run that is cancelled before it starts has no step, during a step no second one, and the reason is userRequested', async () => {
  const before = await agentWith(['never']).run('go', { signal: AbortSignal.abort() })
  const abort = new AbortController()
  const stopper = observe('afterToolUse', () => abort.abort())
  const during = await agentWith([callPing, 'never'], stopper).run('go', { signal: abort.signal })
  for (const [run, steps] of [
    [before, 0],
    [during, 1],
  ] as const) {
    assert.deepEqual([run.status, run.state.stepCount], ['cancelled', steps])
    assert.equal(run.status === 'cancelled' && run.final.reason, 'userRequested')
  }
})

test('B36: of several stops the most urgent reason decides in any order; of equal ones the first', () => {
  const stop = (reason: StopReason, source: string): ContinuationEvaluation => ({
    decision: 'forbidContinuation',
    reason,
    message: '',
    source,
  })
  const [user, steps, other] = [stop('userRequested', 'a'), stop('stepsLimit', 'b'), stop('stepsLimit', 'c')]
  assert.equal(countVotes([steps, user]).stopReason, 'userRequested')
  assert.equal(countVotes([user, steps]).stopReason, 'userRequested')
  assert.equal(countVotes([other, steps]).resolvedBy, 'c')
  assert.equal(countVotes([]).stopReason, undefined)
})

// ── tools

test('B37: a blocked call is not executed and its result says why; the next calls still run', async () => {
  const ran: unknown[] = []
  const note = tool({
    name: 'note',
    description: 'Notes.',
    input: { type: 'object' },
    execute: ({ n }) => ran.push(n!),
  })
  const noOnes = guard('beforeToolUse', (ctx) => (ctx.toolCall.args['n'] === 1 ? ctx.block('No ones.') : ctx))
  const calls = [1, 2, 3].map((n) => ({ name: 'note', args: { n } }))
  const run = await agentWith([{ toolCalls: calls }, 'done'], note, noOnes).run('go')
  const [first] = run.state.execution!.steps.at(0)!.toolExecutions
  assert.deepEqual([ran, first!.status, first!.output], [[2, 3], 'blocked', 'No ones.'])
})

test('B39: a tool that throws is a failed call for the model; the strict policy stops the run', async () => {
  const fails = tool({
    name: 'fails',
    description: 'F.',
    input: { type: 'object' },
    execute: () => assert.fail('broke'),
  })
  const script = [{ toolCalls: [{ name: 'fails' }] }, 'done']
  const run = await agentWith(script, fails).run('go')
  assert.deepEqual(run.state.execution!.steps.at(0)!.toolExecutions, [
    { name: 'fails', status: 'failed', output: 'broke' },
  ])
  const strict = await agentWith(script, fails, errorPolicy('strict')).run('go')
  assert.deepEqual([run.status, strict.status], ['completed', 'stopped'])
})

test('B40: missing arguments are named in a failed result; an unknown tool is a failed result', async () => {
  const input = { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] }
  const send = tool({ name: 'send', description: 'Sends.', input, execute: () => 'sent' })
  const run = await agentWith([{ toolCalls: [{ name: 'send' }, { name: 'constructor' }] }, 'done'], send).run('go')
  const [missing, unknown] = run.state.execution!.steps.at(0)!.toolExecutions
  assert.deepEqual([missing!.status, unknown!.status, run.status], ['failed', 'failed', 'completed'])
  assert.match(JSON.stringify(missing!.output), /\bto\b/)
})

test('B42: each call is in the conversation with its result under the same id', async () => {
  const { state } = await agentWith([{ toolCalls: [{ name: 'ping' }, { name: 'ping', id: 'x' }] }, 'done']).run('go')
  const ids = state.messages
    .slice(1, 3)
    .map(({ role, content }) => [
      role,
      content.map((part) => (part.type === 'tool-call' || part.type === 'tool-result' ? part.toolCallId : part.type)),
    ])
  assert.deepEqual(ids, [
    ['assistant', ['call-1-1', 'x']],
    ['tool', ['call-1-1', 'x']],
  ])
})

const fiveHundred: Script = [{ toolCalls: Array.from({ length: 500 }, () => ({ name: 'ping' })) }, 'done']

test('B43: each of 500 calls in one step runs each hook once', async () => {
  const judged: string[] = []
  await agentWith(
    fiveHundred,
    hook('beforeToolUse', (ctx) => (judged.push(ctx.toolCall.id), ctx)),
  ).run('go')
  assert.deepEqual([judged.length, new Set(judged).size], [500, 500])
})

test('a blocked call reaches afterToolUse marked as blocked, and state changes of tool hooks are kept', async () => {
  const mark = hook(['beforeToolUse', 'afterToolUse'], (ctx) => {
    const what = ctx.trigger === 'afterToolUse' ? ctx.toolExecution.status : 'asked'
    return ctx.withState((state) => state.withMetadata(ctx.trigger, what))
  })
  const { state } = await agentWith([callPing, 'done'], never, mark).run('go')
  assert.deepEqual({ ...state.metadata }, { beforeToolUse: 'asked', afterToolUse: 'blocked' })
})

// ── state

test('B47: only a completed run has an output: not one that ended at a tool step, with a blank answer, or that is suspended', async () => {
  const ended = [
    await agentWith([callPing], guards({ maxSteps: 1 })).run('go'),
    await agentWith(['']).run('go'),
    await agentWith([callPing], approval({ answer: 'suspend', tools: ['ping'] })).run('go'),
  ]
  assert.deepEqual(
    ended.map((run) => ['output' in run, run.text]),
    ended.map(() => [false, '']),
  )
})

test('B48: a state survives JSON with ids and count, without an execution or an end; an invalid date is rejected by name', async () => {
  const blank = AgentState.create({ agentId: 'a', parentId: 'p', executionCount: 3 })
  const later = guard('beforeToolUse', (ctx) => (ctx.state.stepCount === 1 ? ctx.ask('Again?') : ctx))
  const waiting = await agentWith([callPing, callPing], later, approval('suspend')).run('go')
  const json = JSON.parse(JSON.stringify(waiting)) as { state: { execution: JsonObject } }
  assert.deepEqual(fromStateJson(JSON.parse(JSON.stringify(blank))).toJSON(), blank.toJSON())
  assert.deepEqual(fromSavedRun(json).state.toJSON(), waiting.state.toJSON())
  assert.equal(json.state.execution['final'], undefined)
  json.state.execution = { ...json.state.execution, startedAt: 'yesterday' }
  assert.throws(
    () => fromSavedRun(json),
    (error: AgentError) => error.code === 'STATE_INVALID' && error.message.includes('startedAt'),
  )
})

// ── extra

test('X2: every call of a step with 500 calls is executed', async () => {
  const run = await agentWith(fiveHundred).run('go')
  const executed = [...(run.state.execution?.steps ?? [])].map(({ toolExecutions }) => toolExecutions.length)
  assert.deepEqual([run.status, executed], ['completed', [500, 0]])
})

test('X4: two agents with the same options are separate and behave the same', async () => {
  const build = () => agentWith([callPing, 'done'], never)
  const [first, second] = [build(), build()]
  assert.notEqual(first, second)
  const [a, b] = [await first.run('go'), await second.run('go')]
  assert.deepEqual([first.describe(), a.state.messages], [second.describe(), b.state.messages])
})

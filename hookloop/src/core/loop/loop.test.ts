import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { suite, test } from 'node:test'
import { approval } from '../../capabilities/approval.ts'
import { guards } from '../../capabilities/guards.ts'
import { summarization } from '../../capabilities/summarization/summarization.ts'
import { createAgent } from '../../create-agent.ts'
import type { ModelRequest } from '../state/inference.ts'
import { textMessage, textOf, type Message } from '../state/message.ts'
import { guard, hook, observe, type Hook } from '../hooks/hook.ts'
import { isAround, triggerNames, type PlainTrigger } from '../hooks/triggers.ts'
import { scriptedModel, type Script, type ScriptedTurn } from '../../models/scripted.ts'
import type { Use } from '../agent/capability.ts'
import { explain } from '../explain/explain.ts'
import type { Run } from '../agent/run.ts'
import { tool } from '../agent/tool.ts'
import { copiedItems } from '../state/copied-items.fixture.ts'
import { noTokens, noUsage } from '../state/usage.ts'

const plainTriggers = triggerNames.filter((name): name is PlainTrigger => !isAround(name))
const two: ScriptedTurn = { toolCalls: [{ name: 'work' }, { name: 'work' }] }
const three: ScriptedTurn = { toolCalls: [{ name: 'work' }, { name: 'broken' }, { name: 'missing' }] }

const work = tool({ name: 'work', description: 'Works.', input: { type: 'object' }, execute: () => 'worked' })
const broken = tool({
  name: 'broken',
  description: 'Does not.',
  input: { type: 'object' },
  execute: () => Promise.reject(new Error('broken')),
})
const waits = tool({
  name: 'waits',
  description: 'Waits.',
  input: { type: 'object' },
  execute: (_args, { signal }) => delay(30_000, undefined, { signal }),
})

function agentOf(script: Script | ((request: ModelRequest) => ScriptedTurn), ...use: readonly Use[]) {
  const model = scriptedModel(script)
  return { model, agent: createAgent({ model, use: [work, broken, waits, ...use] }) }
}

/** Every call has exactly one result, right after the message that requested it, and every result has its call. */
function assertValid(messages: Iterable<Message>): void {
  let open: readonly string[] = []
  for (const { role, content } of messages) {
    const results = content.flatMap((part) => (part.type === 'tool-result' ? [part.toolCallId] : []))
    assert.deepEqual(results, open, `a message of role ${role} has the results of the calls before it`)
    assert.equal(role === 'tool', results.length > 0)
    open = content.flatMap((part) => (part.type === 'tool-call' ? [part.toolCallId] : []))
    assert.equal(new Set(open).size, open.length, 'ids differ')
  }
  assert.deepEqual(open, [], 'no call is left without a result')
}

function rolesOf({ state }: Run): string {
  return state.messages.map(({ role }) => role).join(' ')
}

// ── the lifecycle

test('a run fires its triggers in the order of the lifecycle', async () => {
  const fired: string[] = []
  const note = <T>(name: string, value: T): T => (fired.push(name), value)
  const tooling = tool({
    name: 'tooling',
    description: 'A tool.',
    input: { type: 'object' },
    execute: () => note('[ tool ]', 'ok'),
  })
  const { agent } = agentOf(
    ({ messages }) =>
      note<ScriptedTurn>('[ model ]', messages.length === 1 ? { toolCalls: [{ name: 'tooling' }] } : 'Done.'),
    tooling,
    hook(plainTriggers, (ctx) => note(ctx.trigger, ctx)),
    hook('aroundInference', (_ctx, next) => note('aroundInference', next)()),
    hook('aroundToolUse', (_ctx, next) => note('aroundToolUse', next)()),
  )
  await agent.run('go')
  const infer = ['beforeStep', 'beforeInference', 'aroundInference', '[ model ]', 'afterInference']
  const use = ['beforeToolUse', 'aroundToolUse', '[ tool ]', 'afterToolUse']
  const steps = [...infer, ...use, 'afterStep', ...infer, 'afterStep']
  assert.deepEqual(fired, ['onUserInput', 'beforeExecution', ...steps, 'onStop', 'afterExecution'])
})

test('a call and an answer are two steps, toolExecution and finalResponse', async () => {
  const run = await agentOf([two, 'Done.']).agent.run('go')
  assert.deepEqual(
    run.state.execution!.steps.map(({ type, index }) => `${index} ${type}`),
    ['0 toolExecution', '1 finalResponse'],
  )
})

test('a model that fails after a successful step leaves that step, an error step and the error', async () => {
  const error = new RangeError('overloaded')
  const run = await agentOf([two, { error }]).agent.run('go')
  assert.ok(run.status === 'failed')
  assert.deepEqual(
    run.state.execution!.steps.map(({ type }) => type),
    ['toolExecution', 'error'],
  )
  assert.deepEqual([run.error.code, run.error.cause], ['MODEL_FAILED', error])
  assert.match(explain(run), /overloaded/)
})

test('an error is reported on the step in which it happened, also one at afterStep', async () => {
  const fail = hook('afterStep', () => Promise.reject(new Error('boom')), { name: 'fail' })
  const [step] = (await agentOf(['Done.'], fail).agent.run('go')).state.execution!.steps
  assert.deepEqual(
    step?.errors.map(({ during, code }) => `${code} during ${during}`),
    ['HOOK_FAILED during afterStep'],
  )
})

// ── the conversation is always valid

const boom = (): never => {
  throw new Error('boom')
}

type Mishap = readonly [what: string, use: (cancel: () => void) => readonly Use[], turn?: ScriptedTurn]

const mishaps: readonly Mishap[] = [
  ['when nothing goes wrong', () => []],
  ['when calls fail, are unknown or succeed', () => [], three],
  [
    'when a guard blocks the first call',
    () => [guard('beforeToolUse', (ctx) => (ctx.toolCall.id === 'call-1-1' ? ctx.block('no') : ctx))],
  ],
  ['when there is no approver', () => [guard('beforeToolUse', (ctx) => ctx.ask('sure?'))]],
  ['when the run is stopped before a call', () => [guard('beforeToolUse', (ctx) => ctx.stop('enough'))]],
  ['when the run is stopped after a call', () => [guard('afterToolUse', (ctx) => ctx.stop('enough'))]],
  ['when the run is stopped after the model', () => [guard('afterInference', (ctx) => ctx.stop('enough'))]],
  [
    'when the answer is withheld',
    () => [guard('afterInference', (ctx) => (ctx.state.stepCount === 0 ? ctx.block('no') : ctx))],
  ],
  ['when a result is withheld', () => [guard('afterToolUse', (ctx) => ctx.block('no'))]],
  ['when a hook throws before a call', () => [hook('beforeToolUse', boom)]],
  ['when a hook throws after a call', () => [hook('afterToolUse', boom)]],
  ['when a hook throws after the step', () => [hook('afterStep', boom)]],
  ['when the run is cancelled before a call', (cancel) => [hook('beforeToolUse', (ctx) => (cancel(), ctx))]],
  [
    'when the run is cancelled during a call',
    (cancel) => [hook('aroundToolUse', (_ctx, next) => (setImmediate(cancel), next()))],
    { toolCalls: [{ name: 'waits' }, { name: 'work' }] },
  ],
  ['when a limit is reached among the calls', () => [guards({ maxToolCalls: 1 })]],
  [
    'when the model repeats an id or gives none',
    () => [],
    { toolCalls: ['a', 'a', '', ''].map((id) => ({ name: 'work', id })) },
  ],
  [
    'when arguments are no object',
    () => [],
    {
      toolCalls: [
        { name: 'work', args: 'nonsense' },
        { name: 'work', args: null },
      ],
    },
  ],
]

suite('every call has exactly one result, right after it', () => {
  for (const [what, use, turn = two] of mishaps) {
    test(what, async () => {
      const controller = new AbortController()
      const { model, agent } = agentOf([turn, 'Done.'], ...use(() => controller.abort()))
      const run = await agent.run('go', { signal: controller.signal })
      assertValid(run.state.messages)
      for (const { messages } of model.requests) assertValid(messages)
      const next = await agentOf(['Again.']).agent.run('go on', { from: run })
      assertValid(next.state.messages)
    })
  }
})

/** What hooks may do to a conversation. */
const edits: { readonly [what: string]: (messages: readonly Message[]) => readonly Message[] } = {
  'adds a message': (messages) => [...messages, textMessage('user', 'A note.')],
  'puts the same messages there again': (messages) => [...messages],
  'changes every text': (messages) =>
    messages.map((each) => ({
      ...each,
      content: each.content.map((part) => (part.type === 'text' ? { ...part, text: 'x' } : part)),
    })),
  'drops the beginning': (messages) => messages.slice(1),
  'keeps only the last message': (messages) => messages.slice(-1),
  'drops the last message': (messages) => messages.slice(0, -1),
  'adds another call with its result': (messages) => [
    ...messages.slice(1),
    { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'other', toolName: 'other', input: {} }] },
    { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'other', toolName: 'other', output: 'x' }] },
  ],
  'replaces the conversation': () => [textMessage('user', 'Something else.')],
  'clears the conversation': () => [],
}

suite('a hook that changes the conversation between calls leaves it valid', () => {
  for (const [what, edit] of Object.entries(edits)) {
    for (const on of ['beforeToolUse', 'afterToolUse'] as const) {
      test(`one that ${what} at ${on}`, async () => {
        let changed = false
        const editing: Hook = hook(on, (ctx) => {
          if (changed) return ctx
          changed = true
          return ctx.withState((state) => state.withMessages(edit([...state.messages])))
        })
        const { model, agent } = agentOf([two, 'Done.'], editing)
        const run = await agent.run('go')
        assert.equal(run.status, 'completed')
        assertValid(model.requests[1]!.messages)
        assertValid(run.state.messages)
      })
    }

    test(`one that ${what} at onPause or onResume`, async () => {
      for (const on of ['onPause', 'onResume'] as const) {
        const ask = guard('beforeToolUse', (ctx) => ctx.ask('sure?'))
        const editing = hook(on, (ctx) => ctx.withState((state) => state.withMessages(edit([...state.messages]))))
        const { agent } = agentOf([two, 'Done.'], ask, approval('suspend'), editing)
        const run = await agent.run('go')
        assert.ok(run.status === 'suspended')
        const answers = Object.fromEntries(run.pending.map(({ id }) => [id, 'allow' as const]))
        const resumed = await agent.resume(JSON.parse(JSON.stringify(run)) as typeof run, { answers })
        assertValid(resumed.state.messages)
      }
    })
  }
})

test('messages that hooks add between calls come after the results', async () => {
  const say = hook('beforeToolUse', (ctx) => ctx.withState((state) => state.withMessage('A note.')))
  assert.equal(rolesOf(await agentOf([two, 'Done.'], say).agent.run('go')), 'user assistant tool user user assistant')
})

// ── continuing a finished run

test('from continues a finished run: same conversation, step count and usage, new execution', async () => {
  const { model, agent } = agentOf([two, 'One.', 'Two.', 'Three.'])
  const first = await agent.run('a', { metadata: { user: 'Ada' } })
  const second = await agent.run('b', { from: first })
  const third = await agent.run('c', { from: JSON.parse(JSON.stringify(second)) as typeof second })
  assert.deepEqual(
    [first, second, third].map(({ state }) => state.executionCount),
    [1, 2, 3],
  )
  assert.deepEqual(
    [first, second, third].map(({ state }) => state.usage.inputTokens),
    [20, 30, 40],
  )
  assert.deepEqual([third.state.stepCount, third.state.execution!.usage.steps, third.state.usage.steps], [1, 1, 4])
  assert.deepEqual([third.state.agentId, third.state.metadata['user']], [first.state.agentId, 'Ada'])
  assert.equal(new Set([first, second, third].map(({ state }) => state.execution!.id)).size, 3)
  assert.deepEqual(
    [...model.requests.at(-1)!.messages].slice(-3).map(({ content }) => textOf(content)),
    ['b', 'Two.', 'c'],
  )
})

test('a run leaves the run it continues unchanged', async () => {
  const { agent } = agentOf(['One.', 'Two.', 'Three.'])
  const first = await agent.run('a')
  const before = JSON.stringify(first)
  await Promise.all([agent.run('b', { from: first }), agent.run('c', { from: first })])
  assert.equal(JSON.stringify(first), before)
})

test('limits apply to one execution, not to the conversation', async () => {
  const { agent } = agentOf(() => 'Done.', guards({ maxSteps: 1, maxTokens: 20 }))
  const first = await agent.run('a')
  const second = await agent.run('b', { from: first })
  assert.deepEqual([first.status, second.status], ['completed', 'completed'])
})

for (const [how, script, options] of [
  ['failed', [{ error: 'lost' }, 'Done.'], {}],
  ['cancelled', ['Done.', 'Done.'], { signal: AbortSignal.abort() }],
] as const) {
  test(`from continues a ${how} run`, async () => {
    const { agent } = agentOf(script)
    const first = await agent.run('a', options)
    const second = await agent.run('b', { from: first })
    assert.deepEqual([first.status, second.status], [how, 'completed'])
    assert.notEqual(second.state.execution!.id, first.state.execution?.id)
  })
}

// ── usage

test('hooks see the usage, including the current call', async () => {
  const seen: string[] = []
  const look = hook(['beforeInference', 'afterInference', 'beforeToolUse', 'afterStep'], (ctx) => {
    const { inputTokens, steps, toolCalls } = ctx.spent
    seen.push(`${ctx.trigger}: ${inputTokens} tokens, ${steps} steps, ${toolCalls} calls`)
    return ctx
  })
  await agentOf([two], look, guards({ maxSteps: 1 })).agent.run('go')
  assert.deepEqual(seen, [
    'beforeInference: 0 tokens, 0 steps, 0 calls',
    'afterInference: 10 tokens, 0 steps, 0 calls',
    'beforeToolUse: 10 tokens, 0 steps, 1 calls',
    'beforeToolUse: 10 tokens, 0 steps, 2 calls',
    'afterStep: 10 tokens, 1 steps, 2 calls',
  ])
})

test('a run reports its usage per step and in total', async () => {
  const usage = { inputTokens: 7, outputTokens: 3, costUsd: 0.5 }
  const run = await agentOf([
    { ...two, usage },
    { text: 'Done.', usage },
  ]).agent.run('go')
  assert.deepEqual(
    run.state.execution!.steps.map((step) => step.usage),
    [
      { ...noTokens, ...usage },
      { ...noTokens, ...usage },
    ],
  )
  assert.deepEqual(run.state.usage, {
    ...noUsage,
    inputTokens: 14,
    outputTokens: 6,
    costUsd: 1,
    steps: 2,
    toolCalls: 2,
  })
})

// ── cost

test('a step costs the same however long the run is: conversation and steps are not copied', async () => {
  const copiedIn = async (turns: number): Promise<number> => {
    let asked = 0
    const { agent } = agentOf(
      () => (asked++ < turns ? two : 'Done.'),
      guards({ maxSteps: null, maxTokens: null }),
      summarization({ maxMessageTokens: 1e9 }),
      hook('afterInference', (ctx) => ctx.withState((state) => state.withMessage('Note.'))),
      hook('afterStep', (ctx) => ctx.allowContinuation('Go on.')),
      observe('afterStep', (ctx) => void ctx.state.lastStep),
    )
    return copiedItems(async () => {
      const run = await agent.run('go')
      assert.deepEqual([run.status, run.state.stepCount], ['completed', turns + 1])
    })
  }
  const [few, many] = [await copiedIn(50), await copiedIn(200)]
  assert.ok(many < 5 * few, `${few} items were copied in 50 steps, and ${many} in 200`)
})

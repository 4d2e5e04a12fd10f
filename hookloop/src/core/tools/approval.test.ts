import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { z } from 'zod'
import { approval, type ApprovalHandler } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import type { AgentEvent } from '../state/event.ts'
import type { JsonObject } from '../../values/json.ts'
import type { Approval } from '../state/tool-call.ts'
import { liveEffects } from '../effects/effects.ts'
import { guard, hook } from '../hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { fakeClock } from '../../testing/fake-clock.ts'
import { recordEvents } from '../../testing/record-events.ts'
import type { Agent } from '../agent/agent.ts'
import type { RunOptions } from '../agent/run-options.ts'
import type { AskedAnswer, Use } from '../agent/capability.ts'
import { explanation } from '../explain/explanation.ts'
import type { Run } from '../agent/run.ts'
import { tool } from '../agent/tool.ts'

const input = z.object({ path: z.string() })

/** A tool that records its arguments, called once. */
function scene(use: readonly Use[], declared: { ask?: boolean; args?: JsonObject } = {}) {
  const { ask = false, args = { path: 'a.txt' } } = declared
  const written: string[] = []
  const write = tool({ name: 'write', description: 'Writes.', input, ask, execute: ({ path }) => written.push(path) })
  const model = scriptedModel([{ toolCalls: [{ name: 'write', id: 'w', args }] }, 'Done.'])
  return { agent: createAgent({ model, use: [write, ...use] }), written, model }
}

type Played = { run: Run; written: readonly string[]; status: string | undefined; output: string; by: string }

async function play(
  use: readonly Use[],
  declared?: { ask?: boolean; args?: JsonObject },
  options?: RunOptions,
): Promise<Played> {
  const { agent, written } = scene(use, declared)
  const run = await agent.run('Go.', options)
  const execution = run.state.execution?.steps.at(0)?.toolExecutions[0]
  const output = typeof execution?.output === 'string' ? execution.output : JSON.stringify(execution?.output)
  return { run, written, status: execution?.status, output, by: execution?.by ?? '' }
}

const asking = guard('beforeToolUse', (ctx) => ctx.ask('Really write?'), { name: 'asking' })
const doubtful = guard('beforeToolUse', (ctx) => ctx.ask('Is it safe?'), { name: 'doubtful', priority: -1 })
const allowing = guard('beforeToolUse', (ctx) => ctx.allow('fine'), { name: 'allowing' })

for (const [how, use] of [
  ['there is no approver', []],
  ['approval is set to block', [approval('block')]],
] as const) {
  test(`when ${how}, a call that needs approval is blocked, and the run continues`, async () => {
    const { run, written, status, output } = await play([asking, ...use])
    assert.deepEqual([run.status, status, written], ['completed', 'blocked', []])
    assert.match(output, /Really write\?.*has no approver/)
    const asked = { step: 0, tool: 'write', answer: 'blocked', message: 'Really write?', askers: [{ by: 'asking' }] }
    assert.deepEqual(explanation(run).asked, [asked])
  })
}

test('a handler gets the call, the questions and the hooks that asked, once', async () => {
  const shown: Approval[] = []
  const handler: ApprovalHandler = (question, signal) => {
    assert.ok(signal instanceof AbortSignal)
    shown.push(question)
    return 'allow'
  }
  const { written } = await play([asking, doubtful, approval(handler)])
  assert.deepEqual(written, ['a.txt'])
  const [{ toolCall, message, by, asks }] = shown as [Approval]
  assert.deepEqual(toolCall, { id: 'w', name: 'write', args: { path: 'a.txt' } })
  assert.deepEqual([message, by, shown.length], ['Really write?; Is it safe?', 'asking, doubtful', 1])
  assert.deepEqual(asks, [
    { by: 'asking', message: 'Really write?' },
    { by: 'doubtful', message: 'Is it safe?' },
  ])
})

test('a handler that blocks blocks the call with its message', async () => {
  const { run, written, status, output, by } = await play([asking, approval(() => ({ block: 'Not today.' }))])
  assert.deepEqual([run.status, status, output, by, written], ['completed', 'blocked', 'Not today.', 'approval', []])
})

test('a handler may edit the arguments, and the edited ones are executed and recorded', async () => {
  const { run, written } = await play([asking, approval(async () => ({ allow: { path: 'b.txt' } }))])
  assert.deepEqual(written, ['b.txt'])
  assert.deepEqual(run.state.execution!.steps.at(0)!.toolCalls[0]!.args, { path: 'b.txt' })
  assert.equal(explanation(run).asked[0]!.answer, 'approved with other arguments')
})

test('arguments edited by a handler pass the guards again, and a block on them is final', async () => {
  const fence = guard('beforeToolUse', (ctx) => (ctx.toolCall.args['path'] === '/etc' ? ctx.block('No.') : ctx))
  const { written, status } = await play([asking, fence, approval(() => ({ allow: { path: '/etc' } }))])
  assert.deepEqual([written, status], [[], 'blocked'])
})

test('no hook changes arguments that a handler edited', async () => {
  const upper = hook('beforeToolUse', (ctx) => ctx.withArgs({ path: `${ctx.toolCall.args['path'] as string}!` }))
  const { written } = await play([asking, upper, approval(() => ({ allow: { path: 'b' } }))])
  assert.deepEqual(written, ['b'])
})

test('arguments edited by a handler that do not fit the schema fail the call', async () => {
  const { run, written, status } = await play([asking, approval(() => ({ allow: { path: 7 } }))])
  assert.deepEqual([run.status, written, status], ['completed', [], 'failed'])
})

test('a handler cannot change its edited arguments after it answered', async () => {
  const edited = { path: 'b.txt' }
  const late = guard('beforeToolUse', (ctx) => ((edited.path = 'evil.txt'), ctx), { name: 'late', priority: -9 })
  const { run, written } = await play([asking, late, approval(() => ((edited.path = 'b.txt'), { allow: edited }))])
  assert.deepEqual(written, ['b.txt'])
  assert.deepEqual(run.state.execution!.steps.at(0)!.toolCalls[0]!.args, { path: 'b.txt' })
})

test('a handler may leave the question unanswered, which suspends the run', async () => {
  const { run, written } = await play([asking, approval(() => 'suspend')])
  assert.equal(run.status, 'suspended')
  assert.deepEqual([run.status === 'suspended' && run.pending[0]!.message, written], ['Really write?', []])
  assert.equal(explanation(run).asked[0]?.answer, 'postponed')
})

const circular: { [key: string]: unknown } = {}
circular['self'] = circular
const nonsense: readonly unknown[] = [
  undefined,
  null,
  true,
  1,
  'yes',
  'ALLOW',
  'block',
  [],
  {},
  { allow: true },
  { allow: 'a.txt' },
  { allow: [] },
  { allow: null },
  { block: 1 },
  { allow: { path: 'b.txt', when: new Date(0) } },
  { allow: { path: 'b.txt', size: 1n } },
  { allow: { path: 'b.txt', circular } },
  () => 'allow',
]

for (const answer of nonsense) {
  test(`a handler that answers ${inspect(answer, { breakLength: Infinity })} does not approve`, async () => {
    const { run, written, status } = await play([asking, approval(() => answer as AskedAnswer)])
    assert.deepEqual([run.status, written, status], ['completed', [], 'blocked'])
    assert.ok(JSON.parse(JSON.stringify(run)))
  })
}

for (const [how, handler] of [
  ['throws', () => raise()],
  ['rejects', async () => raise()],
] as const) {
  test(`a handler that ${how} blocks`, async () => {
    const { run, written, status, output } = await play([asking, approval(handler)])
    assert.deepEqual([run.status, written, status], ['completed', [], 'blocked'])
    assert.match(output, /the line is dead/)
  })
}

function raise(): never {
  throw new Error('the line is dead')
}

test('a run waits for a handler that never answers until it is cancelled', async () => {
  const cancel = new AbortController()
  const silent: ApprovalHandler = () => {
    setTimeout(() => cancel.abort(), 1)
    return new Promise(() => undefined)
  }
  const { run, written, status } = await play([asking, approval(silent)], {}, { signal: cancel.signal })
  assert.deepEqual([run.status, written, status], ['cancelled', [], 'blocked'])
})

test('an approval that comes together with a cancel executes nothing', async () => {
  const cancel = new AbortController()
  const late: ApprovalHandler = () => (cancel.abort(), 'allow')
  const { run, written, status } = await play([asking, approval(late)], {}, { signal: cancel.signal })
  assert.deepEqual([run.status, written, status], ['cancelled', [], 'blocked'])
})

// ── asks of a tool or of `approval`

test('a tool with "ask" needs approval, and an approval lets it run', async () => {
  const asked: Approval[] = []
  const { written } = await play([approval((question) => (asked.push(question), 'allow'))], { ask: true })
  assert.deepEqual([written, asked.map(({ by }) => by)], [['a.txt'], ['tool "write"']])
})

for (const pattern of ['write', 'wr*', /^WRITE$/i]) {
  test(`approval asks about tools that match ${String(pattern)}, without a guard`, async () => {
    const { run, written } = await play([approval({ answer: 'suspend', tools: [pattern] })])
    assert.deepEqual([run.status, written], ['suspended', []])
  })
}

test('the allow of a guard satisfies the "ask" of a tool', async () => {
  const { run, written } = await play([allowing, approval('suspend')], { ask: true })
  assert.deepEqual([run.status, written], ['completed', ['a.txt']])
})

test('the allow of a guard satisfies the approval capability', async () => {
  const { run, written } = await play([allowing, approval({ answer: 'suspend', tools: ['*'] })])
  assert.deepEqual([run.status, written], ['completed', ['a.txt']])
})

for (const priority of [1, -1]) {
  test(`an allow never satisfies the ask of another guard (priority ${priority})`, async () => {
    const eager = guard('beforeToolUse', (ctx) => ctx.allow(), { name: 'eager', priority })
    const { run, written } = await play([asking, eager, approval('suspend')], { ask: true })
    assert.deepEqual([run.status, written], ['suspended', []])
    assert.deepEqual(run.status === 'suspended' && run.pending[0]!.asks.map(({ by }) => by), ['asking'])
  })

  test(`a block overrides an ask in any order (priority ${priority}), and no approver is asked`, async () => {
    let asked = 0
    const fence = guard('beforeToolUse', (ctx) => ctx.block('Never.'), { name: 'fence', priority })
    const use = [asking, fence, approval(() => (asked++, 'allow'))]
    const { written, status, by } = await play(use, { ask: true })
    assert.deepEqual([written, status, by, asked], [[], 'blocked', 'fence', 0])
  })

  test(`a stop overrides an ask in any order (priority ${priority}), and no approver is asked`, async () => {
    let asked = 0
    const stopper = guard('beforeToolUse', (ctx) => ctx.stop('Enough.'), { name: 'stopper', priority })
    const { run, written, status } = await play([asking, stopper, approval(() => (asked++, 'allow'))])
    assert.deepEqual([run.status, written, status, asked], ['stopped', [], 'blocked', 0])
  })

  test(`a guard that fails overrides an ask in any order (priority ${priority})`, async () => {
    const broken = guard('beforeToolUse', () => raise(), { name: 'broken', priority })
    const { written, status, by } = await play([asking, broken, approval(() => 'allow')])
    assert.deepEqual([written, status, by], [[], 'blocked', 'broken'])
  })
}

test('within one guard, too, an allow does not override an ask', async () => {
  const torn = guard('beforeToolUse', (ctx) => ctx.ask('Really?').allow())
  const { run, written } = await play([torn, approval('suspend')])
  assert.deepEqual([run.status, written], ['suspended', []])
})

test('no approver is asked about arguments that do not fit the schema', async () => {
  let asked = 0
  const { run, status } = await play([asking, approval(() => (asked++, 'allow'))], { args: { path: 7 } })
  assert.deepEqual([run.status, status, asked], ['completed', 'failed', 0])
})

test('an approver sees the arguments as hooks changed them, as JSON before parsing', async () => {
  const prefix = hook('beforeToolUse', (ctx) => ctx.withArgs({ path: `dir/${ctx.toolCall.args['path'] as string}` }))
  const shown: unknown[] = []
  await play([asking, prefix, approval((question) => (shown.push(question.toolCall.args), 'allow'))])
  assert.deepEqual(shown, [{ path: 'dir/a.txt' }])
})

const answers: readonly ['block' | 'suspend' | ApprovalHandler, string, AgentEvent['type'], readonly string[]][] = [
  [
    'block',
    'blocked',
    'finished',
    ['{"block":"Not run: it needs approval (Really write?), and the agent has no approver."}'],
  ],
  ['suspend', 'suspended', 'suspended', []],
  [() => 'suspend', 'postponed', 'suspended', []],
  [() => 'allow', 'answered', 'finished', ['"allow"']],
]

for (const [answer, word, last, answered] of answers) {
  test(`a question that is ${word} is an event, with the approval, and so is its answer`, async () => {
    const { agent }: { agent: Agent } = scene([asking, approval(answer)])
    const recorded = await recordEvents(agent.stream('Go.'))
    assert.deepEqual(
      recorded.of('asked').map((event) => event.approval.message),
      ['Really write?'],
    )
    const [asked] = recorded.of('asked')
    assert.deepEqual(
      recorded.of('answered').map((event) => [event.approval, JSON.stringify(event.answer)]),
      answered.map((each) => [asked!.approval.id, each]),
    )
    assert.equal(recorded.types.at(-1), last)
  })
}

// ── expiry of approvals

test('an approval has the time until which it can be approved', async () => {
  const clock = fakeClock({ startAt: 1000 })
  const use = [asking, approval({ answer: 'suspend', expiresInMs: 500 })]
  const { run } = await play(use, {}, { effects: liveEffects({ clock }) })
  assert.equal(run.status === 'suspended' && run.pending[0]!.expiresAt, 1500)
})

for (const [waited, answer, outcome] of [
  [499, 'allow', 'completed'],
  [500, 'allow', 'ANSWER_EXPIRED'],
  [501, { allow: { path: 'b.txt' } }, 'ANSWER_EXPIRED'],
  [501, { block: 'Too late anyway.' }, 'completed'],
] as const) {
  test(`of a question that expires after 500 ms, ${JSON.stringify(answer)} after ${waited} ms makes it ${outcome}`, async () => {
    const clock = fakeClock({ startAt: 1000 })
    const effects = liveEffects({ clock })
    const { agent } = scene([asking, approval({ answer: 'suspend', expiresInMs: 500 })])
    const run = await agent.run('Go.', { effects })
    assert.ok(run.status === 'suspended')
    await clock.advance(waited)
    const resumed = agent.resume(run, { answers: { [run.pending[0]!.id]: answer }, effects })
    const ended = await resumed.then(
      ({ status }) => status,
      (error: { code: string }) => error.code,
    )
    assert.equal(ended, outcome)
  })
}

for (const how of ['maybe', undefined, { answer: 'ask' }, { answer: 'suspend', expiresInMs: 0 }, { tools: ['*'] }]) {
  test(`approval(${JSON.stringify(how)}) is rejected when the agent is created`, () => {
    assert.throws(() => approval(how as 'block'), { code: 'AGENT_INVALID_OPTION', message: /^approval: / })
  })
}

test('approval tells the model about an interrupted call by default', () => {
  for (const how of ['block', { answer: 'block', onUnknownOutcome: 'tell' }] as const) {
    const { name, approval: policy } = approval(how)
    assert.deepEqual([name, policy?.onUnknownOutcome], ['approval', 'tell'])
  }
})

for (const [what, answer, problem] of [
  ['throws', () => Promise.reject(new Error('The chat is down.')), /The chat is down\./],
  ['returns an unknown answer', () => 'block' as never, /"block" is not an answer/],
  ['allows and blocks', () => ({ allow: {}, block: true }) as never, /\{"allow":\{\},"block":true\} is not an answer/],
  ['returns nothing', () => undefined as never, /undefined is not an answer/],
] as const) {
  test(`an approver that ${what} blocks the call, and run.warnings says so`, async () => {
    const { run, status } = await play([asking, approval(answer)])
    assert.equal(status, 'blocked')
    const [warning] = run.warnings
    assert.match(warning!.message, /^The approver failed, so the question was blocked: /)
    assert.match(warning!.message, problem)
  })
}

test('a block with an empty reason, of a guard or of an approver, still tells the model that the call was not permitted', async () => {
  const silent = guard('beforeToolUse', (ctx) => ctx.block(' '), { name: 'silent' })
  assert.equal((await play([silent])).output, 'Not permitted by "silent".')
  assert.equal((await play([asking, approval(() => ({ block: '' }))])).output, 'Blocked.')
})

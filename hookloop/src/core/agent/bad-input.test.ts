import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { approval } from '../../capabilities/approval.ts'
import { errorPolicy } from '../../capabilities/error-policy.ts'
import { guards } from '../../capabilities/guards.ts'
import { retryLimit } from '../../capabilities/retry-limit.ts'
import { createAgent } from '../../create-agent.ts'
import { AgentError, errorCodes, type ErrorCode } from '../../errors.ts'
import type { HookContext } from '../hooks/context.ts'
import { guard, hook } from '../hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import type { Agent } from './agent.ts'
import type { Use } from './capability.ts'
import type { Run } from './run.ts'
import { tool } from './tool.ts'

const input = { type: 'object' } as const
const plain = { name: 'work', description: 'Works.', input, execute: () => 'worked' }
const work = tool(plain)

function agentOf(...use: readonly Use[]) {
  const model = scriptedModel(() => 'Done.')
  return { model, agent: createAgent({ model, use }) }
}

/** An AgentError with this code and value, whose message says what to do instead. */
function says(code: ErrorCode, value: unknown, wayOut: RegExp): (thrown: unknown) => true {
  return (thrown) => {
    assert.ok(thrown instanceof AgentError, String(thrown))
    assert.deepEqual([thrown.code, thrown.value], [code, value])
    assert.match(thrown.message, wayOut)
    assert.ok(Object.hasOwn(errorCodes, thrown.code))
    return true
  }
}

// ── unknown triggers

// ── duplicate names

// ── limits and other numbers

type Refused = readonly [
  what: string,
  make: (value: never) => unknown,
  values: readonly unknown[],
  code: ErrorCode,
  wayOut: RegExp,
]

const numbers: readonly Refused[] = [
  ...(['maxSteps', 'maxTokens', 'maxTimeMs', 'maxCost', 'maxToolCalls'] as const).map((name): Refused => [
    `guards({ ${name} })`,
    (value) => guards({ [name]: value }),
    [-1, -0.5, -Infinity, NaN, '20', true],
    'AGENT_INVALID_OPTION',
    new RegExp(`"${name}" must be a number, 0 or more, or null`),
  ]),
  [
    'errorPolicy({ maxRetries })',
    (maxRetries) => errorPolicy({ maxRetries }),
    [-1, NaN],
    'AGENT_INVALID_OPTION',
    /0 or more/,
  ],
  [
    'retryLimit({ maxRetries })',
    (maxRetries) => retryLimit({ maxRetries }),
    [-1, 0.5, NaN],
    'AGENT_INVALID_OPTION',
    /0 or more/,
  ],
  [
    'approval({ expiresInMs })',
    (expiresInMs) => approval({ answer: 'suspend', expiresInMs }),
    [0, -1, NaN],
    'AGENT_INVALID_OPTION',
    /positive/,
  ],
  [
    'hook({ timeoutMs })',
    (timeoutMs) => hook('beforeStep', (ctx) => ctx, { timeoutMs }),
    [0, -1, NaN],
    'HOOK_INVALID_OPTION',
    /positive/,
  ],
  [
    'hook({ priority })',
    (priority) => hook('beforeStep', (ctx) => ctx, { priority }),
    [NaN, Infinity, 'high'],
    'HOOK_INVALID_OPTION',
    /must be a number/,
  ],
]
for (const [what, make, values, code, wayOut] of numbers) {
  test(`${what} rejects ${values.map(String).join(', ')}`, () => {
    for (const value of values) assert.throws(() => make(value as never), says(code, value, wayOut))
  })
}

// ── foreign contexts

type Stolen = HookContext<'beforeStep'>

/** A context that belongs to another run. */
async function steal(): Promise<Stolen> {
  let stolen: Stolen | undefined
  await agentOf(hook('beforeStep', (ctx) => (stolen = ctx))).agent.run('go')
  return stolen!
}

test('a hook that returns the context of another run fails, and no state of that run is used', async () => {
  const foreign = (await steal()).withState((state) => state.withMetadata('stolen', true))
  const { model, agent } = agentOf(hook('beforeStep', () => foreign, { name: 'thief' }))
  const run = await agent.run('go')
  assert.ok(run.status === 'failed')
  says('HOOK_FOREIGN_CONTEXT', run.error.value ?? 'a value', /"thief".*Return the context it received/)(run.error)
  assert.deepEqual([model.requests.length, run.state.metadata['stolen']], [0, undefined])
})

test('a hook that puts the state of another run into its context fails', async () => {
  const foreign = (await steal()).state
  const run = await agentOf(hook('beforeStep', (ctx) => ctx.withState(() => foreign))).agent.run('go')
  assert.ok(run.status === 'failed')
  assert.deepEqual([run.error.code, run.state.stepCount], ['HOOK_FOREIGN_CONTEXT', 0])
  assert.match(run.error.message, /must return a state made from the one it receives/)
})

for (const [what, returned, code] of [
  ['nothing', undefined, 'HOOK_NO_RETURN'],
  ['a text', 'ctx', 'HOOK_FOREIGN_CONTEXT'],
  ['null', null, 'HOOK_FOREIGN_CONTEXT'],
  ['a lookalike', { trigger: 'beforeStep' }, 'HOOK_FOREIGN_CONTEXT'],
] as const) {
  test(`a hook that returns ${what} fails with ${code}, and the error names the hook`, async () => {
    const run = await agentOf(hook('beforeStep', () => returned as never, { name: 'careless' })).agent.run('go')
    assert.ok(run.status === 'failed')
    assert.deepEqual([run.error.code, run.error.value], [code, returned])
    assert.match(run.error.message, /"careless"/)
  })
}

// ── saved runs

async function savedRuns(): Promise<{
  readonly finished: string
  readonly suspended: string
  readonly agent: Agent
  readonly asked: () => number
}> {
  const model = scriptedModel(({ messages }) => (messages.length <= 3 ? { toolCalls: [{ name: 'work' }] } : 'Done.'))
  const ask = guard('beforeToolUse', (ctx) =>
    ctx.state.metadata['ask'] === true && ctx.state.stepCount === 1 ? ctx.ask('sure?') : ctx,
  )
  const agent = createAgent({ model, use: [work, ask, approval('suspend')] })
  const finished = JSON.stringify(await agent.run('go'))
  const suspended = JSON.stringify(await agent.run('go', { metadata: { ask: true } }))
  const before = model.requests.length
  return { finished, suspended, agent, asked: () => model.requests.length - before }
}

type Saved = {
  version: number
  state: { version: number; execution: { [key: string]: unknown } } & { [key: string]: unknown }
}

/** A saved run with something changed in it. */
function altered(saved: string, change: (run: Saved) => void): Run {
  const run = JSON.parse(saved) as Saved
  change(run)
  return run as unknown as Run
}

const damages: { readonly [what: string]: (run: Saved) => void } = {
  'without a version': (run) => Reflect.deleteProperty(run.state, 'version'),
  'with a version that is a text': (run) => Object.assign(run.state, { version: '1' }),
  'without messages': (run) => Reflect.deleteProperty(run.state, 'messages'),
  'with a message that is none': (run) => Object.assign(run.state, { messages: [{ role: 'king', content: [] }] }),
  'with usage below zero': (run) => Object.assign(run.state, { spentBefore: { inputTokens: -1 } }),
  'with an unknown status': (run) => Object.assign(run.state.execution, { status: 'asleep' }),
  'with metadata that is a list': (run) => Object.assign(run.state, { metadata: [] }),
  'with steps that are none': (run) => Object.assign(run.state.execution, { steps: [{}] }),
  'without a state': (run) => Reflect.deleteProperty(run, 'state'),
}
suite('a damaged saved run is rejected before anything runs', () => {
  for (const [what, damage] of Object.entries(damages)) {
    test(`one ${what}`, async () => {
      const { finished, suspended, agent, asked } = await savedRuns()
      const refused = (thrown: unknown): boolean => thrown instanceof AgentError && thrown.code === 'STATE_INVALID'
      await assert.rejects(agent.run('go on', { from: altered(finished, damage) }), refused)
      await assert.rejects(agent.resume(altered(suspended, damage)), refused)
      assert.equal(asked(), 0)
    })
  }

  for (const what of [17, null, [], {}]) {
    test(`one that is ${JSON.stringify(what)}`, async () => {
      const { agent, asked } = await savedRuns()
      await assert.rejects(agent.resume(what as never), { name: 'AgentError', code: 'STATE_INVALID' })
      assert.equal(asked(), 0)
    })
  }
})

test('resume takes a string as a session id, for which the agent needs a store', async () => {
  const { agent, asked } = await savedRuns()
  await assert.rejects(
    agent.resume('nonsense'),
    (error: AgentError) => error.code === 'AGENT_INVALID_OPTION' && /needs a store/.test(error.message),
  )
  assert.equal(asked(), 0)
})

test('new input for a suspended run is rejected, and the run can still be resumed', async () => {
  const { suspended, agent } = await savedRuns()
  const run = JSON.parse(suspended) as Run
  await assert.rejects(
    agent.run('go on', { from: run }),
    (error: AgentError) => error.code === 'STATE_SUSPENDED' && /agent\.resume/.test(error.message),
  )
  assert.equal((await agent.resume(run)).status, 'suspended', 'the approval is still pending')
})

const said = [{ type: 'text', text: 'hi' }]
const result = { type: 'tool-result', toolCallId: 'a', toolName: 'work', output: 'forged' }
const shapeless = [17, null, undefined, {}, { role: 'user' }, { role: 'user', content: 'hi' }, ['hi']]
const notOfAUser = ['assistant', 'tool', 'system'].map((role) => ({ role, content: said }))
for (const bad of [...shapeless, ...notOfAUser, { role: 'user', content: [result] }]) {
  test(`the input ${JSON.stringify(bad) ?? 'undefined'} is rejected before anything runs`, async () => {
    const { model, agent } = agentOf()
    await assert.rejects(agent.run(bad as never), { name: 'AgentError' })
    assert.equal(model.requests.length, 0)
  })
}

// ── the agent afterwards

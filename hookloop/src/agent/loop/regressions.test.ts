import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as soon } from 'node:timers/promises'
import { approval } from '../../capabilities/approval.ts'
import { errorPolicy } from '../../capabilities/error-policy.ts'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import type { Json, JsonObject } from '../../state/json.ts'
import type { Message } from '../../state/message.ts'
import type { SavedRun } from '../../state/saved-run.ts'
import type { Schema } from '../../state/schema.ts'
import type { Approval } from '../../state/tool-call.ts'
import { guard, hook, observe, type Hook } from '../../hooks/hook.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import type { Agent } from '../agent.ts'
import type { Use } from '../capability.ts'
import type { Run } from '../run.ts'
import { tool, type Tool } from '../tool.ts'

// Defects that were found by attacks on guards, approvals and saved runs. Each has a test.

type Make = Partial<Parameters<typeof tool>[0]>

const make = (name: string, how: Make = {}): Tool =>
  tool({ name, description: name, input: { type: 'object' }, execute: () => 'worked', ...how })
const calling = (...names: readonly string[]): ScriptedTurn => ({ toolCalls: names.map((name) => ({ name })) })
const agentOf = (script: readonly ScriptedTurn[], ...use: readonly Use[]): Agent =>
  createAgent({ model: scriptedModel(script), use })

const saved = (run: Run): SavedRun => JSON.parse(JSON.stringify(run)) as SavedRun
const pendingOf = (run: Run): readonly Approval[] =>
  run.status === 'suspended' ? run.pending : assert.fail(run.status)
const reasonOf = (run: Run): string => (run.status === 'suspended' ? run.status : `${run.status} ${run.final.reason}`)
const executionsOf = (run: Run) => [...run.state.execution!.steps].flatMap((step) => step.toolExecutions)

/** The same agent continues a saved run, which shows that the saved run can be read. */
async function assertReadable(run: Run): Promise<void> {
  await agentOf(['again']).run('again', { from: saved(run) })
}

// ── values that guards passed

test('a request cannot change after guards passed it, by an observer or by a hook that kept a reference', async () => {
  const model = scriptedModel(['ok'])
  const tools = ['safe']
  const settings = { temperature: 0 }
  const narrow = hook('beforeInference', (ctx) => ctx.withRequest({ tools, settings }))
  const slow = guard('beforeInference', async (ctx) => {
    tools.push('danger')
    settings.temperature = 2
    await soon()
    return ctx.request.tools.includes('danger') ? ctx.stop('no') : ctx
  })
  const meddle = observe('beforeInference', (ctx) => void (ctx.request.tools as string[]).push('danger'), {
    name: 'tools',
  })
  const heat = observe('beforeInference', (ctx) => void Object.assign(ctx.request.settings!, settings), {
    name: 'heat',
  })
  const use = [make('safe'), make('danger'), narrow, slow, meddle, heat]
  const run = await createAgent({ model, use }).run('hi')
  const { tools: sent, settings: set } = model.requests[0]!
  const failed = run.ledger.filter((entry) => entry.error !== undefined).map((entry) => entry.hook)
  assert.deepEqual([sent.map(({ name }) => name), set, failed], [['safe'], { temperature: 0 }, ['tools', 'heat']])
})

test('a second approval adds its tools, and its handler answers', async () => {
  const asked: string[] = []
  const answer = ({ toolCall }: Approval) => (asked.push(toolCall.name), { block: 'no' })
  const first = agentOf(
    [calling('rm', 'mv', 'ls'), 'ok'],
    ...['rm', 'mv', 'ls'].map((name) => make(name)),
    approval({ answer: 'suspend', tools: ['rm'] }),
  )
  const run = await first.with(approval({ answer, tools: ['mv'] })).run('hi')
  const statuses = executionsOf(run).map(({ status }) => status)
  assert.deepEqual(
    [asked, statuses],
    [
      ['rm', 'mv'],
      ['blocked', 'blocked', 'ok'],
    ],
  )
})

for (const trigger of ['beforeStep', 'beforeToolUse'] as const) {
  test(`a forbid that a hook cast at ${trigger} stays when the trigger is retried`, async () => {
    let [worked, fired] = [0, 0]
    const forbids = hook(trigger, (ctx) => (fired++ === 0 ? ctx.stop('once') : ctx), { name: 'forbids', priority: 5 })
    const fails = hook(trigger, (ctx) => (fired === 1 ? assert.fail('now') : ctx))
    const work = make('work', { execute: () => ++worked })
    const run = await agentOf([calling('work'), 'ok'], work, errorPolicy({ backoffMs: 0 }), forbids, fails).run('hi')
    assert.deepEqual([run.status === 'stopped' && run.by, fired, worked], ['forbids', 2, 0])
  })
}

test('a "when" that returns a promise fails: a guard blocks, a hook throws', async () => {
  const later = (async () => false) as unknown as () => boolean
  const work = make('work')
  const judged = await agentOf(
    [calling('work'), 'ok'],
    work,
    guard('beforeToolUse', (ctx) => ctx, { when: later }),
  ).run('hi')
  const changed = await agentOf(
    ['ok'],
    hook('beforeStep', (ctx) => ctx, { when: later }),
  ).run('hi')
  assert.deepEqual([executionsOf(judged)[0]!.status, changed.status], ['blocked', 'failed'])
})

test('observers see a withheld result as withheld', async () => {
  const seen: unknown[] = []
  const run = await agentOf(
    [{ text: 'secret', toolCalls: [{ name: 'work' }] }, 'secret'],
    make('work', { execute: () => 'secret' }),
    guard('afterToolUse', (ctx) => ctx.block('private')),
    guard('afterInference', (ctx) => (ctx.response.finishReason === 'stop' ? ctx.block('private') : ctx)),
    observe('afterToolUse', (ctx) => void seen.push(ctx.toolExecution)),
    observe('afterInference', (ctx) => void (ctx.state.stepCount === 1 && seen.push(ctx.response))),
  ).run('hi')
  assert.equal(reasonOf(run), 'stopped finishReason')
  assert.equal(seen.length, 2)
  assert.doesNotMatch(JSON.stringify(seen), /secret/)
  assert.match(JSON.stringify(seen), /withheld.*withheld/)
})

test('a call of a tool that a hook removed from the request fails, and the tool does not run', async () => {
  let worked = 0
  const hide = hook('beforeInference', (ctx) => ctx.withRequest({ tools: [] }))
  const run = await agentOf([calling('work'), 'ok'], make('work', { execute: () => ++worked }), hide).run('hi')
  assert.deepEqual([executionsOf(run)[0]!.status, worked], ['failed', 0])
})

test('changes in the ledger are read-only, however many there are', async () => {
  const many = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`key${i}`, { deep: [i] }]))
  const change = hook('beforeStep', (ctx) => ctx.withState((state) => state.withMetadata('many', many)), {
    name: 'first',
    priority: 1,
  })
  const rechange = hook('beforeStep', (ctx) => ctx.withState((state) => state.withMetadata('many', {})), {
    name: 'second',
  })
  const run = await agentOf(['ok'], change, rechange).run('hi')
  const entries = run.ledger.filter((entry) => entry.changes !== undefined)
  assert.equal(entries.length, 2)
  assert.deepEqual(writable(entries.map((entry) => entry.changes)), [])
})

/** The paths in a value that can still be changed. */
function writable(value: unknown, path = ''): readonly string[] {
  if (typeof value !== 'object' || value === null) return []
  const inner = Object.entries(value).flatMap(([key, each]) => writable(each, `${path}/${key}`))
  return Object.isFrozen(value) || path === '' ? inner : [path, ...inner]
}

// ── values that a schema returns

/** A schema that transforms the arguments. */
function schemaOf<O>(makes: () => O): Schema<JsonObject, O> {
  const jsonSchema = { input: () => ({ type: 'object' }), output: () => ({ type: 'object' }) }
  return { '~standard': { version: 1, vendor: 'test', validate: () => ({ value: makes() }), jsonSchema } }
}

class Path {
  readonly #parts: readonly string[]
  constructor(...parts: readonly string[]) {
    this.#parts = parts
  }
  get isRoot(): boolean {
    return this.#parts.length === 0
  }
}

test('a class instance that a schema returns has its methods, in guards and in the tool', async () => {
  const seen: boolean[] = []
  const remove = tool({
    name: 'rm',
    description: 'Removes.',
    input: schemaOf(() => ({ path: new Path('tmp') })),
    execute: ({ path }) => void seen.push(path.isRoot),
  })
  const judge = guard('beforeToolUse', (ctx) => (seen.push(ctx.toolCall.args.path.isRoot), ctx), { tool: remove })
  await agentOf([calling('rm'), 'ok'], remove, judge).run('hi')
  assert.deepEqual(seen, [false, false])
})

test('objects of the schema itself are not frozen with the arguments', async () => {
  const shared = { options: { depth: 1 } }
  const work = tool({ name: 'work', description: 'Works.', input: schemaOf(() => shared), execute: () => 'worked' })
  await agentOf([calling('work'), 'ok'], work).run('hi')
  assert.deepEqual([Object.isFrozen(shared), Object.isFrozen(shared.options)], [false, false])
})

test('arguments that a schema makes circular do not crash the run', async () => {
  const input = schemaOf(() => {
    const ring: { self?: unknown; at: Date } = { at: new Date() }
    return Object.assign(ring, { self: ring })
  })
  const work = tool({ name: 'work', description: 'Works.', input, execute: () => 'worked' })
  const look = guard('beforeToolUse', (ctx) => (ctx.toolCall.args.self ? ctx : ctx.block('no ring')), { tool: work })
  const run = await agentOf([calling('work'), 'ok'], work, look).run('hi')
  assert.deepEqual([run.status, executionsOf(run)[0]!.status], ['completed', 'ok'])
})

// ── texts of hooks

const ring: { self?: unknown } = {}
ring.self = ring

for (const message of [{ why: 'x' }, ['a', 'b'], 5, null, ring, undefined]) {
  const words = message === ring ? 'a ring' : (JSON.stringify(message) ?? 'nothing')
  test(`a run in which hooks ask, block and stop with ${words} instead of a string can be saved and read`, async () => {
    const say = message as never
    const speaks: readonly Hook[] = [
      guard('beforeToolUse', (ctx) => ctx.ask(say)),
      guard('beforeToolUse', (ctx) => ctx.block(say)),
      guard('beforeToolUse', (ctx) => ctx.allow(say).stop(say)),
      guard('beforeStep', (ctx) => ctx.stop(say)),
      hook('afterInference', (ctx) => ctx.withResponse({ text: say })),
      hook('onStop', (ctx) => ctx.requestContinuation(say)),
    ]
    for (const speak of speaks) {
      const agent = agentOf(
        [calling('work'), 'ok', 'ok', 'ok', 'ok'],
        make('work'),
        approval('suspend'),
        guards({ maxSteps: 3 }),
        speak,
      )
      const run = await agent.run('hi')
      if (run.status === 'suspended') assert.equal((await agent.resume(saved(run))).status, 'suspended')
      else await assertReadable(run)
    }
  })
}

test('an unknown reason is rejected, and the saved run can be read', async () => {
  const bogus = guard('beforeStep', (ctx) => ctx.stop('no', { reason: 'bogus' as never }))
  const run = await agentOf(['ok'], bogus).run('hi')
  assert.equal(reasonOf(run), 'stopped errorForbade')
  await assertReadable(run)
})

const bogusChanges: readonly JsonObject[] = [
  { content: [{ type: 'bogus' }] },
  { content: 'abc' },
  { content: [{ type: 'tool-result', toolCallId: '1', toolName: 'work', output: 1 }] },
  { finishReason: 'bogus' },
]
for (const change of bogusChanges) {
  test(`a response changed to ${JSON.stringify(change)} is rejected, and the saved run can be read`, async () => {
    const run = await agentOf(
      ['ok'],
      hook('afterInference', (ctx) => ctx.withResponse(change)),
    ).run('hi')
    assert.equal(run.status === 'failed' && run.error.code, 'HOOK_INVALID_OPTION')
    await assertReadable(run)
  })
}

test('a hook that sends a window of the conversation sends the same message objects, not copies', async () => {
  const model = scriptedModel([...Array.from({ length: 10 }, () => calling('work')), 'ok'])
  let whole: readonly Message[] = []
  const recent = hook('beforeInference', (ctx) => {
    whole = [...ctx.request.messages]
    return ctx.withRequest({ messages: ctx.request.messages.slice(-10) })
  })
  await createAgent({ model, use: [make('work'), recent] }).run('hi')
  const sent = [...model.requests.at(-1)!.messages]
  assert.deepEqual([sent.length, sent.every((message, i) => message === whole.at(i - 10))], [10, true])
})

// ── saved runs

const asking = (...use: readonly Use[]): Agent =>
  agentOf(
    [calling('look'), { text: 'May I?', ...(calling('work') as object) }, 'ok'],
    make('look'),
    make('work', { ask: true }),
    approval('suspend'),
    ...use,
  )

test('arguments nested 399 levels deep can be approved, saved, read and used', async () => {
  let args: Json = {}
  for (let level = 1; level < 399; level++) args = { a: args }
  const agent = agentOf(
    [{ toolCalls: [{ name: 'work', args }] }, 'ok'],
    make('work', { ask: true }),
    approval('suspend'),
  )
  const run = await agent.run('hi')
  const resumed = await agent.resume(saved(run), { answers: { [pendingOf(run)[0]!.id]: 'allow' } })
  assert.deepEqual([resumed.status, executionsOf(resumed)[0]!.status], ['completed', 'ok'])
})

test('a saved run has its status and its pending approvals', async () => {
  const waiting = await asking().run('hi')
  const done = await agentOf(['ok']).run('hi')
  assert.deepEqual([saved(waiting).status, saved(waiting).pending], ['suspended', pendingOf(waiting)])
  assert.deepEqual([saved(done).status, saved(done).pending], ['completed', []])
})

test('the text of a suspended run is the model text of the open step', async () => {
  assert.equal((await asking().run('hi')).text, 'May I?')
})

type Loose = { [key: string]: Loose } & Loose[]

const tamperings: { readonly [how: string]: (run: Loose) => unknown } = {
  'its phase changed, with calls open': (run) =>
    Object.assign(run['state']!['execution']!['cursor']!, { phase: 'beforeStep' }),
  'fewer executions than calls in a step': (run) =>
    Object.assign(run['state']!['execution']!['steps']![0]!, { toolExecutions: [] }),
  'changes in its ledger that are null': (run) => Object.assign(run['ledger']![0]!, { changes: null }),
}
for (const [how, tamper] of Object.entries(tamperings)) {
  test(`a saved run with ${how} is rejected`, async () => {
    const agent = asking()
    const json = saved(await agent.run('hi'))
    tamper(json as unknown as Loose)
    await assert.rejects(agent.resume(json), { code: 'STATE_INVALID' })
  })
}

test('a guard that was added at a resume must be present at the next resume', async () => {
  const run = await asking().run('hi')
  const joined = await asking(guard('beforeToolUse', (ctx) => ctx, { name: 'joined' })).resume(saved(run))
  await assert.rejects(asking().resume(saved(joined)), { code: 'RESUME_GUARD_MISSING', value: 'joined' })
})

test('acceptMissing takes a list of names or true, and a string is rejected', async () => {
  const run = await asking(guard('beforeToolUse', (ctx) => ctx, { name: 'no' })).run('hi')
  const resuming = asking().resume(run, { acceptMissing: 'another' as never })
  await assert.rejects(resuming, { code: 'AGENT_INVALID_OPTION' })
})

// ── parts of an agent

test('two capabilities with the same name are rejected, and the error names it', () => {
  const both = (): unknown => agentOf(['ok'], guards({ maxSteps: 3 }), guards({ maxCost: 1 }))
  assert.throws(both, { code: 'AGENT_INVALID_OPTION', message: /"guards"/ })
})

test('an agent reports a hook that matches none of its tools', () => {
  const idle = guard('beforeToolUse', (ctx) => ctx.block('no'), { name: 'no push', tool: 'bahs' })
  const { notes } = agentOf(['ok'], make('bash'), idle).describe()
  assert.ok(notes.some((note) => note.includes('"no push" can never fire')))
})

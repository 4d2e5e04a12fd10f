import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as soon } from 'node:timers/promises'
import { approval } from '../../capabilities/approval.ts'
import { errorPolicy } from '../../capabilities/error-policy.ts'
import { createAgent } from '../../create-agent.ts'
import type { JsonObject } from '../../values/json.ts'
import type { Schema } from '../../values/schema.ts'
import type { Approval } from '../state/tool-call.ts'
import { guard, hook, observe } from '../hooks/hook.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import type { Agent } from '../agent/agent.ts'
import type { Use } from '../agent/capability.ts'
import type { Run } from '../agent/run.ts'
import { tool, type Tool } from '../agent/tool.ts'

// What guards judged is what runs, and what observers see.

type Make = Partial<Parameters<typeof tool>[0]>

const make = (name: string, how: Make = {}): Tool =>
  tool({ name, description: name, input: { type: 'object' }, execute: () => 'worked', ...how })
const calling = (...names: readonly string[]): ScriptedTurn => ({ toolCalls: names.map((name) => ({ name })) })
const agentOf = (script: readonly ScriptedTurn[], ...use: readonly Use[]): Agent =>
  createAgent({ model: scriptedModel(script), use })

const reasonOf = (run: Run): string => (run.status === 'suspended' ? run.status : `${run.status} ${run.final.reason}`)
const executionsOf = (run: Run) => [...run.state.execution!.steps].flatMap((step) => step.toolExecutions)

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

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Use } from '../agent/capability.ts'
import type { Run } from '../agent/run.ts'
import { tool } from '../agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { fire } from '../../testing/fire.ts'
import { guard, hook, observe } from './hook.ts'
import { isAround, triggerNames, triggers, type Ability, type PlainTrigger } from './triggers.ts'

const echo = tool({ name: 'echo', description: '', input: { type: 'object' }, execute: (args) => args['text'] })

/** A run that fires every trigger of the loop: the model fails once, then requests a call that is approved. */
async function tour(...use: readonly Use[]): Promise<Run> {
  const call = { toolCalls: [{ name: 'echo', args: { text: 'hi', deep: { list: [1] } } }] }
  const model = scriptedModel([{ error: 'down' }, call, 'done'])
  const ask = guard('beforeToolUse', (ctx) => ctx.ask('may it?'), { name: 'asks' })
  const retry = hook('onError', (ctx) => ctx.retry(), { name: 'retries' })
  const agent = createAgent({ model, use: [echo, ask, retry, approval('suspend'), ...use] })
  const run = await agent.run('go')
  return run.status === 'suspended' ? agent.resume(run, { answers: { [run.pending[0]!.id]: 'allow' } }) : run
}

const methods: { readonly [A in Ability]: readonly string[] } = {
  state: ['withState'],
  input: ['withInput'],
  request: ['withRequest'],
  response: ['withResponse'],
  args: ['withArgs'],
  output: ['withOutput'],
  messages: ['withMessages'],
  stop: ['stop'],
  vote: ['stop', 'requestContinuation', 'allowStop', 'allowContinuation'],
  continue: ['requestContinuation'],
  recover: ['retry', 'ignore'],
  block: ['block'],
  within: ['within'],
  compact: ['compact'],
  permit: ['block', 'ask', 'allow'],
  ask: ['ask'],
}

function methodsOf(context: object): ReadonlySet<string> {
  const properties = Object.getOwnPropertyDescriptors(Object.getPrototypeOf(context))
  const names = Object.keys(properties).filter((name) => typeof properties[name]!.value === 'function')
  return new Set(names.filter((name) => name !== 'constructor'))
}

function methodsFor(abilities: readonly Ability[]): ReadonlySet<string> {
  return new Set(abilities.flatMap((ability) => methods[ability]))
}

const plain = triggerNames.filter((name): name is PlainTrigger => !isAround(name))

for (const trigger of plain) {
  test(`a context of ${trigger} has the methods of its mode, and no others`, async () => {
    const seen: { [mode: string]: ReadonlySet<string> } = {}
    const look = (mode: string) => (ctx: object) => ((seen[mode] = methodsOf(ctx)), ctx as never)
    const judged = triggers[trigger].guard.length > 0
    await fire(hook(trigger, look('hook')), trigger)
    if (judged) await fire(guard(trigger as 'beforeStep', look('guard')), trigger as 'beforeStep')
    await fire(observe(trigger, look('observe')), trigger)
    const judges = new Set([
      ...methodsFor(triggers[trigger].guard),
      ...(trigger === 'beforeInference' ? [] : ['infer']),
    ])
    assert.deepEqual(seen, {
      hook: new Set([...methodsFor(triggers[trigger].hook), 'infer']),
      ...(judged && { guard: judges }),
      observe: new Set(),
    })
  })
}

test('every method returns a changed copy and leaves its context unchanged', async () => {
  const seen: unknown[] = []
  const change = hook('beforeToolUse', (ctx) => {
    const changed = ctx.withArgs({ text: 'bye' }).withState((state) => state.withMetadata('a', 1))
    seen.push(ctx.toolCall.args, ctx.state.metadata['a'], changed.toolCall.args, changed.state.metadata['a'])
    return ctx
  })
  const outcome = await fire(change, 'beforeToolUse', { toolCall: { args: { text: 'hi' } } })
  assert.deepEqual([seen, outcome], [[{ text: 'hi' }, undefined, { text: 'bye' }, 1], {}])
})

/** The paths that can be written to. States and lists are classes, and models belong to others. */
function* writable(value: unknown, path: string): Generator<string> {
  if (typeof value !== 'object' || value === null || path.endsWith('.model')) return
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== Array.prototype && prototype !== null) return
  if (!Object.isFrozen(value)) yield path
  for (const [key, inner] of Object.entries(value)) yield* writable(inner, `${path}.${key}`)
}

test('all values of a context are read-only', async () => {
  const found = new Set<string>()
  const look = observe('*', (ctx) => {
    for (const fact of [...triggers[ctx.trigger].carries, 'spent'] as (keyof typeof ctx)[]) {
      for (const path of writable(ctx[fact], fact)) found.add(`${ctx.trigger}: ${path}`)
    }
    for (const message of ctx.state.messages) for (const path of writable(message, 'message')) found.add(path)
    for (const path of writable(ctx.state.metadata, 'metadata')) found.add(path)
  })
  await tour(look)
  assert.deepEqual([...found], [])
})

test('a guard cannot disable the next guard through its context', async () => {
  const sly = guard('beforeToolUse', (ctx) => (Reflect.defineProperty(ctx, 'block', { value: () => ctx }), ctx), {
    priority: 1,
  })
  const strict = guard('beforeToolUse', (ctx) => ctx.block('never'), { name: 'strict' })
  const run = await tour(sly, strict)
  assert.equal(run.state.execution!.steps.at(0)!.toolExecutions[0]!.by, 'strict')
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Use } from '../agent/capability.ts'
import { tool } from '../agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { guard, hook, observe, type Hook } from './hook.ts'
import { HookPlans } from './hook-plans.ts'
import { triggerNames } from './triggers.ts'

const namesOf = (hooks: readonly { readonly name: string }[]): string[] => hooks.map(({ name }) => name)

async function orderOf(declare: (log: (name: string) => void) => readonly Use[]): Promise<readonly string[]> {
  const log: string[] = []
  const use = declare((name) => void log.push(name))
  await createAgent({ model: scriptedModel(['done']), use }).run('go')
  return log
}

test('hooks of one mode run by priority, higher first, ties in order of registration', async () => {
  const order = await orderOf((log) =>
    [-100, 0, 200, 0, 50, 200].map((priority, i) =>
      hook('beforeStep', (ctx) => (log(`${priority}/${i}`), ctx), { priority, name: `h${i}` }),
    ),
  )
  assert.deepEqual(order, ['200/2', '200/5', '50/4', '0/1', '0/3', '-100/0'])
})

test('transforms run before guards and guards before observers, whatever their priority', async () => {
  const order = await orderOf((log) => [
    observe('beforeStep', () => log('observe'), { priority: 900 }),
    guard('beforeStep', (ctx) => (log('guard'), ctx), { priority: 500 }),
    hook('beforeStep', (ctx) => (log('hook'), ctx), { priority: -500 }),
  ])
  assert.deepEqual(order, ['hook', 'guard', 'observe'])
})

test('hooks of capabilities and single hooks have one order of registration', async () => {
  const order = await orderOf((log) => {
    const make = (name: string): Hook => hook('beforeStep', (ctx) => (log(name), ctx), { name })
    return [make('a'), { name: 'capability', hooks: [make('b'), make('c')] }, make('d')]
  })
  assert.deepEqual(order, ['a', 'b', 'c', 'd'])
})

test('the order is a stable sort by priority, for any hooks', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: -3, max: 3 }), { maxLength: 40 }), (priorities) => {
      const hooks = priorities.map((priority, i) => guard('beforeStep', (ctx) => ctx, { priority, name: `${i}` }))
      const expected = priorities.map((priority, i) => ({ priority, name: `${i}` }))
      expected.sort((a, b) => b.priority - a.priority || Number(a.name) - Number(b.name))
      assert.deepEqual(namesOf(new HookPlans(hooks).of('beforeStep').guards), namesOf(expected))
    }),
  )
})

test('no hooks have plans without anything at any trigger', () => {
  const plans = new HookPlans()
  assert.deepEqual(
    triggerNames.filter((trigger) => !plans.of(trigger).empty),
    [],
  )
})

test('adding hooks returns other plans and leaves these unchanged', () => {
  const one = new HookPlans([guard('beforeStep', (ctx) => ctx, { name: 'a' })])
  const two = one.with(guard('beforeStep', (ctx) => ctx, { name: 'b', priority: 1 }))
  assert.deepEqual([namesOf(one.of('beforeStep').guards), namesOf(two.of('beforeStep').guards)], [['a'], ['b', 'a']])
})

test('generated names are made unique by a number', () => {
  const make = (): Hook => guard('beforeStep', (ctx) => ctx)
  const plans = new HookPlans([make(), make(), make()])
  assert.deepEqual(namesOf(plans.hooks), ['guard:beforeStep', 'guard:beforeStep#2', 'guard:beforeStep#3'])
})

test('a generated name yields to a given one, in any order', () => {
  const madeUp = guard('beforeStep', (ctx) => ctx)
  const given = guard('beforeStep', (ctx) => ctx, { name: 'guard:beforeStep' })
  assert.deepEqual(namesOf(new HookPlans([madeUp, given]).hooks), ['guard:beforeStep#2', 'guard:beforeStep'])
})

test('names are unique, for any mixture of given and generated ones', () => {
  const word = fc.constantFrom('a', 'a#2', 'a#3', 'guard:beforeStep', 'guard:beforeStep#2')
  fc.assert(
    fc.property(fc.uniqueArray(word), fc.nat(6), fc.nat(6), (given, before, after) => {
      const a = (count: number): Hook[] => Array.from({ length: count }, () => guard('beforeStep', (ctx) => ctx))
      const named = given.map((name) => guard('beforeStep', (ctx) => ctx, { name }))
      const names = namesOf(new HookPlans([...a(before), ...named, ...a(after)]).hooks)
      assert.equal(new Set(names).size, names.length)
      assert.deepEqual(names.slice(before, before + given.length), given)
    }),
  )
})

test('the same hook twice is rejected, also when it is added later', () => {
  const unnamed = guard('beforeStep', (ctx) => ctx)
  assert.throws(() => new HookPlans([unnamed, unnamed]), { code: 'HOOK_DUPLICATE' })
  assert.throws(() => new HookPlans([unnamed]).with(unnamed), { code: 'HOOK_DUPLICATE' })
})

test('a generated name still yields to a given one when hooks are added', () => {
  const madeUp = guard('beforeStep', (ctx) => ctx)
  const given = guard('beforeStep', (ctx) => ctx, { name: 'guard:beforeStep' })
  assert.equal(new HookPlans([madeUp]).with(given).hooks.length, 2)
})

test('agents can be extended without conflicts of generated names', () => {
  const make = (): Use => guard('beforeStep', (ctx) => ctx)
  const agent = createAgent({ model: scriptedModel(['done']), use: [make()] })
    .with(make())
    .with(
      make(),
      guard('beforeStep', (ctx) => ctx, { name: 'guard:beforeStep' }),
    )
  const names = agent.describe().hooks.flatMap(({ name }) => (name.startsWith('guard:') ? [name] : []))
  assert.deepEqual([names.length, new Set(names).size], [4, 4])
})

test('a call gets the hooks of its tool and those of every tool', () => {
  const hooks = [
    guard('beforeToolUse', (ctx) => ctx, { name: 'every' }),
    guard('beforeToolUse', (ctx) => ctx, { name: 'exact', tool: 'bash' }),
    guard('beforeToolUse', (ctx) => ctx, { name: 'wildcard', tool: 'ba*' }),
    guard('beforeToolUse', (ctx) => ctx, { name: 'pattern', tool: /^b/ }),
  ] as Hook[]
  const plans = new HookPlans(hooks, ['bash', 'bat', 'read'])
  const guards = (name: string): string[] => namesOf(plans.of('beforeToolUse', name).guards)
  assert.deepEqual(
    [guards('bash'), guards('bat'), guards('read'), guards('invented')],
    [['every', 'exact', 'wildcard', 'pattern'], ['every', 'wildcard', 'pattern'], ['every'], ['every']],
  )
})

test('a hook that was given a tool object applies to that tool only', async () => {
  const make = (name: string) => tool({ name, description: '', input: { type: 'object' }, execute: () => name })
  const [a, b] = [make('a'), make('b')]
  const model = scriptedModel([{ toolCalls: [{ name: 'a' }, { name: 'b' }] }, 'done'])
  const never = guard('beforeToolUse', (ctx) => ctx.block('never'), { tool: b })
  const { state } = await createAgent({ model, use: [a, b, never] }).run('go')
  assert.deepEqual(
    state.execution!.steps.at(0)!.toolExecutions.map(({ status }) => status),
    ['ok', 'blocked'],
  )
})

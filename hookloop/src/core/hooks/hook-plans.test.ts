import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Use } from '../agent/capability.ts'
import { tool } from '../agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { guard, hook, observe, type Hook } from './hook.ts'
import { HookPlans } from './hook-plans.ts'

const namesOf = (hooks: readonly { readonly name: string }[]): string[] => hooks.map(({ name }) => name)

async function orderOf(declare: (log: (name: string) => void) => readonly Use[]): Promise<readonly string[]> {
  const log: string[] = []
  const use = declare((name) => void log.push(name))
  await createAgent({ model: scriptedModel(['done']), use }).run('go')
  return log
}

test('transforms run before guards and guards before observers, whatever their priority', async () => {
  const order = await orderOf((log) => [
    observe('beforeStep', () => log('observe'), { priority: 900 }),
    guard('beforeStep', (ctx) => (log('guard'), ctx), { priority: 500 }),
    hook('beforeStep', (ctx) => (log('hook'), ctx), { priority: -500 }),
  ])
  assert.deepEqual(order, ['hook', 'guard', 'observe'])
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

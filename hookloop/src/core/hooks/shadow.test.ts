import assert from 'node:assert/strict'
import { test } from 'node:test'
import { guard, hook, isHook, observe, shadow, type Hook } from './hook.ts'
import { HookPlans } from './hook-plans.ts'
import type { PlainTrigger } from './triggers.ts'

const no = guard('beforeToolUse', (ctx) => ctx.block('No.'), { name: 'no', priority: 3, tool: 'bash' })

test('shadow() returns a marked copy, and the hook itself stays active', () => {
  const made = shadow(no)
  assert.deepEqual({ ...made, shadow: false }, { ...no })
  assert.deepEqual([isHook(made), made.shadow, no.shadow, Object.isFrozen(made)], [true, true, false, true])
})

for (const [what, made] of Object.entries({
  'an observer, which decides nothing as it is': observe('afterStep', () => undefined),
  'an around hook, which makes the call it wraps': hook('aroundInference', (_ctx, next) => next()),
  'a hook with effects': guard('beforeStep', (ctx) => ctx, { name: 'asks', effect: true }),
  'what is not a hook': { ...no },
  nothing: undefined,
})) {
  test(`${what} cannot run in shadow mode`, () => {
    assert.throws(() => shadow(made as Hook<PlainTrigger>), { code: 'HOOK_INVALID_OPTION' })
  })
}

test('names of active hooks do not depend on shadow hooks', () => {
  const plain = (): Hook<'beforeStep'> => hook('beforeStep', (ctx) => ctx)
  const [first, second] = [plain(), plain()]
  const names = (plans: HookPlans): readonly string[] =>
    plans.hooks.filter((each) => !each.shadow).map(({ name }) => name)
  const shadows = [shadow(plain()), shadow(plain(), { name: 'other' })]
  assert.deepEqual(names(new HookPlans([...shadows, first, second])), names(new HookPlans([first, second])))
})

test('a shadow hook cannot have the name of an active hook', () => {
  assert.throws(() => new HookPlans([no, shadow(no)]), { code: 'HOOK_DUPLICATE' })
  assert.throws(() => new HookPlans([hook('beforeStep', (ctx) => ctx), shadow(no, { name: 'hook:beforeStep' })]), {
    code: 'HOOK_DUPLICATE',
  })
})

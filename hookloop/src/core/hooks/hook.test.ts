import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { tool } from '../agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import { AgentError, type ErrorCode } from '../../errors.ts'
import { scriptedModel } from '../../models/scripted.ts'
import type { GuardContext, ObserveContext } from './context.ts'
import { guard, hook, isHook, observe } from './hook.ts'
import { triggerNames } from './triggers.ts'

/** hook, guard and observe without their types. */
const js = { hook, guard, observe } as unknown as {
  readonly [word in 'hook' | 'guard' | 'observe']: (on: unknown, handler?: unknown, options?: unknown) => unknown
}
const same = (ctx: unknown): unknown => ctx

const option: ErrorCode = 'HOOK_INVALID_OPTION'

const misuse: { readonly [what: string]: [ErrorCode, () => unknown] } = {
  'an unknown trigger': ['HOOK_UNKNOWN_TRIGGER', () => js.hook('beforeLunch', same)],
  'an unknown trigger among known ones': ['HOOK_UNKNOWN_TRIGGER', () => js.guard(['beforeStep', 'beforeLunch'], same)],
  'a trigger in another spelling': ['HOOK_UNKNOWN_TRIGGER', () => js.hook('BeforeStep', same)],
  'a trigger that every object has': ['HOOK_UNKNOWN_TRIGGER', () => js.hook('constructor', same)],
  'the prototype as a trigger': ['HOOK_UNKNOWN_TRIGGER', () => js.observe('__proto__', same)],
  'a star for a hook that is no observer': ['HOOK_UNKNOWN_TRIGGER', () => js.guard('*', same)],
  'undefined as a trigger': ['HOOK_UNKNOWN_TRIGGER', () => js.hook(undefined, same)],
  'no trigger at all': [option, () => js.hook([], same)],
  'no handler': [option, () => js.hook('beforeStep')],
  'a text as a handler': [option, () => js.hook('beforeStep', './check.sh')],
  'an object without handle': [option, () => js.guard('beforeStep', { check: same })],
  'a guard where nothing is judged': [option, () => js.guard('onPause', same)],
  'a guard around a call': [option, () => js.guard('aroundToolUse', same)],
  'an observer around a call': [option, () => js.observe('aroundInference', same)],
  'plain and around triggers in one hook': [option, () => js.hook(['beforeStep', 'aroundInference'], same)],
  'a tool where there is none': [option, () => js.guard('beforeStep', same, { tool: 'bash' })],
  'a tool where one trigger has none': [
    option,
    () => js.guard(['beforeStep', 'beforeToolUse'], same, { tool: 'bash' }),
  ],
  'a list of tools, which would never match': [option, () => js.guard('beforeToolUse', same, { tool: ['bash', 'rm'] })],
  'a number as a tool': [option, () => js.guard('beforeToolUse', same, { tool: 42 })],
  'null as a tool': [option, () => js.guard('beforeToolUse', same, { tool: null })],
  'an object that is no tool': [option, () => js.guard('beforeToolUse', same, { tool: { execute: same } })],
  'a stream policy away from answers': [option, () => js.guard('beforeStep', same, { stream: 'hold' })],
  'an unknown stream policy': [option, () => js.guard('afterInference', same, { stream: 'never' })],
  'a priority that is not a number': [option, () => js.hook('beforeStep', same, { priority: 'high' })],
  'a priority of NaN': [option, () => js.hook('beforeStep', same, { priority: NaN })],
  'an endless priority': [option, () => js.hook('beforeStep', same, { priority: Infinity })],
  'no time at all': [option, () => js.hook('beforeStep', same, { timeoutMs: 0 })],
  'a negative time': [option, () => js.guard('beforeStep', same, { timeoutMs: -1 })],
  'a time of NaN': [option, () => js.guard('beforeStep', same, { timeoutMs: NaN })],
  'a time that is not a number': [option, () => js.guard('beforeStep', same, { timeoutMs: '5s' })],
  'a failure policy for a guard': [option, () => js.guard('beforeStep', same, { onFailure: 'continue' })],
  'a failure policy for an observer': [option, () => js.observe('beforeStep', same, { onFailure: 'block' })],
  'an unknown failure policy': [option, () => js.hook('beforeStep', same, { onFailure: 'ignore' })],
  'a block where nothing can be blocked': [option, () => js.hook('onPause', same, { onFailure: 'block' })],
  'an effect without a name': [option, () => js.hook('onStop', same, { effect: true })],
  'an effect of an observer': [option, () => js.observe('onStop', same, { effect: true, name: 'o' })],
  'an effect around a call': [option, () => js.hook('aroundInference', same, { effect: true, name: 'a' })],
}

describe('invalid declarations throw an AgentError', () => {
  for (const [what, [code, declare]] of Object.entries(misuse)) {
    test(`${what} is rejected with ${code}`, () => {
      assert.throws(declare, (error) => error instanceof AgentError && error.code === code && error.message !== '')
    })
  }
})

test('an unknown trigger is rejected, and the error lists the known ones', () => {
  assert.throws(() => js.hook('beforeLunch', same), {
    code: 'HOOK_UNKNOWN_TRIGGER',
    value: 'beforeLunch',
    message: `Unknown trigger "beforeLunch". Known: ${triggerNames.join(', ')}.`,
  })
})

describe('an agent rejects hooks before anything runs', () => {
  const first = hook('beforeStep', (ctx) => ctx, { name: 'twin' })
  const second = guard('beforeStep', (ctx) => ctx, { name: 'twin' })
  const unnamed = observe('beforeStep', () => undefined)
  const refused: { readonly [what: string]: [ErrorCode, readonly unknown[]] } = {
    'two hooks of one name': ['HOOK_DUPLICATE', [first, second]],
    'one hook twice': ['HOOK_DUPLICATE', [unnamed, unnamed]],
    'a hook with the name of a built-in one': [
      'HOOK_DUPLICATE',
      [hook('onStop', (ctx) => ctx, { name: 'completion' })],
    ],
    'a copy of a hook': ['AGENT_INVALID_OPTION', [{ ...first }]],
    'a function': ['AGENT_INVALID_OPTION', [same]],
    'a pattern that is not linear': ['HOOK_INVALID_PATTERN', [guard('beforeToolUse', (ctx) => ctx, { tool: /(?=a)/ })]],
  }
  for (const [what, [code, use]] of Object.entries(refused)) {
    test(`${what} is rejected with ${code}`, () => {
      assert.throws(() => createAgent({ model: scriptedModel([]), use: use as never[] }), { name: 'AgentError', code })
    })
  }
})

test('a hook is frozen, and only a declared hook is accepted', () => {
  const made = guard('beforeStep', (ctx) => ctx)
  assert.deepEqual([Object.isFrozen(made), isHook(made), isHook({ ...made }), isHook(null)], [true, true, false, false])
})

test('a hook that lists a trigger twice fires once', async () => {
  const fired: string[] = []
  const twice = observe(['beforeStep', 'beforeStep'], (ctx) => void fired.push(ctx.trigger))
  await createAgent({ model: scriptedModel(['done']), use: [twice] }).run('go')
  assert.deepEqual(fired, ['beforeStep'])
})

test('an observer of "*" is on every trigger except the around triggers', () => {
  assert.deepEqual(
    observe('*', () => undefined).triggers,
    triggerNames.filter((name) => !name.startsWith('around')),
  )
})

test('a handler may be an object with a method handle, which keeps its own this', async () => {
  class AuditTrail {
    readonly log: string[] = []
    handle(ctx: ObserveContext<'afterToolUse'>): void {
      this.log.push(`${ctx.toolCall.name}: ${ctx.toolExecution.status}`)
    }
  }
  const audit = new AuditTrail()
  const echo = tool({ name: 'echo', description: '', input: { type: 'object' }, execute: () => 'said' })
  const model = scriptedModel([{ toolCalls: [{ name: 'echo' }] }, 'done'])
  await createAgent({ model, use: [echo, observe('afterToolUse', audit)] }).run('go')
  assert.deepEqual(audit.log, ['echo: ok'])
})

class Curfew {
  handle(ctx: GuardContext<'beforeStep'>): GuardContext<'beforeStep'> {
    return ctx
  }
}
function curfew(ctx: GuardContext<'beforeStep'>): GuardContext<'beforeStep'> {
  return ctx
}

const names: { readonly [expected: string]: { readonly name: string } } = {
  given: guard('beforeStep', curfew, { name: 'given' }),
  curfew: guard('beforeStep', curfew),
  Curfew: guard('beforeStep', new Curfew()),
  'guard:beforeStep': guard('beforeStep', (ctx) => ctx),
  'hook:beforeStep+afterStep': hook(['beforeStep', 'afterStep'], (ctx) => ctx),
  'observe:onStop': observe('onStop', { handle: () => undefined }),
}

for (const [expected, { name }] of Object.entries(names)) {
  test(`a hook gets the name "${expected}" from its options, its handler or its trigger`, () => {
    assert.equal(name, expected)
  })
}

import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { runInNewContext } from 'node:vm'
import type { Use } from '../agent/capability.ts'
import type { Run } from '../agent/run.ts'
import { tool } from '../agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { fire } from '../../testing/fire.ts'
import { action } from './action.ts'
import { guard, hook, shadow } from './hook.ts'
import { isAround, triggers, triggerNames, type GuardTrigger } from './triggers.ts'

// Every way in which an outcome reaches the loop: an outcome that is not known is never an approval.

class Verdict {
  decision = 'block'
}

/** Each value, and what the message says about it. */
const unknown: { readonly [what: string]: readonly [unknown, RegExp] } = {
  undefined: [undefined, /returned undefined/],
  null: [null, /returned null/],
  'a decision that is undefined': [{ decision: undefined }, /returned "decision" as undefined/],
  'a decision of another vocabulary': [{ decision: 'deny' }, /"decision":"deny".*: write "block" here\. Return/],
  'a decision that is not a string': [{ decision: true }, /"decision" must be one of block, ask, allow/],
  'a function as a decision': [{ decision: () => 'block' }, /"decision" as the function/],
  'a symbol as a decision': [{ decision: Symbol('block') }, /"decision" as a symbol/],
  'a string': ['blok', /returned "blok"/],
  false: [false, /returned false/],
  'a list': [[], /returned \[\]/],
  'a field that is unknown': [{ veto: true }, /unknown field "veto"/],
  'the format of Claude Code': [{ permissionDecision: 'deny' }, /unknown field "permissionDecision"/],
  'a message without a decision': [{ message: 'no' }, /"message" has no effect without "decision"/],
  'a vote that is unknown': [
    { votes: [{ decision: 'stop', reason: 'completed', message: '' }] },
    /votes\[0\].decision/,
  ],
  'a vote with an unknown reason': [
    { votes: [{ decision: 'forbidContinuation', reason: 'because', message: '' }] },
    /votes\[0\].reason/,
  ],
  'votes that are not a list': [{ votes: { decision: 'forbidContinuation' } }, /"votes" must be an array/],
  'an unknown field that is undefined': [{ descision: undefined }, /"descision" as undefined/],
  'usage that is negative': [{ spent: { costUsd: -1 } }, /"spent.costUsd" must be a number from 0 up/],
  'usage that is not a number': [{ spent: { inputTokens: '5' } }, /"spent.inputTokens" must be a number/],
  'usage with an unknown name': [{ spent: { promptTokens: 5 } }, /"spent.promptTokens" is unknown/],
  'an instance of a class': [new Verdict(), /an instance of Verdict/],
  'a map': [new Map([['decision', 'block']]), /an instance of Map/],
  'a function': [() => ({ decision: 'block' }), /returned (a|the) function/],
}

const work = (done: string[]) =>
  tool({ name: 'work', description: 'Works.', input: { type: 'object' }, execute: () => void done.push('worked') })

async function runWith(...use: readonly Use[]): Promise<{ readonly run: Run; readonly done: readonly string[] }> {
  const done: string[] = []
  const model = scriptedModel([{ toolCalls: [{ name: 'work' }] }, 'done'])
  return { run: await createAgent({ model, use: [work(done), ...use] }).run('go'), done }
}

const returning = (value: unknown, how: { asks?: true } = {}) =>
  action({ kind: 'test', label: 'returns', ...how, perform: () => value as never })

suite('an action whose outcome its trigger does not know', () => {
  for (const [what, [value, message]] of Object.entries(unknown)) {
    test(`blocks as a guard if it returns ${what}, and the message says what was returned`, async () => {
      for (const how of [{}, { asks: true }] as const) {
        const { run, done } = await runWith(guard('beforeToolUse', returning(value, how), { name: 'judge' }))
        const [execution] = run.state.execution!.steps.at(0)!.toolExecutions
        assert.deepEqual([done, execution?.status, execution?.by], [[], 'blocked', 'judge'])
        assert.match(execution?.output as string, message)
        const entry = run.ledger.find((each) => each.hook === 'judge')
        assert.deepEqual([entry?.decision, message.test(entry?.error ?? '')], ['block', true])
      }
    })

    test(`fails as a hook if it returns ${what}`, async () => {
      const { run, done } = await runWith(hook('beforeToolUse', returning(value)))
      assert.deepEqual(
        [done, run.status, run.status === 'failed' && message.test(run.error.message)],
        [[], 'failed', true],
      )
    })
  }

  for (const trigger of triggerNames) {
    if (triggers[trigger].guard.length === 0) continue
    test(`blocks as a guard at ${trigger}`, async () => {
      const outcome = await fire(
        guard(trigger as GuardTrigger, returning({ decision: 'deny' })),
        trigger as GuardTrigger,
      )
      const says = outcome.decision ?? outcome.votes?.[0]?.decision
      assert.equal(says, triggers[trigger as GuardTrigger].onGuardFailure === 'block' ? 'block' : 'forbidContinuation')
    })
  }

  for (const [what, thrown] of [
    ['undefined', undefined],
    ['null', null],
    ['a string', 'no'],
    ['a frozen object', Object.freeze({ code: 'X' })],
    ['an object that cannot be read', new Proxy({}, { get: () => assert.fail('read') })],
    ['an object without a type', new Proxy({}, { getPrototypeOf: () => assert.fail('type') })],
  ] as const) {
    test(`blocks as a guard if it throws ${what}`, async () => {
      const throws = action({
        kind: 'test',
        label: 'throws',
        perform: () => {
          throw thrown
        },
      })
      const { run, done } = await runWith(guard('beforeToolUse', throws))
      assert.deepEqual([done, run.status === 'suspended'], [[], false])
      assert.notEqual(run.state.execution!.steps.at(0)?.toolExecutions[0]?.status, 'ok')
    })
  }

  const thenable: object = {}
  Reflect.set(thenable, ['th', 'en'].join(''), (resolve: (value: unknown) => void) =>
    resolve({ decision: 'block', message: 'no' }),
  )

  test('may be a thenable, or an object of another realm, that is an outcome', async () => {
    for (const outcome of [
      thenable,
      runInNewContext('({ decision: "block", message: "no" })') as unknown,
      Object.assign(Object.create(null) as object, { decision: 'block', message: 'no' }),
    ]) {
      const { run, done } = await runWith(guard('beforeToolUse', returning(outcome)))
      const [execution] = run.state.execution!.steps.at(0)!.toolExecutions
      assert.deepEqual([done, execution?.status, execution?.output], [[], 'blocked', 'no'])
    }
  })
})

test('an action that reports a part of its usage adds only that to the usage of the run', async () => {
  const spends = action({ kind: 'test', label: 'spends', perform: async () => ({ spent: { costUsd: 0.5 } }) })
  for (const trigger of ['onUserInput', 'beforeToolUse', 'afterInference'] as const) {
    const [plain, spent] = [await runWith(), await runWith(guard(trigger, spends))]
    const { costUsd, ...tokens } = spent.run.state.execution!.usage
    const { costUsd: _free, ...others } = plain.run.state.execution!.usage
    assert.deepEqual([tokens, costUsd > 0], [others, true])
  }
})

suite('a hook that returns no context', () => {
  const values = { ...unknown, 'an outcome': [{ decision: 'allow' }, /"decision":"allow"/] as const }
  for (const [what, [value]] of Object.entries(values)) {
    test(`blocks as a guard if it returns ${what}, at once or later`, async () => {
      for (const handler of [() => value, async () => value, { handle: () => value }]) {
        for (const effect of [false, true] as const) {
          const { run, done } = await runWith(guard('beforeToolUse', handler as never, { name: 'judge', effect }))
          const [execution] = run.state.execution!.steps.at(0)!.toolExecutions
          assert.deepEqual([done, execution?.status, execution?.by], [[], 'blocked', 'judge'])
          assert.match(execution?.output as string, /It returned (nothing|.+, not a context)/)
        }
      }
    })
  }

  test('is in the ledger as the block that it would have been, in shadow mode', async () => {
    for (const handler of [() => ({ decision: 'allow' }), async () => 5]) {
      const { run, done } = await runWith(shadow(guard('beforeToolUse', handler as never, { name: 'judge' })))
      const entry = run.ledger.find((each) => each.hook === 'judge')
      assert.deepEqual([done, entry?.decision, entry?.shadow], [['worked'], 'block', true])
      assert.match(entry?.error ?? '', /not a context/)
    }
  })

  test('fails the call as an around hook, and the message says what was returned', async () => {
    for (const [value, message] of [
      [{ decision: 'deny' }, /returned \{"decision":"deny"\}, which is not a result/],
      ['blok', /returned "blok"/],
      [{ status: 'denied', output: 'x' }, /"status":"denied"/],
      [{ status: 'ok' }, /"status":"ok"/],
      [undefined, /neither called next\(\) nor returned/],
    ] as const) {
      const { run, done } = await runWith(hook('aroundToolUse', async () => value as never))
      const [execution] = run.state.execution!.steps.at(0)!.toolExecutions
      assert.deepEqual([done, execution?.status], [[], 'failed'])
      assert.match(execution?.output as string, message)
    }
  })
})

suite('a method that the context of a trigger does not have', () => {})

test('every trigger has a decision for a guard that fails', () => {
  for (const trigger of triggerNames) {
    const { guard: can, ...spec } = triggers[trigger]
    assert.equal('onGuardFailure' in spec, can.length > 0 && !isAround(trigger), trigger)
  }
})

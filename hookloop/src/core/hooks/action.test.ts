import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { tool } from '../agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { fire } from '../../testing/fire.ts'
import { action, type Action } from './action.ts'
import { guard, hook, observe, shadow } from './hook.ts'
import type { HookOutcome } from './outcome.ts'
import { replayedRun } from '../../sessions/replay/replayed-run.fixture.ts'

function answering(outcome: HookOutcome, seen: string[] = []): Action {
  return action({
    kind: 'fake',
    label: 'fake action',
    perform: async ({ trigger }, { mode }) => {
      seen.push(`${mode} ${trigger}`)
      return outcome
    },
  })
}

function worker(done: string[]) {
  return tool({
    name: 'work',
    description: 'Works.',
    input: { type: 'object', properties: { n: { type: 'number' } } },
    execute: ({ n }) => {
      done.push(`work ${JSON.stringify(n)}`)
      return 'worked'
    },
  })
}

const script = () => scriptedModel([{ toolCalls: [{ name: 'work', args: { n: 1 } }] }, 'done'])

suite('an action', () => {
  test('decides under guard', async () => {
    const outcome = await fire(guard('beforeToolUse', answering({ decision: 'block', message: 'no' })), 'beforeToolUse')
    assert.deepEqual([outcome.decision, outcome.message], ['block', 'no'])
  })

  test('changes under hook, and may block there as well', async () => {
    const done: string[] = []
    const change = hook('beforeToolUse', answering({ args: { n: 2 } }), { name: 'change' })
    const changed = await createAgent({ model: script(), use: [worker(done), change] }).run('go')
    const block = hook('beforeToolUse', answering({ args: { n: 3 }, decision: 'block', message: 'no' }))
    const blocked = await createAgent({ model: script(), use: [worker(done), block] }).run('go')
    assert.deepEqual([done, changed.status, blocked.status], [['work 2'], 'completed', 'completed'])
    assert.ok(blocked.ledger.some(({ hook: by, decision }) => by === 'fake action' && decision === 'block'))
  })

  test('may ask under hook, and without an approver the call is blocked', async () => {
    const done: string[] = []
    const asks = hook('beforeToolUse', answering({ decision: 'ask', message: 'sure?' }))
    const run = await createAgent({ model: script(), use: [worker(done), asks] }).run('go')
    assert.deepEqual([done, run.state.execution!.steps.at(0)?.toolExecutions[0]?.status], [[], 'blocked'])
  })

  test('is not performed again by a replay, under any mode', async () => {
    const seen: string[] = []
    const use = [
      worker([]),
      hook('beforeToolUse', answering({ args: { n: 5 } }, seen), { name: 'changes' }),
      guard('beforeToolUse', answering({ decision: 'allow' }, seen), { name: 'judges' }),
      observe('afterToolUse', answering({}, seen), { name: 'watches' }),
    ]
    await replayedRun(createAgent({ model: script(), use }), 'go')
    assert.equal(seen.length, 3)
  })

  const ignored: readonly [string, HookOutcome][] = [
    ['a change under guard', { args: { n: 2 } }],
    ['a recovery', { recovery: { decision: 'retry', afterMs: 0 } }],
    ['a vote to continue', { votes: [{ decision: 'requestContinuation', reason: 'completed', message: 'more' }] }],
  ]
  for (const [what, outcome] of ignored) {
    test(`that returns ${what}, where it has no effect, fails`, async () => {
      const judged = await fire(guard('beforeToolUse', answering(outcome)), 'beforeToolUse')
      assert.deepEqual([judged.decision, /no effect at beforeToolUse/.test(judged.message!)], ['block', true])
    })
  }

  test('cannot wrap a call, and cannot run in shadow mode', () => {
    assert.throws(() => hook('aroundToolUse', answering({}) as never), { code: 'HOOK_INVALID_OPTION' })
    assert.throws(() => shadow(guard('beforeToolUse', answering({}))), { code: 'HOOK_INVALID_OPTION' })
  })
})

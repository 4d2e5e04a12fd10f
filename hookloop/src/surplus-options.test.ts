import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { explanation } from './agent/explain/explanation.ts'
import { tool } from './agent/tool.ts'
import { approval } from './capabilities/approval.ts'
import { completion } from './capabilities/completion.ts'
import { errorPolicy } from './capabilities/error-policy.ts'
import { createAgent } from './create-agent.ts'
import { AgentError } from './errors.ts'
import { contextClasses } from './hooks/context-methods.ts'
import { guard, hook } from './hooks/hook.ts'
import { isAround, triggerNames, type GuardTrigger, type HookTrigger } from './hooks/triggers.ts'
import { scriptedModel } from './models/scripted.ts'
import { diffRuns } from './sessions/replay/diff-runs.ts'
import { listPoints } from './sessions/session/fork-session.ts'
import { memoryStore } from './sessions/stores/memory-store.ts'
import { fire } from './testing/fire.ts'

// Options for a function that takes none would silently not apply.

const store = memoryStore()
const agent = createAgent({ model: scriptedModel(['done']), store })
const run = await agent.run('go', { session: 's' })

type Call = (...args: readonly unknown[]) => unknown

const calls: { readonly [name: string]: readonly [call: Call, args: readonly unknown[], option: string] } = {
  memoryStore: [memoryStore, [], 'path'],
  completion: [completion, [], 'maxSteps'],
  approval: [approval as Call, ['suspend'], 'expiresInMs'],
  errorPolicy: [errorPolicy as Call, ['patient'], 'maxRetries'],
  explanation: [explanation as Call, [run], 'verbose'],
  diffRuns: [diffRuns as Call, [run, run], 'verbose'],
  listPoints: [listPoints as Call, [store, 's'], 'limit'],
  'agent.session': [agent.session as Call, ['s'], 'metadata'],
}

suite('a function that takes no options rejects them', () => {
  for (const [name, [call, args, option]] of Object.entries(calls)) {
    test(`${name}: ${option}`, async () => {
      const given = async (): Promise<unknown> => call(...args, { [option]: 5 })
      const message = `${name}: unknown option "${option}". There are no options.`
      await assert.rejects(given, { name: 'AgentError', code: 'AGENT_INVALID_OPTION', message })
    })
  }

  test('and can be passed to map', () => {
    assert.equal([run].map(explanation as (each: typeof run) => unknown).length, 1)
  })
})

/** What each method of a context is called with. */
const given: { readonly [method: string]: readonly unknown[] } = {
  ask: ['Sure?', { expiresInMs: 5 }],
  block: ['No.', { reason: 'policy' }],
  allow: ['Yes.', { reason: 'policy' }],
  requestContinuation: ['Go on.', { reason: 'completed' }],
  allowContinuation: ['Go on.', { reason: 'completed' }],
  allowStop: ['Done.', {}, { reason: 'completed' }],
  stop: ['Enough.', {}, { reason: 'completed' }],
  ignore: [{ afterMs: 5 }],
  retry: [{ afterMs: 5 }, { maxRetries: 5 }],
  withArgs: [{}, { merge: true }],
  withOutput: ['text', { redact: true }],
  within: [5, { retry: true }],
}

suite('a method of a context rejects options that it does not take', () => {
  for (const trigger of triggerNames) {
    if (isAround(trigger)) continue
    for (const mode of ['transform', 'guard'] as const) {
      const methods = Object.keys(given).filter((name) => name in contextClasses[trigger][mode].prototype)
      for (const method of methods) {
        test(`ctx.${method} of a ${mode === 'guard' ? 'guard' : 'hook'} at ${trigger}`, async () => {
          const thrown: unknown[] = []
          const handler = (ctx: object): never => {
            try {
              ;(ctx as { readonly [name: string]: Call })[method]!(...given[method]!)
            } catch (error) {
              thrown.push(error)
            }
            return ctx as never
          }
          const judge =
            mode === 'guard' ? guard(trigger as GuardTrigger, handler) : hook(trigger as HookTrigger, handler as never)
          await fire(judge as never, trigger as never)
          const [error] = thrown
          assert.ok(error instanceof AgentError)
          assert.match(error.message, new RegExp(`^ctx\\.${method}: unknown option "\\w+"\\. `))
        })
      }
    }
  }
})

test('a guard that asks with an option that does not exist blocks, and the option is named', async () => {
  const done: string[] = []
  const work = tool({
    name: 'work',
    description: 'Works.',
    input: { type: 'object' },
    execute: () => done.push('done'),
  })
  const model = scriptedModel([{ toolCalls: [{ name: 'work' }] }, 'done'])
  for (const options of [{ bydefault: true }, { byDefault: 'yes' }, null]) {
    const judge = guard('beforeToolUse', (ctx) => ctx.ask('Sure?', options as never))
    const { warnings } = await createAgent({ model, use: [work, judge, approval(() => 'allow')] }).run('go')
    assert.match(warnings[0]?.message ?? '', /ctx\.ask: .*(byDefault|must be an object)/)
  }
  assert.deepEqual(done, [])
})

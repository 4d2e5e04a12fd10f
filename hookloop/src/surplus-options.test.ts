import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { explanation } from './agent/explain/explanation.ts'
import { tool } from './agent/tool.ts'
import { approval } from './capabilities/approval.ts'
import { completion } from './capabilities/completion.ts'
import { errorPolicy } from './capabilities/error-policy.ts'
import { mcp } from './capabilities/mcp/mcp.ts'
import { withTasks } from './capabilities/tasks/tasks.ts'
import { createAgent } from './create-agent.ts'
import { AgentError } from './errors.ts'
import { hookFilesOf } from './hook-files/files/project-hooks.ts'
import { contextClasses } from './hooks/context-methods.ts'
import { guard, hook } from './hooks/hook.ts'
import { not, stepType, toolName } from './hooks/matchers.ts'
import { isAround, triggerNames, type GuardTrigger, type HookTrigger } from './hooks/triggers.ts'
import { scriptedModel } from './models/scripted.ts'
import { toNodeListener } from './serve/node-listener.ts'
import { agentRunner } from './serve/session-runner.ts'
import { listPoints } from './sessions/session/fork-session.ts'
import { memoryStore } from './sessions/stores/memory-store.ts'
import { fire } from './testing/fire.ts'
import { recordEvents } from './testing/record-events.ts'

// Options for a function that takes none would silently not apply.

const store = memoryStore()
const agent = createAgent({ model: scriptedModel(['done']), store })
const run = await agent.run('go', { session: 's' })
const session = agent.session('s')
const runner = agentRunner(agent, store)
const servers = await mcp({ servers: {} })

type Call = (...args: readonly unknown[]) => unknown

function method(of: object, name: string): Call {
  return (...args) => (of as { readonly [name: string]: Call })[name]!(...args)
}

const calls: { readonly [name: string]: readonly [call: Call, args: readonly unknown[], option: string] } = {
  memoryStore: [memoryStore, [], 'path'],
  completion: [completion, [], 'maxSteps'],
  approval: [approval as Call, ['suspend'], 'expiresInMs'],
  errorPolicy: [errorPolicy as Call, ['patient'], 'maxRetries'],
  explanation: [explanation as Call, [run], 'verbose'],
  listPoints: [listPoints as Call, [store, 's'], 'limit'],
  'session.state': [session.state, [], 'at'],
  'session.clear': [session.clear, [], 'all'],
  'session.compact': [session.compact, [], 'keep'],
  'session.suspend': [session.suspend as Call, ['lunch'], 'by'],
  'session.changeModel': [session.changeModel as Call, ['openai/gpt-6-luna'], 'temperature'],
  'session.changeSystemPrompt': [session.changeSystemPrompt as Call, ['x'], 'append'],
  'session.writeMetadata': [session.writeMetadata as Call, ['key', 1], 'merge'],
  'session.updateTasks': [session.updateTasks as Call, [[]], 'merge'],
  agentRunner: [agentRunner as Call, [agent, store], 'maxRuns'],
  'runner.resume': [method(runner, 'resume'), ['s'], 'signal'],
  'runner.close': [method(runner, 'close'), [], 'timeout'],
  toNodeListener: [toNodeListener as Call, [() => new Response()], 'timeout'],
  recordEvents: [recordEvents as Call, [agent.stream('go')], 'deltas'],
  hookFilesOf: [hookFilesOf as Call, ['.'], 'home'],
  withTasks: [withTasks as Call, [run.state, []], 'maxTasks'],
  'mcp.close': [method(servers, 'close'), [], 'timeout'],
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

const unknown: { readonly [name: string]: readonly [call: Call, args: readonly unknown[], option: string] } = {
  'runner.stop': [method(runner, 'stop'), ['s'], 'resaon'],
  requestStop: [method(store, 'requestStop'), ['s'], 'who'],
  'mcp.call': [method(servers, 'call'), ['x', {}], 'servr'],
  'mcp.resources': [method(servers, 'resources'), [], 'servr'],
  'fire: toolExecution': [firing, ['toolExecution'], 'out'],
  'fire: toolCall': [firing, ['toolCall'], 'arguments'],
  'fire: spent': [firing, ['spent'], 'cost'],
}

/** Fires a hook with a part of a fact. */
function firing(fact: unknown, value: unknown): unknown {
  return fire(
    hook('afterToolUse', (ctx) => ctx),
    'afterToolUse',
    { [String(fact)]: value },
  )
}

suite('a function that takes options rejects one that it does not know', () => {
  for (const [name, [call, args, option]] of Object.entries(unknown)) {
    test(`${name}: ${option}`, async () => {
      const given = async (): Promise<unknown> => call(...args, { [option]: 5 })
      const message = new RegExp(`^${name}: unknown option "${option}"\\. `)
      await assert.rejects(given, { name: 'AgentError', code: 'AGENT_INVALID_OPTION', message })
    })
  }
})

test('a matcher of one value rejects a second one, and can be passed to map', () => {
  const message = /: it takes one value; combine several with all\(\) or any\(\)\.$/
  for (const [matcher, values] of [
    [toolName, ['a', 'b']],
    [stepType, ['finalResponse', 'toolCalls']],
    [not, [toolName('a'), toolName('b')]],
  ] as readonly (readonly [Call, readonly unknown[]])[]) {
    assert.throws(() => matcher(...values), { code: 'AGENT_INVALID_OPTION', message })
  }
  assert.equal(['a', 'b'].map(toolName as (each: string) => unknown).length, 2)
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

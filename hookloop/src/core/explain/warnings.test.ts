import assert from 'node:assert/strict'
import { test } from 'node:test'
import { approval } from '../../capabilities/approval.ts'
import { guards } from '../../capabilities/guards.ts'
import { subagents } from '../../capabilities/subagents/subagents.ts'
import { createAgent } from '../../create-agent.ts'
import { guard, hook, observe, shadow, type Hook } from '../hooks/hook.ts'
import type { PlainTrigger } from '../hooks/triggers.ts'
import { scriptedModel, type Script } from '../../models/scripted.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import type { Warning } from '../state/warning.ts'
import type { Use } from '../agent/capability.ts'
import { tool } from '../agent/tool.ts'
import { explain } from './explain.ts'
import { explanation } from './explanation.ts'

const echo = tool({ name: 'echo', description: 'Repeats.', input: { type: 'object' }, execute: (args) => args })
const call: Script[number] = { toolCalls: [{ name: 'echo' }] }

function agentWith(script: Script, ...use: readonly Use[]) {
  return createAgent({ model: scriptedModel(script), use: [echo, ...use], store: memoryStore() })
}

const forgets = guard('beforeToolUse', () => undefined as never, { name: 'forgets', tool: 'echo' })

function codes(warnings: readonly Warning[]): readonly string[] {
  return warnings.map(({ code, hook: name = '' }) => `${code} ${name}`)
}

test('a guard that forgets to return is a warning of the completed run, counted once per message', async () => {
  const run = await agentWith([call, call, call, 'done'], forgets).run('go')
  assert.equal(run.status, 'completed')
  assert.deepEqual(run.warnings, [
    {
      code: 'HOOK_NO_RETURN',
      message:
        'Guard "forgets" failed at beforeToolUse, so it blocked: It returned nothing. Return the context, changed or not: "return ctx" or "return ctx.block(…)".',
      hook: 'forgets',
      trigger: 'beforeToolUse',
      step: 0,
      count: 3,
    },
  ])
  assert.match(explain(run), /warnings +step 1: Guard "forgets" failed at beforeToolUse, so it blocked: .* \(3 times\)/)
})

const boom = (): never => {
  throw new Error('boom')
}
const late = (): Promise<never> => Promise.reject(new Error('boom'))
const never = (): Promise<never> => new Promise(() => undefined)

const failing: readonly (readonly [string, Hook<PlainTrigger>, string])[] = [
  [
    'a hook that throws and may be skipped',
    hook('afterStep', boom, { name: 'x', onFailure: 'continue' }),
    'HOOK_FAILED',
  ],
  [
    'a hook that times out',
    hook('afterStep', never, { name: 'x', timeoutMs: 1, onFailure: 'continue' }),
    'HOOK_TIMED_OUT',
  ],
  ['a guard that throws', guard('beforeToolUse', boom, { name: 'x' }), 'HOOK_FAILED'],
  ['a guard that times out', guard('beforeToolUse', never, { name: 'x', timeoutMs: 1 }), 'HOOK_TIMED_OUT'],
  [
    'a guard that returns a value',
    guard('beforeToolUse', (() => true) as never, { name: 'x' }),
    'HOOK_FOREIGN_CONTEXT',
  ],
  ['an observer that throws', observe('afterStep', boom, { name: 'x' }), 'HOOK_FAILED'],
  ['an observer that fails later', observe('beforeStep', late, { name: 'x' }), 'HOOK_FAILED'],
  ['a hook at the end of the run', hook('afterExecution', boom, { name: 'x' }), 'HOOK_FAILED'],
  ['a hook in shadow mode', shadow(guard('beforeToolUse', boom, { name: 'x' })), 'HOOK_FAILED'],
]
for (const [what, each, code] of failing) {
  test(`${what} is in run.warnings, in explain and in the last line of the ledger that is about it`, async () => {
    const run = await agentWith([call, 'done'], each).run('go')
    assert.deepEqual(new Set(codes(run.warnings)), new Set([`${code} x`]))
    assert.deepEqual(explanation(run).warnings, run.warnings)
    assert.match(explain(run), /"x".* failed at/)
  })
}

test('an around hook that fails by itself is a warning, and one that passes an error on is not', async () => {
  const broken = hook('aroundToolUse', boom, { name: 'broken' })
  const passing = hook('aroundInference', (_ctx, next) => next(), { name: 'passing' })
  const run = await agentWith([call, { error: 'down' }], broken, passing).run('go')
  assert.deepEqual(codes(run.warnings), ['HOOK_FAILED broken'])
})

test('the warnings of a subagent reach the run of its parent, with its path', async () => {
  const model = scriptedModel([
    { toolCalls: [{ name: 'spawn_subagent', args: { subagent: 'scout', prompt: 'Look.' } }] },
    { toolCalls: [{ name: 'echo' }] },
    'nothing',
    'done',
  ])
  const agents = { scout: { description: 'Looks.', instructions: 'Look.' } }
  const run = await createAgent({ model, use: [echo, forgets, subagents({ agents })] }).run('go')
  const inside = run.warnings.filter(({ path }) => path?.[0]?.agent === 'scout')
  assert.deepEqual(codes(inside), ['HOOK_NO_RETURN forgets'])
  assert.match(explain(run), /scout, step 1: Guard "forgets"/)
})

test('warnings survive a session and a suspension', async () => {
  const asks = guard('beforeToolUse', (ctx) => ctx.ask('Sure?'), { name: 'asks', priority: 1 })
  const fails = hook('beforeStep', boom, { name: 'fails', onFailure: 'continue' })
  const agent = agentWith([call, 'done'], asks, fails, approval('suspend'))
  const waiting = await agent.run('go', { session: 'one' })
  assert.deepEqual(codes(waiting.warnings), ['HOOK_FAILED fails'])
  const answers = { [waiting.status === 'suspended' ? waiting.pending[0]!.id : '']: 'allow' as const }
  const resumed = await agent.resume('one', { answers })
  assert.deepEqual(resumed.warnings, [{ ...waiting.warnings[0]!, count: 2 }])
})

test('what hooks inject or report when a session starts is part of its first run, and of no other', async () => {
  const tells = hook('onSessionStart', (ctx) => ctx.withState((state) => state.withMessage('The branch is main.')), {
    name: 'tells',
  })
  const fails = observe('onSessionStart', boom, { name: 'fails' })
  const session = agentWith(['done', 'done'], tells, fails).session('one')
  const live = session.stream('go')
  const events = []
  for await (const event of live) events.push(event)
  const first = await live.run
  assert.deepEqual(codes(first.warnings), ['HOOK_FAILED fails'])
  assert.match(explain(first), /injected +step 1, tells at onSessionStart: "The branch is main\."/)
  const hooks = events.flatMap((event) =>
    event.type === 'hook' && event.entry.trigger === 'onSessionStart' ? [event.entry.hook] : [],
  )
  assert.deepEqual(hooks, ['tells', 'fails'])
  const second = await session.send('again')
  assert.deepEqual(second.warnings, [])
  assert.doesNotMatch(explain(second), /injected/)
})

test('at most 100 different warnings are listed, and the others are counted', async () => {
  let times = 0
  const odd = observe('beforeStep', () => Promise.reject(new Error(`odd ${times++}`)), { name: 'odd' })
  const script = [...Array.from({ length: 149 }, () => call), 'done']
  const run = await agentWith(script, odd, guards({ maxSteps: 200 })).run('go')
  const last = run.warnings.at(-1)!
  assert.deepEqual([run.warnings.length, last.code, last.count], [101, 'WARNINGS_OMITTED', 50])
})

test('hooks, skills and servers that a capability left out are warnings of every run', async () => {
  const capability = { name: 'files', warnings: ['hooks.json is not trusted: its hooks do not run'] }
  const agent = agentWith(['done', 'done'], capability)
  for (const run of [await agent.run('go'), await agent.run('go', { session: 's' })]) {
    assert.deepEqual(run.warnings, [
      { code: 'LEFT_OUT', message: 'hooks.json is not trusted: its hooks do not run', step: 0, count: 1 },
    ])
  }
})

test('an estimated usage is a warning, and explain marks the amount', async () => {
  const speak = scriptedModel(['done'])
  const message = 'The provider did not report token usage. It is estimated, so that limits apply.'
  const model = {
    ...speak,
    infer: async (...request: Parameters<typeof speak.infer>) => ({
      ...(await speak.infer(...request)),
      warnings: [message],
    }),
  }
  const run = await createAgent({ model }).run('go')
  assert.deepEqual(run.warnings, [{ code: 'USAGE_ESTIMATED', message, step: 0, count: 1 }])
  assert.match(explain(run), /tokens \(estimated\)/)
})

test('the warnings of a run are events as well, with their code and step', async () => {
  const capability = { name: 'files', warnings: ['left out'] }
  const live = agentWith([call, 'done'], capability, forgets).stream('go')
  const events = []
  for await (const event of live) events.push(event)
  assert.deepEqual(
    events.flatMap((event) => (event.type === 'warning' ? [[event.step, event.code, event.message]] : [])),
    [[0, 'LEFT_OUT', 'left out']],
  )
  const hooks = events.flatMap((event) => (event.type === 'hook' ? [event] : []))
  assert.ok(hooks.every(({ at }) => at > 0))
  assert.ok(hooks.some(({ entry }) => entry.code === 'HOOK_NO_RETURN'))
})

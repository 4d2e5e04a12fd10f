import assert from 'node:assert/strict'
import { test } from 'node:test'
import { approval } from '../../capabilities/approval.ts'
import { completion } from '../../capabilities/completion.ts'
import { errorPolicy } from '../../capabilities/error-policy.ts'
import { guards } from '../../capabilities/guards.ts'
import { responseContent } from '../../capabilities/response-content.ts'
import { retryLimit } from '../../capabilities/retry-limit.ts'
import { createAgent } from '../../create-agent.ts'
import type { StopReason } from '../state/continuation.ts'
import { liveEffects } from '../effects/effects.ts'
import { guard, hook, observe } from '../hooks/hook.ts'
import { scriptedModel, type Script } from '../../models/scripted.ts'
import { fakeClock } from '../../testing/fake-clock.ts'
import type { Capability, Use } from './capability.ts'
import { tool } from './tool.ts'

const read = tool({
  name: 'read',
  description: 'Reads.',
  input: { type: 'object' },
  concurrent: true,
  execute: () => 'text',
})
const write = tool({
  name: 'write',
  description: 'Writes.',
  input: { type: 'object' },
  ask: true,
  execute: () => {
    throw new Error('read-only')
  },
})

test('describe lists the parts of an agent before it runs', () => {
  const agent = createAgent({
    name: 'clerk',
    model: scriptedModel([], { modelId: 'tiny' }),
    use: [
      read,
      write,
      guard('beforeToolUse', (ctx) => ctx, { name: 'careful', tool: 'w*', priority: 7 }),
      observe(['beforeStep', 'afterStep'], () => undefined, { name: 'watcher' }),
      hook('beforeToolUse', (ctx) => ctx, { name: 'lost', tool: 'delete' }),
      { name: 'noted', notes: ['Mind the gap.'] } satisfies Capability,
      approval('suspend'),
    ],
  })
  const { hooks, notes, ...rest } = agent.describe()
  assert.deepEqual(rest, {
    name: 'clerk',
    model: 'scripted/tiny',
    capabilities: ['completion', 'guards', 'noted', 'approval'],
    tools: [
      { name: 'read', description: 'Reads.', concurrent: true, asks: false },
      { name: 'write', description: 'Writes.', concurrent: false, asks: true },
    ],
    approval: 'suspend',
  })
  assert.deepEqual(hooks.slice(-3), [
    { name: 'careful', mode: 'guard', triggers: ['beforeToolUse'], priority: 7, tools: ['write'] },
    { name: 'watcher', mode: 'observe', triggers: ['beforeStep', 'afterStep'], priority: 0 },
    { name: 'lost', mode: 'transform', triggers: ['beforeToolUse'], priority: 0, tools: [] },
  ])
  assert.deepEqual(notes.slice(-2), [
    'Mind the gap.',
    'The hook "lost" can never fire: the agent has no tool that it selects.',
  ])
})

test('an agent that is extended leaves the original unchanged', () => {
  const first = createAgent({ model: scriptedModel([]) })
  const before = first.describe()
  const second = first.with(read, guards({ maxSteps: 2 }))
  assert.deepEqual(first.describe(), before)
  assert.deepEqual(
    second.describe().tools.map((each) => each.name),
    ['read'],
  )
  assert.ok(second.describe().notes[0]!.includes('maxSteps: 2,'))
})

test('two capabilities with the same name are rejected, and the error names it', () => {
  const use = [guards({ maxSteps: 3 }), guards({ maxCost: 1 })]
  assert.throws(() => createAgent({ model: scriptedModel(['ok']), use }), {
    code: 'AGENT_INVALID_OPTION',
    message: /"guards"/,
  })
})

test('describe reports a hook that matches none of the tools', () => {
  const idle = guard('beforeToolUse', (ctx) => ctx.block('no'), { name: 'no push', tool: 'raed' })
  const { notes } = createAgent({ model: scriptedModel(['ok']), use: [read, idle] }).describe()
  assert.ok(notes.some((note) => note.includes('"no push" can never fire')))
})

// ── ten criteria for continuing or stopping, each as a hook

const reading: Script = Array.from({ length: 30 }, () => ({ toolCalls: [{ name: 'read' }] }))
const writing: Script = Array.from({ length: 30 }, () => ({ toolCalls: [{ name: 'write' }] }))
const clock = fakeClock()
const slow = hook('afterToolUse', (ctx) => clock.advance(100).then(() => ctx), { name: 'slow' })

type Criterion = { use: readonly Use[]; script: Script; by: string; reason: StopReason }

const criteria: Readonly<Record<string, Criterion>> = {
  StepsLimit: { use: [guards({ maxSteps: 2 })], script: reading, by: 'guards.maxSteps', reason: 'stepsLimit' },
  ExecutionTimeLimit: {
    use: [slow, guards({ maxTimeMs: 150 })],
    script: reading,
    by: 'guards.maxTimeMs',
    reason: 'timeLimit',
  },
  TokenUsageLimit: { use: [guards({ maxTokens: 30 })], script: reading, by: 'guards.maxTokens', reason: 'tokenLimit' },
  ErrorPresenceCheck: {
    use: [errorPolicy('strict')],
    script: [{ error: 'down' }],
    by: 'errorPolicy.onError',
    reason: 'errorForbade',
  },
  ErrorPolicyCriterion: {
    use: [errorPolicy({ maxRetries: 1 })],
    script: writing,
    by: 'errorPolicy.afterStep',
    reason: 'errorForbade',
  },
  RetryLimit: { use: [retryLimit({ maxRetries: 1 })], script: writing, by: 'retryLimit', reason: 'retryLimit' },
  FinishReasonCheck: {
    use: [guards({ finishReasons: ['length'] })],
    script: [{ text: 'half', finishReason: 'length' }],
    by: 'guards.finishReasons',
    reason: 'finishReason',
  },
  ToolCallPresenceCheck: { use: [completion()], script: ['done'], by: 'completion', reason: 'completed' },
  ResponseContentCheck: {
    use: [{ name: 'completion' }, responseContent((text) => (text === 'over' ? 'stop' : undefined))],
    script: ['on', 'over'],
    by: 'responseContent',
    reason: 'completed',
  },
  CallableCriterion: {
    use: [guard('afterStep', (ctx) => (ctx.state.stepCount === 3 ? ctx.stop('Three.') : ctx), { name: 'three' })],
    script: reading,
    by: 'three',
    reason: 'stopRequested',
  },
}

for (const [criterion, { use, script, by, reason }] of Object.entries(criteria)) {
  test(`${criterion} is the hook "${by}", which stops a run with the reason ${reason}`, async () => {
    const agent = createAgent({ model: scriptedModel(script), use: [read, write, ...use] })
    const run = await agent.run('go', { effects: liveEffects({ clock }) })
    const { final } = run.status === 'suspended' ? assert.fail('suspended') : run
    assert.deepEqual({ by: final.by, reason: final.reason }, { by, reason })
    assert.ok(agent.describe().hooks.some((each) => each.name === by))
  })
}

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { approval } from '../../capabilities/approval.ts'
import { errorPolicy } from '../../capabilities/error-policy.ts'
import { fallback } from '../../capabilities/fallback.ts'
import { guards } from '../../capabilities/guards.ts'
import { retry } from '../../capabilities/retry.ts'
import { summarization } from '../../capabilities/summarization/summarization.ts'
import { createAgent } from '../../create-agent.ts'
import { AgentError, type ErrorCode } from '../../errors.ts'
import type { GuardContext } from '../hooks/context.ts'
import { guard, hook, observe } from '../hooks/hook.ts'
import { scriptedModel, type Script } from '../../models/scripted.ts'
import { budget } from '../../sessions/limits/budget.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import type { Agent } from '../agent/agent.ts'
import type { RunOptions } from '../agent/run-options.ts'
import type { Use } from '../agent/capability.ts'
import type { Run } from '../agent/run.ts'
import { tool } from '../agent/tool.ts'
import { explanation } from './explanation.ts'

const echo = tool({ name: 'echo', description: 'Repeats.', input: { type: 'object' }, execute: (args) => args })
const call: Script[number] = { toolCalls: [{ name: 'echo' }] }
const fast = { backoffMs: 0 }

function fails(code: ErrorCode): Script[number] {
  return { error: new AgentError(code, `The provider answered with ${code}.`) }
}

function agentWith(script: Script, ...use: readonly Use[]): Agent {
  return createAgent({ model: scriptedModel(script), use: [echo, ...use], store: memoryStore() })
}

/** A run, the advice it gets, and a run that follows the advice. */
type Row = {
  readonly when: string
  readonly script: Script
  readonly use?: readonly Use[]
  readonly options?: RunOptions
  readonly says: string | undefined
  /** Does what the advice says, with the same script. */
  readonly follow?: (agent: Agent, run: Run) => Promise<Run>
}

const other = scriptedModel(['other'])

const rows: readonly Row[] = [
  { when: 'a run completed', script: ['done'], says: undefined },
  {
    when: 'the step limit was reached',
    script: [call, call, 'done'],
    use: [guards({ maxSteps: 2 })],
    says: 'raise guards({ maxSteps })',
    follow: () => agentWith([call, call, 'done'], guards({ maxSteps: 3 })).run('go'),
  },
  {
    when: 'a budget over processes is used up',
    script: [call, call, 'done'],
    use: [budget({ store: memoryStore(), key: 'ann', name: 'tenant', maxTokens: 1_000 })],
    says: 'raise budget({ maxTokens })',
    follow: () => agentWith([call, 'done'], budget({ store: memoryStore(), maxTokens: 100_000 })).run('go'),
  },
  {
    when: 'a run was cancelled',
    script: ['done'],
    options: { signal: AbortSignal.abort() },
    says: 'agent.run(input, { from: run })',
    follow: (agent, run) => agent.run('again', { from: run }),
  },
  {
    when: 'a run in a session was cancelled',
    script: ['done'],
    options: { signal: AbortSignal.abort(), session: 'one' },
    says: `agent.run(input, { session: 'one' })`,
    follow: (agent) => agent.run('again', { session: 'one' }),
  },
  {
    when: 'a provider is overloaded',
    script: [fails('MODEL_OVERLOADED'), 'done'],
    says: 'use retry(), or use fallback() to another model',
    follow: () => agentWith([fails('MODEL_OVERLOADED'), 'done'], retry(fast)).run('go'),
  },
  {
    when: 'retry() gave up',
    script: [fails('MODEL_OVERLOADED'), fails('MODEL_OVERLOADED'), 'done'],
    use: [retry({ ...fast, maxRetries: 1 })],
    says: 'raise retry({ maxRetries }), or use fallback() to another model',
    follow: () =>
      agentWith([fails('MODEL_OVERLOADED'), fails('MODEL_OVERLOADED'), 'done'], retry({ ...fast, maxRetries: 2 })).run(
        'go',
      ),
  },
  {
    when: 'retry() and fallback() gave up',
    script: [fails('MODEL_OVERLOADED'), fails('MODEL_OVERLOADED'), 'done'],
    use: [retry({ ...fast, maxRetries: 1 }), fallback([scriptedModel([fails('MODEL_REJECTED')])])],
    says: 'use a model name and settings that the provider accepts',
  },
  {
    when: 'a provider does not know the model (404)',
    script: [fails('MODEL_REJECTED')],
    says: 'use a model name and settings that the provider accepts, or use fallback() to another model',
    follow: () => agentWith([fails('MODEL_REJECTED')], fallback([other])).run('go'),
  },
  {
    when: 'a provider does not know the model and retry() is used',
    script: [fails('MODEL_REJECTED')],
    use: [retry(fast)],
    says: 'use a model name and settings that the provider accepts, or use fallback() to another model',
    follow: () => agentWith([fails('MODEL_REJECTED')], retry(fast), fallback([scriptedModel(['other'])])).run('go'),
  },
  {
    when: 'an error policy stopped after a 404',
    script: [fails('MODEL_REJECTED')],
    use: [errorPolicy({ onError: 'stop' })],
    says: 'use a model name and settings that the provider accepts, or use fallback() to another model',
    follow: () =>
      agentWith([fails('MODEL_REJECTED')], errorPolicy({ onError: 'stop' }), fallback([scriptedModel(['other'])])).run(
        'go',
      ),
  },
  {
    when: 'an error policy counted too many failures',
    script: [fails('MODEL_OVERLOADED'), fails('MODEL_OVERLOADED'), 'done'],
    use: [errorPolicy({ maxRetries: 1, backoffMs: 0 })],
    says: 'raise errorPolicy({ maxRetries })',
    follow: () =>
      agentWith(
        [fails('MODEL_OVERLOADED'), fails('MODEL_OVERLOADED'), 'done'],
        errorPolicy({ maxRetries: 2, backoffMs: 0 }),
      ).run('go'),
  },
  {
    when: 'a strict error policy stopped',
    script: [fails('MODEL_OVERLOADED'), 'done'],
    use: [errorPolicy('strict')],
    says: `use errorPolicy('patient'), which retries`,
    follow: () => agentWith([fails('MODEL_OVERLOADED'), 'done'], errorPolicy({ backoffMs: 0 })).run('go'),
  },
  {
    when: 'the key is wrong',
    script: [fails('MODEL_UNAUTHORIZED')],
    says: 'use an API key that the provider accepts, or use fallback() to another model',
    follow: () => agentWith([fails('MODEL_UNAUTHORIZED')], fallback([scriptedModel(['other'])])).run('go'),
  },
  {
    when: 'the conversation is too long',
    script: [call, fails('MODEL_CONTEXT_OVERFLOW')],
    says: 'use summarization(), or use fallback() to another model',
    follow: () =>
      agentWith(
        [call, call, call, call, fails('MODEL_CONTEXT_OVERFLOW'), 'done'],
        summarization({ summarize: () => Promise.resolve('A summary.'), maxMessageTokens: 100_000 }),
      ).run('go'),
  },
  {
    when: 'the answer was cut off',
    script: [{ text: 'half', finishReason: 'length' }],
    says: 'raise createAgent({ settings: { maxOutputTokens } })',
  },
  {
    when: 'a guard forced the stop of an answer that was cut off',
    script: [{ text: 'half', finishReason: 'length' }],
    use: [guards({ finishReasons: ['length'] })],
    says: 'change "guards.finishReasons", which stopped the run: other hooks cannot overturn that',
  },
  {
    when: 'a hook stopped the run',
    script: [call, 'done'],
    use: [guard('afterStep', (ctx) => ctx.stop('Enough.'), { name: 'enough' })],
    says: 'change "enough", which stopped the run: other hooks cannot overturn that',
    follow: () => agentWith([call, 'done']).run('go'),
  },
  {
    when: 'a hook failed',
    script: [call, 'done'],
    use: [hook('beforeStep', () => assert.fail('boom'), { name: 'broken' })],
    says: 'fix hook "broken", which failed',
    follow: () => agentWith([call, 'done']).run('go'),
  },
  ...(['beforeStep', 'afterInference', 'aroundInference'] as const).map((trigger) => ({
    when: `an error policy stopped because a hook at ${trigger} always fails`,
    script: [call, 'done'],
    use: [
      hook(trigger, (() => assert.fail('boom')) as never, { name: 'broken' }),
      errorPolicy({ maxRetries: 1, backoffMs: 0 }),
    ],
    says: 'fix hook "broken", which failed',
    follow: () => agentWith([call, 'done'], errorPolicy({ maxRetries: 1, backoffMs: 0 })).run('go'),
  })),
  {
    when: 'a guard failed and an observer too',
    script: ['done'],
    use: [
      observe('beforeStep', () => assert.fail('boom'), { name: 'sender' }),
      guard('beforeStep', () => assert.fail('boom'), { name: 'broken' }),
    ],
    says: 'fix guard "broken", which failed',
  },
  ...(['onUserInput', 'afterInference', 'afterStep'] as const).map((trigger) => ({
    when: `a guard at ${trigger} failed`,
    script: ['done'],
    use: [guard(trigger, () => assert.fail('boom'), { name: 'broken' })],
    says: 'fix guard "broken", which failed',
    follow: () => agentWith(['done']).run('go'),
  })),
  {
    when: 'a guard blocked the input',
    script: ['done'],
    use: [guard('onUserInput', (ctx) => (ctx.input.content.length === 1 ? ctx.block('No.') : ctx), { name: 'polite' })],
    says: 'send another input: "polite" blocked this one',
  },
  ...(['onUserInput', 'beforeStep', 'beforeInference'] as const).map((trigger) => {
    const asks = guard(trigger, (ctx) => (ctx as GuardContext<'onUserInput'>).ask('Sure?') as never)
    return {
      when: `a question at ${trigger} was blocked`,
      script: [call, 'done'],
      use: [asks, approval({ answer: () => ({ block: 'No.' }) })],
      says: `use an approver that allows it: approval('suspend'), or approval() with a function`,
      follow: () =>
        agentWith(
          [call, 'done'],
          asks,
          approval(() => 'allow'),
        ).run('go'),
    }
  }),
  {
    when: 'a run of a session whose id has a quote was cancelled',
    script: ['done'],
    options: { signal: AbortSignal.abort(), session: "o'brien" },
    says: `agent.run(input, { session: "o'brien" })`,
    follow: (agent) => agent.run('again', { session: "o'brien" }),
  },
  {
    when: 'an approval is pending',
    script: [call, 'done'],
    use: [guard('beforeToolUse', (ctx) => ctx.ask('Sure?'), { name: 'asks' }), approval('suspend')],
    options: { session: 'one' },
    says: `agent.resume('one', { answers: { 'ID': 'allow' } })`,
    follow: (agent, run) =>
      agent.resume('one', { answers: { [run.status === 'suspended' ? run.pending[0]!.id : '']: 'allow' } }),
  },
]

describe('the advice of explain works in the situation it is given in', () => {
  for (const { when, script, use = [], options, says, follow } of rows) {
    test(`when ${when}, it is ${says ?? 'left out'}`, async () => {
      const agent = agentWith(script, ...use)
      const run = await agent.run('go', options)
      const id = run.status === 'suspended' ? run.pending[0]!.id : undefined
      assert.equal(explanation(run).wayOn?.replace(id ?? '', id === undefined ? '' : 'ID'), says)
      if (follow !== undefined) assert.equal((await follow(agent, run)).status, 'completed')
    })
  }
})

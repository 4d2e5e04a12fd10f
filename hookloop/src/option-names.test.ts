import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { approval } from './capabilities/approval.ts'
import { errorPolicy } from './capabilities/error-policy.ts'
import { guards } from './capabilities/guards.ts'
import { retry } from './capabilities/retry.ts'
import { selfCritique } from './capabilities/self-critique.ts'
import { metadata } from './capabilities/metadata.ts'
import { retryLimit } from './capabilities/retry-limit.ts'
import { skills } from './capabilities/skills/skills.ts'
import { structuredOutput } from './capabilities/structured-output/structured-output.ts'
import { tasks } from './capabilities/tasks/tasks.ts'
import { toolRegistry } from './capabilities/tool-registry/tool-registry.ts'
import { subagents } from './capabilities/subagents/index.ts'
import { createAgent } from './create-agent.ts'
import { AgentError } from './errors.ts'
import { guard, hook, observe } from './hooks/hook.ts'
import { action } from './hooks/action.ts'
import { prompt } from './actions/prompt.ts'
import { subagent } from './actions/subagent.ts'
import { languageModel } from './models/to-model.ts'
import { scriptedModel } from './models/scripted.ts'
import { memoryStore } from './sessions/stores/memory-store.ts'
import { sqliteStore } from './sessions/stores/sqlite-store.ts'
import { noUsage } from './state/usage.ts'
import { fire } from './testing/fire.ts'
import type { Use } from './agent/capability.ts'
import { agentTool } from './agent/agent-tool.ts'
import { tool, type ToolRun } from './agent/tool.ts'
import type { Run } from './agent/run.ts'

// Names that users of other libraries write, and names of earlier versions: the error says what to write here.

const model = scriptedModel(() => 'done')
const agent = createAgent({ model, store: memoryStore() })
type Options = { readonly [name: string]: unknown }
const suspended = await createAgent({
  model: scriptedModel([{ toolCalls: [{ name: 'a' }] }, 'done']),
  use: [approval('suspend'), tool({ name: 'a', description: 'b', input: {}, execute: () => 'ok', ask: true })],
}).run('go')

const functions: { readonly [name: string]: (options: Options) => unknown } = {
  tool: (options) => tool({ name: 'a', description: 'b', input: { type: 'object' }, execute: () => 'ok', ...options }),
  guard: (options) => guard('beforeToolUse', (ctx) => ctx, options as never),
  hook: (options) => hook('beforeToolUse', (ctx) => ctx, options as never),
  observe: (options) => observe('*', () => undefined, options as never),
  action: (options) => action({ kind: 'a', label: 'b', perform: async () => ({}), ...options }),
  createAgent: (options) => createAgent({ model, ...options } as never),
  settings: (options) => createAgent({ model, settings: options }),
  'settings of a subagent': (options) => subagents({ agents: { a: { description: 'b', settings: options } } }),
  'settings of prompt': (options) => prompt({ prompt: 'x', settings: options }),
  'settings of ask': (options) => languageModel(model).ask('x', { settings: options }),
  run: (options) => agent.run('go', options),
  stream: (options) => agent.stream('go', options).run,
  iterate: (options) => agent.iterate('go', options).run,
  resume: (options) => agent.resume(suspended, options),
  resumeStream: (options) => agent.resumeStream(suspended, options).run,
  resumeIterate: (options) => agent.resumeIterate(suspended, options).run,
  'session.send': (options) => agent.session('s').send('go', options),
  'session.stream': (options) => agent.session('s').stream('go', options).run,
  'session.resume': (options) => agent.session('s').resume(options),
  'session.resumeStream': (options) => agent.session('s').resumeStream(options).run,
  approval: (options) => approval({ answer: 'deny', ...options } as never),
  guards: (options) => guards(options),
  retry: (options) => retry(options),
  selfCritique: (options) => selfCritique(options),
  errorPolicy: (options) => errorPolicy(options),
  outputOptions: (options) => createAgent({ model, output: { type: 'object' }, outputOptions: options }),
  structuredOutput: (options) => structuredOutput({ schemas: { a: { type: 'object' } }, ...options }),
  retryLimit: (options) => retryLimit(options),
  tasks: (options) => tasks(options),
  toolRegistry: (options) => toolRegistry({ tools: [], ...options }),
  metadata: (options) => metadata(options),
  skills: (options) => skills(options),
  prompt: (options) => prompt({ prompt: 'x', ...options }),
}

/** Each function, a name that it does not have, and what the error says about it. */
const names: readonly (readonly [name: string, given: string, hint: string])[] = [
  ['tool', 'needsApproval', 'It is called "ask" here.'],
  ['tool', 'requireApproval', 'It is called "ask" here.'],
  ['tool', 'inputSchema', 'It is called "input" here.'],
  ['tool', 'parameters', 'It is called "input" here.'],
  ['tool', 'schema', 'It is called "input" here.'],
  ['tool', 'handler', 'It is called "execute" here.'],
  ['tool', 'timeout', 'It is called "timeoutMs" here.'],
  ['tool', 'excute', 'Did you mean "execute"?'],
  ['guard', 'tools', 'It is called "tool" here.'],
  ['guard', 'toolNames', 'It is called "tool" here.'],
  ['guard', 'toolName', 'It is called "tool" here.'],
  ['guard', 'matcher', 'It is called "tool" here.'],
  ['guard', 'condition', 'It is called "when" here.'],
  ['guard', 'prioritty', 'Did you mean "priority"?'],
  ['hook', 'tools', 'It is called "tool" here.'],
  ['hook', 'onfailure', 'Did you mean "onFailure"?'],
  ['observe', 'tools', 'It is called "tool" here.'],
  ['action', 'handler', 'It is called "perform" here.'],
  ['createAgent', 'tools', 'It is called "use" here.'],
  ['createAgent', 'hooks', 'It is called "use" here.'],
  ['createAgent', 'middleware', 'It is called "use" here.'],
  ['createAgent', 'system', 'It is called "instructions" here.'],
  ['createAgent', 'systemPrompt', 'It is called "instructions" here.'],
  ['createAgent', 'prompt', 'It is called "instructions" here.'],
  ['createAgent', 'outputSchema', 'It is called "output" here.'],
  ['createAgent', 'memory', 'It is called "store" here.'],
  ['createAgent', 'maxSteps', 'Write use: [guards({ maxSteps })] here.'],
  ['createAgent', 'maxTurns', 'Write use: [guards({ maxSteps })] here.'],
  ['createAgent', 'maxRetries', 'Write use: [retry({ maxRetries })] here.'],
  ['createAgent', 'modelSettings', 'It is called "settings" here.'],
  ['createAgent', 'inputGuardrails', 'It is called "use" here.'],
  ['createAgent', 'mcpServers', 'Write use: [mcp({ servers })] here.'],
  ['createAgent', 'temperature', 'Write settings: { temperature } here.'],
  ...['settings', 'settings of a subagent', 'settings of prompt', 'settings of ask'].flatMap((where) => [
    [where, 'maxTokens', 'It is called "maxOutputTokens" here.'] as const,
    [where, 'max_tokens', 'It is called "maxOutputTokens" here.'] as const,
    [where, 'top_p', 'It is called "topP" here.'] as const,
    [where, 'temprature', 'Did you mean "temperature"?'] as const,
    [where, 'reasoningEffort', 'It is called "reasoning" here.'] as const,
  ]),
  ...['run', 'stream', 'iterate', 'resume', 'resumeStream', 'resumeIterate'].map(
    (where) => [where, 'abortSignal', 'It is called "signal" here.'] as const,
  ),
  ...['session.send', 'session.stream', 'session.resume', 'session.resumeStream'].map(
    (where) => [where, 'abortSignal', 'It is called "signal" here.'] as const,
  ),
  ...['run', 'stream', 'iterate'].flatMap((where) => [
    [where, 'sessionId', 'It is called "session" here.'] as const,
    [where, 'threadId', 'It is called "session" here.'] as const,
    [where, 'requestId', 'It is called "turn" here.'] as const,
    [where, 'userId', 'Write metadata: { user } here.'] as const,
    [where, 'context', 'It is called "metadata" here.'] as const,
    [where, 'history', 'It is called "from" here.'] as const,
  ]),
  ...['resume', 'resumeStream', 'resumeIterate', 'session.resume', 'session.resumeStream'].flatMap((where) => [
    [where, 'answer', 'It is called "answers" here.'] as const,
    [where, 'approvals', 'It is called "answers" here.'] as const,
  ]),
  ['approval', 'handler', 'It is called "answer" here.'],
  ['approval', 'expiresIn', 'Did you mean "expiresInMs"?'],
  ['guards', 'maxTurns', 'It is called "maxSteps" here.'],
  ['guards', 'maxIterations', 'It is called "maxSteps" here.'],
  ['guards', 'maxBudgetUsd', 'It is called "maxCost" here.'],
  ['guards', 'timeout', 'It is called "maxTimeMs" here.'],
  ['retry', 'attempts', 'It is called "maxRetries" here.'],
  ['retry', 'tries', 'It is called "maxRetries" here.'],
  ['selfCritique', 'maxRounds', 'It is called "maxRetries" here.'],
  ['errorPolicy', 'maxFailures', 'It is called "maxRetries" here.'],
  ['outputOptions', 'tries', 'It is called "maxRetries" here.'],
  ['structuredOutput', 'tries', 'It is called "maxRetries" here.'],
  ['retryLimit', 'attempts', 'It is called "maxRetries" here.'],
  ['tasks', 'maxItems', 'It is called "maxTasks" here.'],
  ['tasks', 'maxChars', 'It is called "maxTaskChars" here.'],
  ['toolRegistry', 'maxLoaded', 'It is called "maxLoadedTools" here.'],
  ['toolRegistry', 'searchLimit', 'It is called "maxSearchResults" here.'],
  ['metadata', 'maxKeyLength', 'It is called "maxKeyChars" here.'],
  ['skills', 'maxCommandOutput', 'It is called "maxCommandOutputBytes" here.'],
  ['prompt', 'maxEventCharacters', 'It is called "maxEventChars" here.'],
]

suite('an option with the name of another library, of an earlier version or with a typo', () => {
  for (const [name, given, hint] of names) {
    test(`is rejected with what to write instead: ${given} of ${name}`, async () => {
      const thrown = await Promise.resolve()
        .then(() => functions[name]!({ [given]: undefined }))
        .then(
          () => undefined,
          (error: unknown) => error,
        )
      assert.ok(thrown instanceof AgentError)
      assert.ok(thrown.message.includes(`unknown option "${given}". ${hint}`), thrown.message)
    })
  }
})

const never = (): never => assert.fail('it was run')
const folder = mkdtempSync(join(tmpdir(), 'option-names-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const stores = [memoryStore(), sqliteStore(join(folder, 'a.db'))]

/** The error of the only call of a tool, or of a hook before it. */
async function failureOf(...use: readonly Use[]): Promise<never> {
  const calls = scriptedModel([{ toolCalls: [{ name: 'work' }] }, 'done'])
  const run: Run = await createAgent({ model: calls, use }).run('go')
  const [execution] = run.state.execution!.steps.at(0)?.toolExecutions ?? []
  const error = run.ledger.find((entry) => entry.error !== undefined)?.error ?? (execution?.output as string)
  throw new AgentError('HOOK_FAILED', error)
}

const working = (execute: (args: unknown, run: ToolRun) => unknown) =>
  tool({ name: 'work', description: 'Works.', input: {}, execute })
const delegating = (to: object) =>
  agentTool({ name: 'work', description: 'b', input: {}, to: () => ({ name: 'c', to, input: 'x' }) })

const nested: { readonly [what: string]: readonly [call: () => unknown, message: RegExp] } = {
  'usage that a hook reports': [
    () =>
      failureOf(
        working(never),
        hook('beforeToolUse', (ctx) => ctx.spend({ promptTokens: 5 } as never)),
      ),
    /unknown option "promptTokens"\. It is called "inputTokens" here/,
  ],
  'usage that a tool reports': [
    () => failureOf(working((_args, run) => run.spend({ cost: 5 } as never))),
    /spend: unknown option "cost"\. It is called "costUsd" here/,
  ],
  'a price': [
    () => createAgent({ model, prices: { 'a/b': { input: 1, output: 1, cached: 0 } as never } }),
    /prices: "a\/b": unknown option "cached"\. It is called "cachedInput" here/,
  ],
  'a price of long inputs': [
    () => createAgent({ model, prices: { 'a/b': { input: 1, output: 1, above: { inputs: 1 } as never } } }),
    /prices: "a\/b", above: unknown option "inputs"\. Did you mean "input"/,
  ],
  'the tools of a subagent, which would get all tools': [
    () => failureOf(delegating({ tool: ['read_file'] })),
    /subagent "c": unknown option "tool"\. Did you mean "tools"/,
  ],
  'the limits of a subagent': [
    () => failureOf(delegating({ limits: { maxStep: 5 } })),
    /subagent "c": limits: unknown option "maxStep"\. Did you mean "maxSteps"/,
  ],
  'the limits of an agent that judges': [
    () => subagent({ prompt: 'x', definition: { limits: { maxTurns: 5 } as never } }),
    /subagent: limits: unknown option "maxTurns"/,
  ],
  'a turn of a script': [() => scriptedModel([{ txt: 'x' } as never]), /unknown option "txt"\. Did you mean "text"/],
  'a tool call of a script': [
    () => scriptedModel([{ toolCalls: [{ name: 'a', arguments: {} } as never] }]),
    /unknown option "arguments"\. It is called "args" here/,
  ],
  'a turn that a function returns': [
    () => languageModel(scriptedModel(() => ({ txt: 'x' }) as never)).ask('x'),
    /unknown option "txt"/,
  ],
  'a tool call for fire': [
    () =>
      fire(
        guard('beforeToolUse', (ctx) => ctx),
        'beforeToolUse',
        { toolCall: { nme: 'a' } as never },
      ),
    /fire: toolCall: unknown option "nme"\. Did you mean "name"/,
  ],
  'the options of a store': [
    async () => {
      for (const store of stores) {
        await assert.rejects(store.delete('a', { befor: 1 } as never), /delete: unknown option "befor"/)
      }
      throw new AgentError('AGENT_INVALID_OPTION', 'all')
    },
    /all/,
  ],
}

suite('an unknown name in an object inside of the options', () => {
  for (const [what, [call, message]] of Object.entries(nested)) {
    test(`is named in the error: ${what}`, () => assert.rejects(Promise.resolve().then(call), message))
  }
})

test('usage of the AI SDK and of another run can be reported as it is', async () => {
  const used = {
    inputTokens: 7,
    outputTokens: 2,
    totalTokens: 9,
    inputTokenDetails: {},
    outputTokenDetails: {},
    raw: {},
  }
  const others = { ...noUsage, costUsd: 0.5, steps: 3 }
  const reports = working((_args, run) => {
    run.spend(used)
    run.spend(others)
  })
  const turns = scriptedModel([{ toolCalls: [{ name: 'work' }] }, 'done'], { usage: { inputTokens: 0 } })
  const run = await createAgent({ model: turns, use: [reports] }).run('go')
  const { inputTokens, outputTokens, costUsd, steps } = run.state.usage
  assert.deepEqual([inputTokens, outputTokens, costUsd, steps], [7, 12, 0.5, 2])
})

test('settings that a hook adds to a request, or to a call of its own, are checked as well', async () => {
  for (const add of [
    hook('beforeInference', (ctx) => ctx.withRequest({ settings: { maxTokens: 1 } as never })),
    hook('beforeStep', async (ctx) => {
      await ctx.infer({ prompt: 'x', settings: { maxTokens: 1 } as never })
      return ctx
    }),
    hook('aroundInference', (_ctx, next) => next({ settings: { maxTokens: 1 } as never })),
  ]) {
    const run: Run = await createAgent({ model, use: [add] }).run('go')
    assert.ok(run.status === 'failed' && run.error.message.includes('It is called "maxOutputTokens" here.'))
  }
})

test('settings of the wrong type are rejected when the agent is created', () => {
  for (const settings of [
    { temperature: 'warm' },
    { maxOutputTokens: 0 },
    { stopSequences: '.' },
    { reasoning: 'hardly' },
    { cachePrompt: 1 },
    { providerOptions: [] },
  ]) {
    assert.throws(() => createAgent({ model, settings: settings as never }), {
      code: 'AGENT_INVALID_OPTION',
      message: /^createAgent, settings: "\w+" must be .+, not /,
    })
  }
})

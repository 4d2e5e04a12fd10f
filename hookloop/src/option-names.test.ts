import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { agentTool } from './core/agent/agent-tool.ts'
import type { Use } from './core/agent/capability.ts'
import type { Run } from './core/agent/run.ts'
import { tool, type ToolRun } from './core/agent/tool.ts'
import { approval } from './capabilities/approval.ts'
import { subagent } from './actions/subagent.ts'
import { createAgent } from './create-agent.ts'
import { AgentError } from './errors.ts'
import { guard, hook } from './core/hooks/hook.ts'
import { scriptedModel } from './models/scripted.ts'
import { languageModel } from './models/to-model.ts'
import { memoryStore } from './sessions/stores/memory-store.ts'
import { sqliteStore } from './sessions/stores/sqlite-store.ts'
import { noUsage } from './core/state/usage.ts'
import { fire } from './testing/fire.ts'

// Every public function that takes options rejects a name that is not an option, and says what to write instead. An unknown
// option would silently not apply.

const folder = mkdtempSync(join(tmpdir(), 'option-names-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const model = scriptedModel(() => 'done')
const store = memoryStore()
const agent = createAgent({ model, store })
await agent.run('go', { session: 'known' })
const suspended = await createAgent({
  model: scriptedModel([{ toolCalls: [{ name: 'a' }] }, 'done']),
  use: [approval('suspend'), tool({ name: 'a', description: 'b', input: {}, execute: () => 'ok', ask: true })],
}).run('go')
const judge = guard('beforeToolUse', (ctx) => ctx, { name: 'judge' })
const work = tool({ name: 'work', description: 'Works.', input: { type: 'object' }, execute: () => 'ok' })
const definition = { name: 'helper', description: 'Helps.', instructions: 'Help.' }
const schema = { type: 'object' }

/** Where the options of a function are, and its arguments. */
type Row = readonly [index: number, ...args: readonly unknown[]]

const rows: { readonly [name: string]: Row } = {
  '. agentTool': [0, { name: 'a', description: 'b', input: schema, to: () => undefined }],
  '. approval': [0, { answer: 'block' }],
  '. cacheResponses': [0, {}],
  '. contextConfig': [0, {}],
  '. createAgent': [0, { model }],
  '. errorPolicy': [0, {}],
  '. fallback': [1, [model], {}],
  '. guard': [2, 'beforeToolUse', (ctx: unknown) => ctx, {}],
  '. guards': [0, {}],
  '. hook': [2, 'beforeToolUse', (ctx: unknown) => ctx, {}],
  '. languageModel': [1, model, {}],
  '. metadata': [0, {}],
  '. observe': [2, '*', () => undefined, {}],
  '. redactSecrets': [0, {}],
  '. responseContent': [1, () => undefined, {}],
  '. retry': [0, {}],
  '. retryLimit': [0, {}],
  '. selfCritique': [0, {}],
  '. shadow': [1, judge, {}],
  '. tool': [0, { name: 'a', description: 'b', input: schema, execute: () => 'ok' }],
  './testing fakeClock': [0, {}],
  './testing fire': [2, judge, 'beforeToolUse', {}],
  './testing scriptedModel': [1, ['a'], {}],
  './testing storeContract': [2, 'x', () => store, {}],
  './tracing tracing': [0, {}],
  './tracing workerMetrics': [0, {}],
  './bash bash': [0, {}],
  './files files': [0, { root: folder }],
  './mcp mcp': [0, { servers: {} }],
  './skills findSkills': [0, {}],
  './skills skills': [0, {}],
  './structured-output structuredOutput': [0, { schemas: { a: schema } }],
  './subagents agentDefinitions': [0, {}],
  './subagents defineAgent': [0, definition],
  './subagents subagents': [0, { agents: { helper: definition } }],
  './summarization summarization': [0, {}],
  './tasks tasks': [0, {}],
  './tool-registry toolRegistry': [0, { tools: [work] }],
  './actions action': [0, { kind: 'a', label: 'b', perform: async () => ({}) }],
  './actions http': [0, { url: 'https://a.example' }],
  './actions prompt': [0, { prompt: 'Is it?' }],
  './actions shell': [0, { command: 'true' }],
  './actions subagent': [0, { prompt: 'Is it?', definition: {} }],
  './hook-files claudeCommands': [0, { dir: folder }],
  './hook-files claudeHooks': [0, { dir: folder }],
  './hook-files projectHooks': [0, { dir: folder }],
  './sessions answerApproval': [1, store, { session: 'known', approval: 'x', answer: 'allow' }],
  './sessions budget': [0, { store, maxCost: 1 }],
  './sessions callLimit': [0, { store, maxCalls: 1 }],
  './sessions forkSession': [2, store, 'known', { as: 'fork' }],
  './sessions rateLimit': [0, { store }],
  './sessions requestStop': [1, store, { session: 'known' }],
  './sessions pruneSessions': [1, store, { olderThan: 0 }],
  './sessions watchSession': [2, store, 'known', {}],
  './sessions rewindSession': [2, store, 'known', {}],
  './sessions runLimit': [0, { store, maxRuns: 1 }],
  './serve serve': [1, agent, { store, user: () => 'ann' }],
  './restate fleet': [0, { ingress: 'http://127.0.0.1:1', store }],
  './restate serveSessions': [0, { agent, port: 0, host: '127.0.0.1' }],
  './restate workerHealth': [1, Promise.resolve(), {}],
  './pg-workers fleet': [0, { connectionString: 'no database', store }],
  './pg-workers serveSessions': [0, { agent, connectionString: 'no database' }],
  './pg-workers workerHealth': [1, Promise.resolve(), {}],
  './replay liveEffects': [0, {}],
}

/** The public functions that take no options, or options without a list of their own. */
const without = [
  '. AgentError all any completion explain explanation getCritique getMetadata getModelFailure hasMetadata not stepType toolName',
  './testing recordEvents',
  './skills getActiveSkills',
  './structured-output getOutputs',
  './subagents fromAgentMarkdown readAgents toAgentMarkdown',
  './tasks getEventTasks getTasks renderTasks withTasks',
  './tool-registry getLoadedTools',
  './actions contextMessage',
  './hook-files TrustStore hookFileSchema hookFilesOf',
  './sessions exportSession importSession listApprovals listPoints memoryStore postgresStore readRuns sqliteStore',
  './serve agentRunner toNodeListener',
  './replay diffRuns formatDiff formatReplay replay',
].flatMap((line) => {
  const [entry, ...names] = line.split(' ')
  return names.map((name) => `${entry} ${name}`)
})

const { exports: entries } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  readonly exports: { readonly [entry: string]: { readonly 'hookloop-source'?: string } | string }
}
type Call = (...args: readonly unknown[]) => unknown
const publicFunctions = new Map<string, Call>()
for (const [entry, target] of Object.entries(entries)) {
  const source = typeof target === 'string' ? undefined : target['hookloop-source']
  if (source === undefined || entry === './plugin') continue // for authors of capabilities, whose own options are checked
  const exported = (await import(new URL(`../${source}`, import.meta.url).href)) as { readonly [name: string]: unknown }
  for (const [name, value] of Object.entries(exported)) {
    if (typeof value === 'function') publicFunctions.set(`${entry} ${name}`, value as Call)
  }
}

test('every public function has a row', () => {
  assert.deepEqual([...publicFunctions.keys()].toSorted(), [...Object.keys(rows), ...without].toSorted())
})

type Options = { readonly [name: string]: unknown }
const session = agent.session('known')
const calls: { readonly [name: string]: (options: Options) => unknown } = {
  ...Object.fromEntries(
    Object.entries(rows).map(([name, [index, ...args]]) => {
      const call = (options: Options): unknown =>
        publicFunctions.get(name)!(...args.with(index, { ...(args[index] as object), ...options }))
      return [name, call]
    }),
  ),
  settings: (options) => createAgent({ model, settings: options }),
  'settings of ask': (options) => languageModel(model).ask('x', { settings: options }),
  outputOptions: (options) => createAgent({ model, output: schema, outputOptions: options }),
  'agent.run': (options) => agent.run('go', options),
  'agent.stream': (options) => agent.stream('go', options).run,
  'agent.iterate': (options) => agent.iterate('go', options).run,
  'agent.resume': (options) => agent.resume(suspended, options),
  'agent.resumeStream': (options) => agent.resumeStream(suspended, options).run,
  'agent.resumeIterate': (options) => agent.resumeIterate(suspended, options).run,
  'session.send': (options) => session.send('go', options),
  'session.stream': (options) => session.stream('go', options).run,
  'session.resume': (options) => session.resume(options),
  'session.resumeStream': (options) => session.resumeStream(options).run,
  'session.fork': (options) => session.fork(options),
  'session.rewind': (options) => session.rewind(options),
  'session.stop': (options) => session.stop(options),
}

async function rejects(name: string, given: string, hint: string): Promise<void> {
  const thrown = await Promise.resolve()
    .then(() => calls[name]!({ [given]: undefined }))
    .then(
      () => undefined,
      (error: unknown) => error,
    )
  assert.ok(thrown instanceof AgentError, `${name} accepts "${given}"`)
  assert.ok(thrown.message.includes(`unknown option "${given}". ${hint}`), thrown.message)
}

for (const name of Object.keys(calls)) {
  test(`${name} rejects an option that does not exist`, () => rejects(name, 'doesNotExist', ''))
}

/** Names of other libraries and typos, and what the error says. */
const hints: readonly (readonly [name: string, given: string, hint: string])[] = [
  ['. tool', 'needsApproval', 'It is called "ask" here.'],
  ['. tool', 'requireApproval', 'It is called "ask" here.'],
  ['. tool', 'inputSchema', 'It is called "input" here.'],
  ['. tool', 'parameters', 'It is called "input" here.'],
  ['. tool', 'schema', 'It is called "input" here.'],
  ['. tool', 'handler', 'It is called "execute" here.'],
  ['. tool', 'timeout', 'It is called "timeoutMs" here.'],
  ['. tool', 'excute', 'Did you mean "execute"?'],
  ['. guard', 'tools', 'It is called "tool" here.'],
  ['. guard', 'toolNames', 'It is called "tool" here.'],
  ['. guard', 'toolName', 'It is called "tool" here.'],
  ['. guard', 'matcher', 'It is called "tool" here.'],
  ['. guard', 'condition', 'It is called "when" here.'],
  ['. guard', 'prioritty', 'Did you mean "priority"?'],
  ['. hook', 'tools', 'It is called "tool" here.'],
  ['. hook', 'onfailure', 'Did you mean "onFailure"?'],
  ['. observe', 'tools', 'It is called "tool" here.'],
  ['./actions action', 'handler', 'It is called "perform" here.'],
  ['. createAgent', 'tools', 'It is called "use" here.'],
  ['. createAgent', 'hooks', 'It is called "use" here.'],
  ['. createAgent', 'middleware', 'It is called "use" here.'],
  ['. createAgent', 'system', 'It is called "instructions" here.'],
  ['. createAgent', 'systemPrompt', 'It is called "instructions" here.'],
  ['. createAgent', 'prompt', 'It is called "instructions" here.'],
  ['. createAgent', 'outputSchema', 'It is called "output" here.'],
  ['. createAgent', 'memory', 'It is called "store" here.'],
  ['. createAgent', 'maxSteps', 'Write use: [guards({ maxSteps })] here.'],
  ['. createAgent', 'maxTurns', 'Write use: [guards({ maxSteps })] here.'],
  ['. createAgent', 'maxRetries', 'Write use: [retry({ maxRetries })] here.'],
  ['. createAgent', 'modelSettings', 'It is called "settings" here.'],
  ['. createAgent', 'inputGuardrails', 'It is called "use" here.'],
  ['. createAgent', 'mcpServers', 'Write use: [mcp({ servers })] here.'],
  ['. createAgent', 'temperature', 'Write settings: { temperature } here.'],
  ['. approval', 'handler', 'It is called "answer" here.'],
  ['. approval', 'expiresIn', 'Did you mean "expiresInMs"?'],
  ['. guards', 'maxTurns', 'It is called "maxSteps" here.'],
  ['. guards', 'maxIterations', 'It is called "maxSteps" here.'],
  ['. guards', 'maxBudgetUsd', 'It is called "maxCost" here.'],
  ['. guards', 'timeout', 'It is called "maxTimeMs" here.'],
  ['. retry', 'attempts', 'It is called "maxRetries" here.'],
  ['. retry', 'tries', 'It is called "maxRetries" here.'],
  ['. selfCritique', 'maxRounds', 'It is called "maxRetries" here.'],
  ['. errorPolicy', 'maxFailures', 'It is called "maxRetries" here.'],
  ['outputOptions', 'tries', 'It is called "maxRetries" here.'],
  ['./structured-output structuredOutput', 'tries', 'It is called "maxRetries" here.'],
  ['. retryLimit', 'attempts', 'It is called "maxRetries" here.'],
  ['./tasks tasks', 'maxItems', 'It is called "maxTasks" here.'],
  ['./tasks tasks', 'maxChars', 'It is called "maxTaskChars" here.'],
  ['./tool-registry toolRegistry', 'maxLoaded', 'It is called "maxLoadedTools" here.'],
  ['./tool-registry toolRegistry', 'searchLimit', 'It is called "maxSearchResults" here.'],
  ['. metadata', 'maxKeyLength', 'It is called "maxKeyChars" here.'],
  ['./skills skills', 'maxCommandOutput', 'It is called "maxCommandOutputBytes" here.'],
  ['./actions prompt', 'maxEventCharacters', 'It is called "maxEventChars" here.'],
  ['settings', 'max_tokens', 'It is called "maxOutputTokens" here.'],
  ['settings of ask', 'temprature', 'Did you mean "temperature"?'],
  ['agent.run', 'abortSignal', 'It is called "signal" here.'],
  ['agent.run', 'threadId', 'It is called "session" here.'],
  ['agent.run', 'requestId', 'It is called "turn" here.'],
  ['agent.run', 'userId', 'Write metadata: { user } here.'],
  ['agent.run', 'context', 'It is called "metadata" here.'],
  ['agent.run', 'history', 'It is called "from" here.'],
  ['agent.resume', 'answer', 'It is called "answers" here.'],
  ['session.resume', 'approvals', 'It is called "answers" here.'],
]

for (const [name, given, hint] of hints) {
  test(`${name} says what to write instead of ${given}`, () => rejects(name, given, hint))
}

const never = (): never => assert.fail('it was run')
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

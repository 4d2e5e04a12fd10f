import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { createAgent } from './create-agent.ts'
import { AgentError } from './errors.ts'
import { guard } from './hooks/hook.ts'
import { scriptedModel } from './models/scripted.ts'
import { replay } from './sessions/replay/replay.ts'
import { diffRuns } from './sessions/replay/diff-runs.ts'
import { memoryStore } from './sessions/stores/memory-store.ts'
import { tool } from './agent/tool.ts'

// Every public function that takes options: one that does not exist is an AgentError with a clear message. A function
// without a row fails the first test.

type Row = {
  readonly args: readonly unknown[]
  /** The index of the argument with options, and the options. */
  readonly options?: readonly [index: number, ...names: string[]]
}

const folder = mkdtempSync(join(tmpdir(), 'arguments-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const model = scriptedModel(() => 'done')
const store = memoryStore()
const agent = createAgent({ model, store })
const run = await agent.run('go', { session: 'known' })
const { state } = run
const work = tool({ name: 'work', description: 'Works.', input: { type: 'object' }, execute: () => 'ok' })
const judge = guard('beforeToolUse', (ctx) => ctx, { name: 'judge' })
const stored = (await store.read('known'))!
const report = await replay(stored, { agent, hooks: [judge] })
const definition = { name: 'helper', description: 'Helps.', instructions: 'Help.' }
const schema = { type: 'object' }

const workerHealth: Row = { args: [Promise.resolve(), {}], options: [1, 'onError'] }

const rows: { readonly [entry: string]: { readonly [name: string]: Row } } = {
  '.': {
    AgentError: { args: ['HOOK_FAILED', 'x', {}] },
    agentTool: {
      args: [{ name: 'a', description: 'b', input: schema, to: () => undefined }],
      options: [0, 'description', 'concurrent', 'maxOutputChars'],
    },
    all: { args: [() => true] },
    any: { args: [() => true] },
    approval: { args: [{ answer: 'deny' }], options: [0, 'answer', 'tools', 'expiresInMs'] },
    cacheResponses: { args: [{}], options: [0, 'ttlMs', 'store'] },
    completion: { args: [] },
    contextConfig: { args: [{}], options: [0, 'systemPrompt', 'responseFormat'] },
    createAgent: { args: [{ model }], options: [0, 'model', 'instructions', 'settings', 'store', 'outputOptions'] },
    errorPolicy: { args: [{}], options: [0, 'backoffMs', 'onError'] },
    explain: { args: [run, {}] },
    explanation: { args: [run] },
    fallback: { args: [[model], {}], options: [1, 'on'] },
    getCritique: { args: [state] },
    getMetadata: { args: [state] },
    getModelFailure: { args: [new Error('x')] },
    guard: {
      args: ['beforeToolUse', (ctx: unknown) => ctx, {}],
      options: [2, 'priority', 'timeoutMs', 'when', 'tool', 'effect'],
    },
    guards: { args: [{}], options: [0, 'maxSteps', 'maxTokens', 'finishReasons'] },
    hasMetadata: { args: ['key', 'value'] },
    hook: {
      args: ['beforeToolUse', (ctx: unknown) => ctx, {}],
      options: [2, 'priority', 'timeoutMs', 'onFailure', 'stream'],
    },
    languageModel: { args: [model, {}], options: [1, 'prices'] },
    metadata: { args: [{}], options: [0, 'maxKeyChars'] },
    not: { args: [() => true] },
    observe: {
      args: ['*', () => undefined, {}],
      options: [2, 'priority', 'timeoutMs'],
    },
    redactSecrets: { args: [{}], options: [0, 'also'] },
    responseContent: { args: [() => undefined, {}], options: [1, 'name'] },
    retry: { args: [{}], options: [0, 'maxRetries', 'backoffMs'] },
    retryLimit: { args: [{}], options: [0, 'maxRetries'] },
    selfCritique: { args: [{}], options: [0, 'instructions', 'onFailure'] },
    shadow: { args: [judge, {}], options: [1, 'name'] },
    stepType: { args: ['error'] },
    tool: {
      args: [{ name: 'a', description: 'b', input: schema, execute: () => 'ok' }],
      options: [0, 'name', 'description', 'concurrent', 'idempotent', 'timeoutMs', 'maxOutputChars'],
    },
    toolName: { args: ['bash'] },
  },
  './testing': {
    fakeClock: { args: [{}], options: [0, 'startAt', 'auto'] },
    fire: {
      args: [judge, 'beforeToolUse', {}],
      options: [2, 'toolCall', 'metadata'],
    },
    recordEvents: { args: [agent] },
    scriptedModel: { args: [['a'], {}], options: [1, 'modelId', 'usage'] },
    storeContract: {
      args: ['x', () => store, {}],
      options: [2, 'leaseMs'],
    },
  },
  './tracing': {
    tracing: { args: [{}], options: [0, 'tracer'] },
    workerMetrics: { args: [{}], options: [0, 'meter', 'store'] },
  },
  './bash': { bash: { args: [{}], options: [0, 'allow', 'sandbox', 'timeoutMs'] } },
  './files': { files: { args: [{ root: folder }], options: [0, 'root', 'write', 'maxLines'] } },
  './mcp': { mcp: { args: [{ servers: {} }], options: [0, 'servers'] } },
  './skills': {
    findSkills: { args: [{}], options: [0, 'maxCommandOutputBytes'] },
    getActiveSkills: { args: [state] },
    skills: { args: [{}], options: [0, 'maxCommandOutputBytes'] },
  },
  './structured-output': {
    getOutputs: { args: [state, {}] },
    structuredOutput: { args: [{ schemas: { a: schema } }], options: [0, 'schemas', 'maxRetries'] },
  },
  './subagents': {
    agentDefinitions: { args: [{}], options: [0, 'folders', 'writeTo'] },
    defineAgent: { args: [definition], options: [0, 'instructions', 'disallowedTools'] },
    fromAgentMarkdown: { args: ['---\nname: a\ndescription: b\n---\nc', 'a'] },
    readAgents: { args: [folder] },
    subagents: { args: [{ agents: { helper: definition } }], options: [0, 'agents', 'maxDepth'] },
    toAgentMarkdown: { args: [definition] },
  },
  './summarization': { summarization: { args: [{}], options: [0, 'maxSummaryTokens'] } },
  './tasks': {
    getEventTasks: { args: [{ type: 'started' }] },
    getTasks: { args: [state] },
    renderTasks: { args: [state, 'text'] },
    tasks: { args: [{}], options: [0, 'maxTasks', 'reminderEverySteps'] },
    withTasks: { args: [state, []] },
  },
  './tool-registry': {
    getLoadedTools: { args: [state] },
    toolRegistry: { args: [{ tools: [work] }], options: [0, 'tools', 'always'] },
  },
  './actions': {
    action: {
      args: [{ kind: 'a', label: 'b', perform: async () => ({}) }],
      options: [0, 'label', 'perform', 'timeoutMs'],
    },
    contextMessage: { args: ['text', 'by'] },
    http: { args: [{ url: 'https://a.example' }], options: [0, 'headers', 'maxOutputBytes'] },
    prompt: { args: [{ prompt: 'Is it?' }], options: [0, 'prompt', 'conversation'] },
    shell: { args: [{ command: 'true' }], options: [0, 'command', 'passEnv'] },
    subagent: { args: [{ prompt: 'Is it?', definition: {} }], options: [0, 'definition', 'maxEventChars'] },
  },
  './hook-files': {
    TrustStore: { args: [join(folder, 'trust.json')] },
    claudeCommands: { args: [{ dir: folder }], options: [0, 'home'] },
    claudeHooks: { args: [{ dir: folder }], options: [0, 'home'] },
    hookFileSchema: { args: [] },
    hookFilesOf: { args: [folder] },
    projectHooks: { args: [{ dir: folder }], options: [0, 'untrusted', 'allow'] },
  },
  './stores': {
    answerApproval: {
      args: [store, { session: 'known', approval: 'x', answer: 'allow' }],
      options: [1, 'session', 'answer'],
    },
    budget: { args: [{ store, maxCost: 1 }], options: [0, 'store', 'maxCost', 'perMs', 'name'] },
    callLimit: { args: [{ store, maxCalls: 1 }], options: [0, 'store', 'maxCalls', 'maxWaitMs', 'leaseMs', 'name'] },
    exportSession: { args: [store, 'known', {}] },
    forkSession: { args: [store, 'known', { as: 'fork' }], options: [2, 'message'] },
    importSession: { args: [store, '', {}] },
    listApprovals: { args: [store] },
    listPoints: { args: [store, 'known'] },
    memoryStore: { args: [] },
    postgresStore: {
      args: [{ query: () => undefined, connect: () => undefined }, {}],
    },
    rateLimit: { args: [{ store }], options: [0, 'store', 'maxRequestsPerMinute', 'maxWaitMs', 'name'] },
    readRuns: { args: [store, 'known', {}] },
    requestStop: { args: [store, { session: 'known' }], options: [1, 'session', 'by', 'reason'] },
    pruneSessions: { args: [store, { olderThan: 0 }], options: [1, 'olderThan', 'status', 'agent', 'user'] },
    watchSession: {
      args: [store, 'known', {}],
      options: [2, 'after', 'follow', 'signal'],
    },
    rewindSession: { args: [store, 'known', {}], options: [2, 'message'] },
    runLimit: { args: [{ store, maxRuns: 1 }], options: [0, 'store', 'maxRuns', 'maxWaitMs', 'leaseMs', 'name'] },
    sqliteStore: { args: [join(folder, 'a.db'), {}] },
  },
  './serve': {
    agentRunner: { args: [agent, store] },
    serve: {
      args: [agent, { store, user: () => 'ann' }],
      options: [1, 'user', 'store', 'approvers', 'metadata', 'path', 'onNewInput', 'showHooks', 'maxBodyBytes'],
    },
    toNodeListener: { args: [() => new Response()] },
  },
  './restate': {
    workerHealth,
    fleet: { args: [{ ingress: 'http://127.0.0.1:1', store }], options: [0, 'ingress', 'store', 'agent', 'headers'] },
    serveSessions: {
      args: [{ agent, port: 0, host: '127.0.0.1' }],
      options: [0, 'agent', 'agents', 'onTurn', 'port', 'host', 'admin', 'address', 'service'],
    },
  },
  './pg-workers': {
    workerHealth,
    fleet: {
      args: [{ connectionString: 'no database', store }],
      options: [0, 'connectionString', 'schema', 'store', 'agent'],
    },
    serveSessions: {
      args: [{ agent, connectionString: 'no database' }],
      options: [0, 'agent', 'agents', 'onTurn', 'connectionString', 'schema', 'maxRuns'],
    },
  },
  './replay': {
    diffRuns: { args: [run, run] },
    formatDiff: { args: [diffRuns(run, run)] },
    formatReplay: { args: [report] },
    liveEffects: { args: [{}], options: [0, 'clock'] },
    replay: { args: [stored, { agent }] },
  },
}

const { exports: entries } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  readonly exports: { readonly [entry: string]: { readonly 'hookloop-source'?: string } | string }
}

type Call = (...args: readonly unknown[]) => unknown
const functions = new Map<string, { readonly call: Call; readonly row: Row | undefined }>()
for (const [entry, target] of Object.entries(entries)) {
  const source = typeof target === 'string' ? undefined : target['hookloop-source']
  if (source === undefined) continue
  const exported = (await import(new URL(`../${source}`, import.meta.url).href)) as { readonly [name: string]: unknown }
  for (const [name, value] of Object.entries(exported)) {
    if (typeof value !== 'function') continue
    const call: Call = /^[A-Z]/.test(name)
      ? (...args) => Reflect.construct(value, args) as unknown
      : (...args) => (value as Call)(...args)
    functions.set(`${entry} ${name}`, { call, row: rows[entry]?.[name] })
  }
}

const inSession =
  (method: 'resume' | 'rewind' | 'stop' | 'changeModel' | 'changeSystemPrompt'): Call =>
  (...args) =>
    (agent.session('methods')[method] as Call)(...args)

/** Methods take arguments as well. */
const methods: { readonly [name: string]: readonly [Call, Row] } = {
  'agent.run': [
    (...args) => (agent.run as Call)(...args),
    {
      args: ['go', {}],
      options: [1, 'signal', 'metadata', 'session', 'deltas'],
    },
  ],
  'agent.stream': [
    (...args) => (agent.stream as (...a: unknown[]) => { run: unknown })(...args).run,
    { args: ['go', {}], options: [1, 'signal', 'metadata'] },
  ],
  'agent.iterate': [
    (...args) => (agent.iterate as (...a: unknown[]) => { run: unknown })(...args).run,
    { args: ['go', {}], options: [1, 'signal', 'metadata'] },
  ],
  'agent.resume': [
    (...args) => (agent.resume as Call)(...args),
    { args: [run, {}], options: [1, 'signal', 'answers', 'acceptMissing'] },
  ],
  'agent.resumeStream': [
    (...args) => (agent.resumeStream as (...a: unknown[]) => { run: unknown })(...args).run,
    { args: [run, {}], options: [1, 'signal', 'answers'] },
  ],
  'agent.with': [(...args) => (agent.with as Call)(...args), { args: [work] }],
  'agent.session': [(...args) => (agent.session as Call)(...args), { args: ['a'] }],
  'session.send': [
    (...args) => (agent.session('methods').send as Call)(...args),
    { args: ['go', {}], options: [1, 'signal', 'metadata', 'deltas'] },
  ],
  'session.stream': [
    (...args) => (agent.session('methods').stream as (...a: unknown[]) => { run: unknown })(...args).run,
    { args: ['go', {}], options: [1, 'signal', 'metadata', 'deltas'] },
  ],
  'session.resume': [inSession('resume'), { args: [{}], options: [0, 'signal', 'answers'] }],
  'session.fork': [
    (...args) => (agent.session('known').fork as Call)(...args),
    { args: [{}], options: [0, 'message'] },
  ],
  'session.rewind': [inSession('rewind'), { args: [{}], options: [0, 'at', 'message'] }],
  'session.stop': [inSession('stop'), { args: [{}], options: [0, 'by', 'reason'] }],
  'session.changeModel': [inSession('changeModel'), { args: ['ollama/llama3'] }],
  'session.changeSystemPrompt': [inSession('changeSystemPrompt'), { args: ['x'] }],
}
for (const [name, [call, row]] of Object.entries(methods)) functions.set(name, { call, row })

async function outcomeOf(call: Call, args: readonly unknown[]): Promise<unknown> {
  try {
    await call(...args)
    return undefined
  } catch (thrown) {
    return thrown
  }
}

function show(thrown: unknown): string {
  return thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown)
}

test('every public function has a row', () => {
  const missing = [...functions].filter(([, { row }]) => row === undefined).map(([name]) => name)
  assert.deepEqual(missing, [])
})

suite('a public function that gets an option that does not exist names the right one', () => {
  for (const [name, { call, row }] of functions) {
    if (row?.options === undefined) continue
    const [index, ...names] = row.options
    test(name, async () => {
      const withOption = (option: string): readonly unknown[] =>
        row.args.with(index, { ...(row.args[index] as object), [option]: undefined })
      const problems: string[] = []
      const unknown = await outcomeOf(call, withOption('doesNotExist'))
      if (!(unknown instanceof AgentError && /unknown option "doesNotExist"/.test(unknown.message)))
        problems.push(`doesNotExist: ${show(unknown)}`)
      for (const option of names) {
        const typo = option.length < 4 ? `${option}s` : option.slice(0, 1) + option.slice(2)
        const thrown = await outcomeOf(call, withOption(typo))
        if (thrown instanceof AgentError && thrown.message.includes(`Did you mean "${option}"?`)) continue
        problems.push(`${typo}: ${show(thrown)}`)
      }
      assert.deepEqual(problems, [])
    })
  }
})

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { createAgent } from './create-agent.ts'
import { AgentError } from './errors.ts'
import { guard } from './hooks/hook.ts'
import { scriptedModel } from './models/scripted.ts'
import { memoryStore } from './sessions/stores/memory-store.ts'
import { tool } from './agent/tool.ts'

// Every public function, with arguments of every kind: a wrong one is an AgentError with a clear message, and so is an
// option that does not exist. A function without a row fails the first test.

/** Values of every kind, by name. */
const kinds: { readonly [kind: string]: unknown } = {
  undefined: undefined,
  null: null,
  string: 'text',
  number: 5,
  boolean: true,
  list: [1],
  function: () => undefined,
  object: {},
  symbol: Symbol('x'),
}

type Row = {
  readonly args: readonly unknown[]
  /** For each argument, the kinds that it may have; other kinds must be rejected. */
  readonly accepts?: readonly string[]
  /** The kinds that are not tried. */
  readonly skips?: readonly string[]
  /** The index of the argument with options, and the options. */
  readonly options?: readonly [index: number, ...names: string[]]
}

/** Functions whose arguments only TypeScript checks. */
const unchecked = /^\.\/replay (replay|diffRuns|formatDiff|formatReplay)$/

const folder = mkdtempSync(join(tmpdir(), 'arguments-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const model = scriptedModel(() => 'done')
const store = memoryStore()
const agent = createAgent({ model, store })
const run = await agent.run('go', { session: 'known' })
const { state } = run
const work = tool({ name: 'work', description: 'Works.', input: { type: 'object' }, execute: () => 'ok' })
const judge = guard('beforeToolUse', (ctx) => ctx, { name: 'judge' })
const definition = { name: 'helper', description: 'Helps.', instructions: 'Help.' }
const any = Object.keys(kinds).join(' ')
const schema = { type: 'object' }
const thirdOptional = ['', '', 'undefined object']

const workerHealth: Row = { args: [Promise.resolve(), {}], accepts: ['', 'undefined object'], options: [1, 'onError'] }

const rows: { readonly [entry: string]: { readonly [name: string]: Row } } = {
  '.': {
    AgentError: { args: ['HOOK_FAILED', 'x', {}], accepts: [any, any, any] },
    agentTool: {
      args: [{ name: 'a', description: 'b', input: schema, to: () => undefined }],
      options: [0, 'description', 'concurrent', 'maxOutputChars'],
    },
    all: { args: [() => true], accepts: ['function'] },
    any: { args: [() => true], accepts: ['function'] },
    approval: { args: [{ answer: 'deny' }], accepts: ['function'], options: [0, 'answer', 'tools', 'expiresInMs'] },
    cacheResponses: { args: [{}], accepts: ['undefined object'], options: [0, 'ttlMs', 'store'] },
    completion: { args: [] },
    contextConfig: { args: [{}], accepts: ['object'], options: [0, 'systemPrompt', 'responseFormat'] },
    createAgent: { args: [{ model }], options: [0, 'model', 'instructions', 'settings', 'store', 'outputOptions'] },
    errorPolicy: { args: [{}], accepts: ['undefined object'], options: [0, 'backoffMs', 'onError'] },
    explain: { args: [run, {}], accepts: ['', 'undefined object'], options: [1, 'verbose'] },
    explanation: { args: [run] },
    fallback: { args: [[model], {}], accepts: ['', 'undefined object'], options: [1, 'on'] },
    getCritique: { args: [state] },
    getMetadata: { args: [state] },
    getModelFailure: { args: [new Error('x')], accepts: [any] },
    guard: {
      args: ['beforeToolUse', (ctx: unknown) => ctx, {}],
      accepts: ['', 'function', 'undefined object'],
      options: [2, 'priority', 'timeoutMs', 'when', 'tool', 'effect'],
    },
    guards: { args: [{}], accepts: ['undefined object'], options: [0, 'maxSteps', 'maxTokens', 'finishReasons'] },
    hasMetadata: { args: ['key', 'value'], accepts: ['string', 'undefined null string number boolean list object'] },
    hook: {
      args: ['beforeToolUse', (ctx: unknown) => ctx, {}],
      accepts: ['', 'function', 'undefined object'],
      options: [2, 'priority', 'timeoutMs', 'onFailure', 'stream'],
    },
    languageModel: { args: [model, {}], accepts: ['', 'undefined object'], options: [1, 'prices'] },
    metadata: { args: [{}], accepts: ['undefined object'], options: [0, 'maxKeyChars'] },
    not: { args: [() => true], accepts: ['function'] },
    observe: {
      args: ['*', () => undefined, {}],
      accepts: ['', 'function', 'undefined object'],
      options: [2, 'priority', 'timeoutMs'],
    },
    redactSecrets: { args: [{}], accepts: ['undefined object'], options: [0, 'also'] },
    responseContent: { args: [() => undefined, {}], accepts: ['function', 'undefined object'], options: [1, 'name'] },
    retry: { args: [{}], accepts: ['undefined object'], options: [0, 'maxRetries', 'backoffMs'] },
    retryLimit: { args: [{}], accepts: ['undefined object'], options: [0, 'maxRetries'] },
    selfCritique: { args: [{}], accepts: ['undefined object'], options: [0, 'instructions', 'onFailure'] },
    shadow: { args: [judge, {}], accepts: ['', 'undefined object'], options: [1, 'name'] },
    stepType: { args: ['error'] },
    tool: {
      args: [{ name: 'a', description: 'b', input: schema, execute: () => 'ok' }],
      options: [0, 'name', 'description', 'concurrent', 'idempotent', 'timeoutMs', 'maxOutputChars'],
    },
    toolName: { args: ['bash'], accepts: ['string'] },
  },
  './testing': {
    fakeClock: { args: [{}], accepts: ['undefined object'], options: [0, 'startAt', 'auto'] },
    fire: {
      args: [judge, 'beforeToolUse', {}],
      accepts: thirdOptional,
      options: [2, 'toolCall', 'metadata'],
    },
    recordEvents: { args: [agent] },
    scriptedModel: { args: [['a'], {}], accepts: ['function', 'undefined object'], options: [1, 'modelId', 'usage'] },
    storeContract: {
      args: ['x', () => store, {}],
      skips: ['string', 'function', 'undefined object'],
      options: [2, 'leaseMs'],
    },
  },
  './tracing': {
    tracing: { args: [{}], accepts: ['undefined object'], options: [0, 'tracer'] },
    workerMetrics: { args: [{}], accepts: ['undefined object'], options: [0, 'meter', 'store'] },
  },
  './bash': { bash: { args: [{}], accepts: ['undefined object'], options: [0, 'allow', 'sandbox', 'timeoutMs'] } },
  './files': { files: { args: [{ root: folder }], options: [0, 'root', 'write', 'maxLines'] } },
  './mcp': { mcp: { args: [{ servers: {} }], options: [0, 'servers'] } },
  './skills': {
    findSkills: { args: [{}], accepts: ['undefined object'], options: [0, 'maxCommandOutputBytes'] },
    getActiveSkills: { args: [state] },
    skills: { args: [{}], accepts: ['undefined object'], options: [0, 'maxCommandOutputBytes'] },
  },
  './structured-output': {
    getOutputs: { args: [state, {}], accepts: ['', 'object'] },
    structuredOutput: { args: [{ schemas: { a: schema } }], options: [0, 'schemas', 'maxRetries'] },
  },
  './subagents': {
    agentDefinitions: { args: [{}], accepts: ['undefined object'], options: [0, 'folders', 'writeTo'] },
    defineAgent: { args: [definition], options: [0, 'instructions', 'disallowedTools'] },
    fromAgentMarkdown: { args: ['---\nname: a\ndescription: b\n---\nc', 'a'], accepts: ['string', 'undefined string'] },
    readAgents: { args: [folder], accepts: ['string'] },
    subagents: { args: [{ agents: { helper: definition } }], options: [0, 'agents', 'maxDepth'] },
    toAgentMarkdown: { args: [definition] },
  },
  './summarization': { summarization: { args: [{}], accepts: ['undefined object'], options: [0, 'maxSummaryTokens'] } },
  './tasks': {
    getEventTasks: { args: [{ type: 'started' }], accepts: ['object'] },
    getTasks: { args: [state] },
    renderTasks: { args: [state, 'text'], accepts: ['', 'undefined string'] },
    tasks: { args: [{}], accepts: ['undefined object'], options: [0, 'maxTasks', 'reminderEverySteps'] },
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
    contextMessage: { args: ['text', 'by'], accepts: ['string', 'string'] },
    http: { args: [{ url: 'https://a.example' }], options: [0, 'headers', 'maxOutputBytes'] },
    prompt: { args: [{ prompt: 'Is it?' }], options: [0, 'prompt', 'conversation'] },
    shell: { args: [{ command: 'true' }], options: [0, 'command', 'passEnv'] },
    subagent: { args: [{ prompt: 'Is it?', definition: {} }], options: [0, 'definition', 'maxEventChars'] },
  },
  './hook-files': {
    TrustStore: { args: [join(folder, 'trust.json')], accepts: ['undefined string'] },
    claudeCommands: { args: [{ dir: folder }], options: [0, 'home'] },
    claudeHooks: { args: [{ dir: folder }], options: [0, 'home'] },
    hookFileSchema: { args: [] },
    hookFilesOf: { args: [folder], accepts: ['string'] },
    projectHooks: { args: [{ dir: folder }], options: [0, 'untrusted', 'allow'] },
  },
  './stores': {
    answerApproval: {
      args: [store, { session: 'known', approval: 'x', answer: 'allow' }],
      options: [1, 'session', 'answer'],
    },
    budget: {
      args: [{ store, maxCost: 1 }],
      skips: ['undefined null'],
      options: [0, 'store', 'maxCost', 'perMs', 'name'],
    },
    callLimit: {
      args: [{ store, maxCalls: 1 }],
      skips: ['undefined null'],
      options: [0, 'store', 'maxCalls', 'maxWaitMs', 'leaseMs', 'name'],
    },
    exportSession: { args: [store, 'known', {}], accepts: thirdOptional },
    forkSession: { args: [store, 'known', { as: 'fork' }], accepts: thirdOptional, options: [2, 'message'] },
    importSession: { args: [store, '', {}], accepts: thirdOptional },
    listApprovals: { args: [store] },
    listPoints: { args: [store, 'known'] },
    memoryStore: { args: [] },
    postgresStore: {
      args: [{ query: () => undefined, connect: () => undefined }, {}],
      accepts: ['string', 'undefined object'],
    },
    rateLimit: {
      args: [{ store }],
      skips: ['undefined null'],
      options: [0, 'store', 'maxRequestsPerMinute', 'maxWaitMs', 'name'],
    },
    readRuns: { args: [store, 'known', {}], accepts: thirdOptional },
    requestStop: { args: [store, { session: 'known' }], options: [1, 'session', 'by', 'reason'] },
    pruneSessions: { args: [store, { olderThan: 0 }], options: [1, 'olderThan', 'status', 'agent', 'user'] },
    watchSession: {
      args: [store, 'known', {}],
      accepts: ['', 'string', 'undefined object'],
      options: [2, 'after', 'follow', 'signal'],
    },
    rewindSession: { args: [store, 'known', {}], accepts: thirdOptional, options: [2, 'message'] },
    runLimit: {
      args: [{ store, maxRuns: 1 }],
      skips: ['undefined null'],
      options: [0, 'store', 'maxRuns', 'maxWaitMs', 'leaseMs', 'name'],
    },
    sqliteStore: { args: [join(folder, 'a.db'), {}], accepts: ['string', 'undefined object'] },
  },
  './serve': {
    agentRunner: { args: [agent, store] },
    serve: {
      args: [agent, { store, user: () => 'ann' }],
      options: [1, 'user', 'store', 'approvers', 'metadata', 'path', 'onNewInput', 'showHooks', 'maxBodyBytes'],
    },
    toNodeListener: { args: [() => new Response()], accepts: ['function'] },
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
    liveEffects: { args: [{}], accepts: ['undefined object'], options: [0, 'clock'] },
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
      accepts: ['string', 'undefined object'],
      options: [1, 'signal', 'metadata', 'session', 'deltas'],
    },
  ],
  'agent.stream': [
    (...args) => (agent.stream as (...a: unknown[]) => { run: unknown })(...args).run,
    { args: ['go', {}], accepts: ['string', 'undefined object'], options: [1, 'signal', 'metadata'] },
  ],
  'agent.iterate': [
    (...args) => (agent.iterate as (...a: unknown[]) => { run: unknown })(...args).run,
    { args: ['go', {}], accepts: ['string', 'undefined object'], options: [1, 'signal', 'metadata'] },
  ],
  'agent.resume': [
    (...args) => (agent.resume as Call)(...args),
    { args: [run, {}], options: [1, 'signal', 'answers', 'acceptMissing'] },
  ],
  'agent.resumeStream': [
    (...args) => (agent.resumeStream as (...a: unknown[]) => { run: unknown })(...args).run,
    { args: [run, {}], options: [1, 'signal', 'answers'] },
  ],
  'agent.with': [(...args) => (agent.with as Call)(...args), { args: [work], accepts: ['undefined null'] }],
  'agent.session': [(...args) => (agent.session as Call)(...args), { args: ['a'], accepts: ['undefined string'] }],
  'session.send': [
    (...args) => (agent.session('methods').send as Call)(...args),
    { args: ['go', {}], accepts: ['string', 'undefined object'], options: [1, 'signal', 'metadata', 'deltas'] },
  ],
  'session.stream': [
    (...args) => (agent.session('methods').stream as (...a: unknown[]) => { run: unknown })(...args).run,
    { args: ['go', {}], accepts: ['string', 'undefined object'], options: [1, 'signal', 'metadata', 'deltas'] },
  ],
  'session.resume': [
    inSession('resume'),
    { args: [{}], accepts: ['undefined object'], options: [0, 'signal', 'answers'] },
  ],
  'session.fork': [
    (...args) => (agent.session('known').fork as Call)(...args),
    { args: [{}], accepts: ['undefined object'], options: [0, 'message'] },
  ],
  'session.rewind': [inSession('rewind'), { args: [{}], accepts: ['undefined object'], options: [0, 'at', 'message'] }],
  'session.stop': [inSession('stop'), { args: [{}], accepts: ['undefined object'], options: [0, 'by', 'reason'] }],
  'session.changeModel': [inSession('changeModel'), { args: ['ollama/llama3'], accepts: ['string'] }],
  'session.changeSystemPrompt': [inSession('changeSystemPrompt'), { args: ['x'], accepts: ['string'] }],
}
for (const [name, [call, row]] of Object.entries(methods)) functions.set(name, { call, row })

const raw =
  /Cannot (read|convert|destructure)|is not (a function|iterable|a constructor)|undefined \(reading|The ".*" argument must be/

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
  const missing = [...functions]
    .filter(([name, { row }]) => row === undefined && !unchecked.test(name))
    .map(([name]) => name)
  assert.deepEqual(missing, [])
})

suite('a public function that gets an argument of a wrong kind throws an AgentError', () => {
  for (const [name, { call, row }] of functions) {
    if (row === undefined) continue
    test(name, async () => {
      const problems: string[] = []
      for (const [index, accepted] of row.args.map((_arg, i) => [i, row.accepts?.[i] ?? ''] as const)) {
        for (const [kind, value] of Object.entries(kinds)) {
          if (row.skips?.[index]?.split(' ').includes(kind) === true) continue
          const thrown = await outcomeOf(call, row.args.with(index, value))
          const isExpected = accepted.split(' ').includes(kind)
          const isClear = thrown instanceof AgentError && !raw.test(thrown.message)
          if (isClear || (thrown === undefined && isExpected)) continue
          problems.push(`argument ${index + 1}, ${kind}: ${thrown === undefined ? 'accepted' : show(thrown)}`)
        }
      }
      assert.deepEqual(problems, [])
    })
  }
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

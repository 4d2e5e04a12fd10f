import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { explain } from './agent/explain/explain.ts'
import { approval } from './capabilities/approval.ts'
import { cacheResponses } from './capabilities/cache-responses.ts'
import { errorPolicy } from './capabilities/error-policy.ts'
import { guards } from './capabilities/guards.ts'
import { redactSecrets } from './capabilities/redact-secrets.ts'
import { retry } from './capabilities/retry.ts'
import { selfCritique } from './capabilities/self-critique.ts'
import { skills } from './capabilities/skills/skills.ts'
import { summarization } from './capabilities/summarization/summarization.ts'
import { createAgent } from './create-agent.ts'
import { liveEffects } from './effects/effects.ts'
import { AgentError } from './errors.ts'
import { claudeCommands } from './hook-files/claude/claude-commands.ts'
import { claudeHooks } from './hook-files/claude/claude-hooks.ts'
import { projectHooks } from './hook-files/files/project-hooks.ts'
import { action } from './hooks/action.ts'
import { guard, hook, observe } from './hooks/hook.ts'
import { scriptedModel } from './models/scripted.ts'
import { languageModel } from './models/to-model.ts'
import { answerApproval, listApprovals } from './sessions/session/approvals.ts'
import { exportSession, importSession } from './sessions/session/export-session.ts'
import { forkSession } from './sessions/session/fork-session.ts'
import { rewindSession } from './sessions/session/rewind-session.ts'
import { memoryStore } from './sessions/stores/memory-store.ts'
import { postgresStore } from './sessions/stores/postgres-store.ts'
import { describeValue } from './state/describe-value.ts'
import { fakeClock } from './testing/fake-clock.ts'
import { fire } from './testing/fire.ts'
import { tracing } from './tracing/tracing.ts'
import { pruneSessions } from './sessions/stores/list-sessions.ts'

// Values of the wrong type, as JavaScript callers and values from configuration files have them: none is ignored, and none
// is an error of ours that says nothing about the option.

const folder = mkdtempSync(join(tmpdir(), 'options-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const model = scriptedModel(() => 'done')
const store = memoryStore()
const agent = createAgent({ model, store })
const run = await agent.run('go', { session: 's' })
const exported = await exportSession(store, 's')

type Options = { readonly [name: string]: never }
type Row = readonly [make: (options: Options) => unknown, options: { readonly [name: string]: readonly unknown[] }]

const notFlags = ['false', 1, null, () => true]
const notPositive = ['5', true, [5], 0, Number.NaN, 5n, Symbol('5')]
const notModels = [5, true, [], '', () => undefined]

const rows: { readonly [name: string]: Row } = {
  createAgent: [
    (options) => createAgent({ model, ...options }),
    { settings: [null, 0, ''], prices: [[], 5, 'x'], outputOptions: [{ strategy: 'tool' }] },
  ],
  guard: [
    (options) => guard('beforeStep', (ctx) => ctx, options),
    { timeoutMs: notPositive, effect: [1, 'no', null], priority: ['1', null], name: [null, ''], when: [true, {}] },
  ],
  hook: [(options) => hook('beforeStep', (ctx) => ctx, options), { timeoutMs: notPositive, effect: [null, 0] }],
  observe: [(options) => observe('afterStep', () => undefined, options), { timeoutMs: notPositive }],
  action: [
    (options) => action({ kind: 'a', label: 'b', perform: async () => ({}), ...options }),
    { timeoutMs: notPositive, asks: ['no', 1] },
  ],
  approval: [
    (options) => approval({ answer: 'deny', ...options }),
    { tools: ['deploy', /a/, [5], [null], null], expiresInMs: notPositive, onUnknownOutcome: ['no', null] },
  ],
  guards: [guards, { maxSteps: ['5', Number.NaN, 5n, -1], maxTimeMs: ['5', true] }],
  retry: [retry, { backoffMs: [null, '', [], 5n], maxBackoffMs: [true], on: ['x', 5n, [5n]] }],
  errorPolicy: [errorPolicy, { maxRetries: ['', null, [], 5n], backoffMs: [true, Symbol('x')] }],
  cacheResponses: [cacheResponses, { store: [new Map().keys(), {}, 'redis', null], ttlMs: notPositive }],
  redactSecrets: [redactSecrets, { also: ['secret', /secret/, null, [5], {}] }],
  selfCritique: [selfCritique, { model: notModels }],
  summarization: [summarization, { model: notModels }],
  skills: [skills, { cwd: [5, null, ''], skills: ['x', {}, [null], [5]] }],
  'languageModel.ask': [
    (options) => languageModel(model).ask('hi', options),
    { signal: [null, {}, 5], system: [5, null], responseFormat: ['json', []] },
  ],
  explain: [(options) => explain(run, options), { verbose: notFlags }],
  liveEffects: [liveEffects, { id: [5, '', null] }],
  fakeClock: [fakeClock, { startAt: ['0', Number.NaN, new Date(0)], auto: notFlags }],
  fire: [
    (options) =>
      fire(
        guard('beforeStep', (ctx) => ctx),
        'beforeStep',
        options,
      ),
    { metadata: [null, 5, []], messages: ['hi', null, {}], now: [new Date(0), '1'], state: [{}, null] },
  ],
  scriptedModel: [(options) => scriptedModel(['hi'], options), { usage: [5, null], modelId: [5, ''] }],
  'store.list': [
    (options) => store.list(options),
    { status: [5, null, [5], {}], after: [5, null, {}], user: [5, null, ['ann']], agent: [5, {}] },
  ],
  pruneSessions: [
    (options) => pruneSessions(store, { olderThan: 0, ...options }),
    { olderThan: [null, true, '', [], '5', new Date(Number.NaN), undefined], status: [5, null], user: [null, 5] },
  ],
  listApprovals: [(options) => listApprovals(store, options), { status: ['suspended'], user: [5], limit: ['5', 0] }],
  answerApproval: [
    (options) => answerApproval(store, { session: 's', approval: 'a', answer: 'allow', ...options }),
    { approval: [Symbol('a'), 5, null], by: [5, {}], now: ['1', new Date()] },
  ],
  exportSession: [(options) => exportSession(store, 's', options), { redact: ['x', [5], [null], true, {}] }],
  importSession: [(options) => importSession(store, exported, { as: 'copy', ...options }), { maxBytes: ['5', 0, 5n] }],
  forkSession: [(options) => forkSession(store, 's', options), { at: ['5', 5n, -1, 1.5, new Date(), Symbol('5')] }],
  rewindSession: [(options) => rewindSession(store, 's', options), { at: ['5', 5n, -1, Symbol('5')] }],
  postgresStore: [
    (options) => postgresStore({ connectionString: 'postgres://localhost/x', ...options }),
    { connectionString: [5, '', {}], schema: [true, Symbol('x'), 5] },
  ],
  projectHooks: [
    (options) => projectHooks({ dir: folder, home: false, ...options }),
    { home: [5, true, null, ''], trust: ['none', {}, null], plugins: ['x', [5]], allow: [5, []] },
  ],
  claudeHooks: [
    (options) => claudeHooks({ dir: folder, home: false, ...options }),
    { home: [5, true, null], trust: ['none', {}, null], settings: [5, 'x', [], null], passEnv: ['PATH', [5]] },
  ],
  claudeCommands: [(options) => claudeCommands({ dir: folder, home: false, ...options }), { home: [5, true, null] }],
  tracing: [tracing, { tracer: [5, {}], meter: ['x', {}], content: notFlags, agentName: [5] }],
}

async function thrownBy(act: () => unknown): Promise<unknown> {
  try {
    await act()
  } catch (thrown) {
    return thrown
  }
  return undefined
}

suite('a value of the wrong type is an AgentError that names the option', () => {
  for (const [name, [make, options]] of Object.entries(rows)) {
    test(name, async () => {
      for (const [option, values] of Object.entries(options)) {
        for (const value of values) {
          const thrown = await thrownBy(() => make({ [option]: value as never }))
          assert.ok(thrown instanceof AgentError, `${option}: ${describeValue(value)} ${String(thrown)}`)
          assert.match(thrown.message, new RegExp(option))
        }
      }
    })
  }
})

class Settings {
  get maxSteps(): number {
    return 3
  }
}

test('options that are inherited, or getters of a class, apply', () => {
  for (const options of [Object.create({ maxSteps: 3 }), new Settings()] as { maxSteps: number }[]) {
    assert.match(String(guards(options).notes), /maxSteps: 3,/)
  }
})

test('an unknown option is an error, also if it is inherited or a symbol', () => {
  for (const options of [Object.create({ maxStepz: 3 }), { [Symbol('maxSteps')]: 3 }]) {
    assert.throws(() => guards(options), /unknown option/)
  }
})

test('options in a Map, a promise or another object without options are an error', () => {
  for (const options of [
    new Map([['maxSteps', 3]]),
    Promise.resolve({ maxSteps: 3 }),
    new Date(),
    /x/,
    new Error('x'),
  ]) {
    assert.throws(() => guards(options as never), /the options must be an object, not an instance of/)
  }
})

import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import fc from 'fast-check'
import { tool } from '../agent/tool.ts'
import type { Run } from '../agent/run.ts'
import { approval } from '../../capabilities/approval.ts'
import { errorPolicy } from '../../capabilities/error-policy.ts'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import { AgentError } from '../../errors.ts'
import { hook } from '../hooks/hook.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import type { Json, JsonObject } from '../../values/json.ts'
import { fromSavedRun, fromStateJson } from './saved-run.ts'

const anyArgs = { type: 'object' }
const tools = [
  tool({ name: 'echo', description: '', input: anyArgs, execute: (args) => args, concurrent: true }),
  tool({ name: 'fail', description: '', input: anyArgs, execute: () => Promise.reject(new Error('no')) }),
  tool({ name: 'send', description: '', input: anyArgs, execute: () => 'sent', ask: true }),
]

const json = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>
const unicode = fc.string({ unit: 'binary', maxLength: 12 })
const object = fc.dictionary(fc.oneof(fc.string(), fc.constantFrom('__proto__', 'constructor', '7')), json, {
  maxKeys: 4,
})
const call = fc.record({ name: fc.constantFrom('echo', 'fail', 'send', 'nobody'), args: fc.oneof(object, json) })
const turn: fc.Arbitrary<ScriptedTurn> = fc.oneof(
  fc.record({ text: unicode, toolCalls: fc.array(call, { minLength: 1, maxLength: 3 }) }),
  fc.record({ reasoning: unicode, toolCalls: fc.array(call, { minLength: 1, maxLength: 2 }) }),
  fc.record({ error: unicode }),
  fc.record({ text: unicode, finishReason: fc.constantFrom('stop', 'length', 'content-filter') }),
)
const story = fc.record({
  turns: fc.array(turn, { maxLength: 4 }),
  metadata: object,
  format: fc.option(object),
  limit: fc.integer({ min: 0, max: 5 }),
  input: unicode,
})

function tell({
  turns,
  metadata,
  format,
  limit,
  input,
}: typeof story extends fc.Arbitrary<infer S> ? S : never): Promise<Run> {
  const agent = createAgent({
    model: scriptedModel([...turns, 'done']),
    use: [
      ...tools,
      approval('suspend'),
      errorPolicy({ onError: 'retry', maxRetries: 2, backoffMs: 0 }),
      guards({ maxSteps: limit }),
      hook('beforeExecution', (ctx) => (format === null ? ctx : ctx.withState((s) => s.withResponseFormat(format)))),
      hook('afterToolUse', (ctx) => ctx.withState((s) => s.withMetadata('seen', ctx.toolExecution.output))),
    ],
  })
  return agent.run(input, { metadata })
}

test('the JSON of a state reads back to a state that is equal in every field', async () => {
  await fc.assert(
    fc.asyncProperty(story, async (each) => {
      const { state } = await tell(each)
      const read = fromStateJson(JSON.parse(JSON.stringify(state)))
      for (const key of [
        'agentId',
        'parentId',
        'systemPrompt',
        'responseFormat',
        'usage',
        'executionCount',
        'stepCount',
      ] as const) {
        assert.deepEqual(read[key], state[key], key)
      }
      assert.deepEqual([...read.messages], [...state.messages])
      assert.deepEqual({ ...read.metadata }, { ...state.metadata })
      assert.deepEqual(read.execution?.steps.slice(), state.execution?.steps.slice())
    }),
    { numRuns: 50 },
  )
})

test('a saved run reads back with its ledger', async () => {
  const run = await tell({
    turns: [{ toolCalls: [{ name: 'echo' }] }, { toolCalls: [{ name: 'send' }] }],
    metadata: {},
    format: null,
    limit: 5,
    input: 'x',
  })
  const read = fromSavedRun(JSON.parse(JSON.stringify(run)))
  assert.deepEqual(read.ledger, run.ledger)
  assert.equal(read.state.execution?.status, 'suspended')
})

// Two saved states that have every field there is, to be broken in every way.
let finished: JsonObject
let suspended: JsonObject
before(async () => {
  const done = await tell({
    turns: [{ error: 'once' }, { text: 'a', toolCalls: [{ name: 'echo', args: { a: 1 } }] }],
    metadata: { a: 1 },
    format: { type: 'json' },
    limit: 5,
    input: 'x',
  })
  const waiting = await tell({
    turns: [{ toolCalls: [{ name: 'echo' }] }, { toolCalls: [{ name: 'echo' }, { name: 'send' }] }],
    metadata: {},
    format: null,
    limit: 5,
    input: 'x',
  })
  finished = done.toJSON().state
  suspended = waiting.toJSON().state
})

type Mutable = { [key: string]: Mutable }

/** A copy with one place changed, or removed with `undefined`. */
function broken(base: JsonObject, path: string, value: unknown): JsonObject {
  const copy = JSON.parse(JSON.stringify(base)) as Mutable
  const keys = path.split('.')
  const last = keys.pop()!
  let at = copy
  for (const key of keys) at = at[key]!
  if (value === undefined) delete at[last]
  else at[last] = value as Mutable
  return copy
}

const inFinished: readonly (readonly [path: string, value: unknown])[] = [
  ['version', undefined],
  ['version', '1'],
  ['version', 0],
  ['version', 1.5],
  ['agentId', 5],
  ['parentId', 7],
  ['messages', {}],
  ['messages.0', 'hi'],
  ['messages.0.role', 'boss'],
  ['messages.1.content', 'text'],
  ['messages.0.content.0.type', 'video'],
  ['systemPrompt', null],
  ['responseFormat', []],
  ['metadata', null],
  ['metadata', []],
  ['spentBefore', undefined],
  ['spentBefore.inputTokens', -1],
  ['executionCount', 'one'],
  ['execution', null],
  ['execution.id', undefined],
  ['execution.status', 'done'],
  ['execution.startedAt', 'now'],
  ['execution.waitedMs', undefined],
  ['execution.steps', {}],
  ['execution.steps.0', null],
  ['execution.steps.0.index', 'first'],
  ['execution.steps.0.type', 'odd'],
  ['execution.steps.0.text', 5],
  ['execution.steps.0.toolCalls.0.name', 3],
  ['execution.steps.0.toolExecutions.0.status', 'great'],
  ['execution.steps.0.toolExecutions.0.output', undefined],
  ['execution.steps.0.errors.0.code', 'OOPS'],
  ['execution.steps.0.errors.0.during', undefined],
  ['execution.steps.0.finishReason', 'tired'],
  ['execution.steps.0.usage.costUsd', 'free'],
  ['execution.steps.0.messageCount', undefined],
  ['execution.steps.0.outcome', 5],
  ['execution.steps.1.outcome.evaluations', 'all'],
  ['execution.steps.1.outcome.evaluations.0.decision', 'maybe'],
  ['execution.votes', undefined],
  ['execution.votes', [{ decision: 'maybe' }]],
  ['execution.usage.steps', null],
  ['execution.failures', -1],
  ['execution.continuations.inRow', undefined],
  ['execution.hooks.0.mode', 'boss'],
  ['execution.final.status', 'running'],
  ['execution.final.reason', 'bored'],
  ['execution.final.at', undefined],
]

const inSuspended: readonly (readonly [path: string, value: unknown])[] = [
  ['execution.status', 'paused'],
  ['execution.steps.0.toolExecutions.0.status', 'great'],
]

function refuses(base: () => JsonObject, [path, value]: readonly [string, unknown]): void {
  const how = value === undefined ? 'is missing' : `is ${JSON.stringify(value)}`
  test(`a state whose ${path} ${how} is rejected with its path`, () => {
    const named = path.replaceAll(/\.(\d+)/g, '[$1]')
    assert.throws(
      () => fromStateJson(broken(base(), path, value)),
      (error: AgentError) => {
        assert.equal(error.code, 'STATE_INVALID')
        assert.ok(error.message.includes(named.replace(/\.(role|content).*/, '')), `"${error.message}" names ${named}`)
        return true
      },
    )
  })
}
for (const row of inFinished) refuses(() => finished, row)
for (const row of inSuspended) refuses(() => suspended, row)

test('a value that is not an object is rejected', () => {
  const values = [undefined, null, 'text', 5, [], { version: 1 }]
  for (const value of values) assert.throws(() => fromStateJson(value), { code: 'STATE_INVALID' })
  for (const value of [...values, new Date(0), () => 1])
    assert.throws(() => fromSavedRun(value), { code: 'STATE_INVALID' })
})

test('a state of a newer version is rejected with STATE_VERSION before any other check', () => {
  assert.throws(() => fromStateJson({ version: 3, somethingNew: true }), {
    code: 'STATE_VERSION',
    message: /version 3; this Hookloop reads up to 2/,
  })
  assert.throws(() => fromSavedRun({ version: 9 }), { code: 'STATE_VERSION', message: /saved run has version 9/ })
  assert.throws(() => fromSavedRun({ version: 1, state: { version: 3 } }), {
    code: 'STATE_VERSION',
    message: /state has version 3/,
  })
})

test('a newer state is rejected by run and resume before the model is called', async () => {
  const model = scriptedModel(['never'])
  const agent = createAgent({ model })
  const newer = { version: 1, status: 'completed', pending: [], state: { ...finished, version: 3 } }
  await assert.rejects(agent.run('x', { from: newer }), { code: 'STATE_VERSION' })
  await assert.rejects(agent.resume(newer), { code: 'STATE_VERSION' })
  assert.equal(model.requests.length, 0)
})

test('an invalid ledger in a saved run is rejected', () => {
  for (const ledger of ['x', [5], [{ hook: 'a' }], [{ hook: 'a', trigger: 'b', mode: 'c', step: 0, durationMs: -1 }]]) {
    assert.throws(() => fromSavedRun({ version: 1, state: finished, ledger }), {
      code: 'STATE_INVALID',
      message: /ledger/,
    })
  }
})

test('a damaged state is either read or rejected as invalid, and what is read can be saved', () => {
  const places = [...pathsOf(finished), ...pathsOf(suspended)]
  fc.assert(
    fc.property(fc.nat(places.length - 1), fc.option(json, { nil: undefined }), (at, value) => {
      const base = at < pathsOf(finished).length ? finished : suspended
      try {
        const read = JSON.stringify(fromStateJson(broken(base, places[at]!, value)))
        assert.equal(JSON.stringify(fromStateJson(JSON.parse(read))), JSON.stringify(JSON.parse(read)))
      } catch (error) {
        if (!(error instanceof AgentError)) throw error
        assert.ok(error.code === 'STATE_INVALID' || error.code === 'STATE_VERSION', error.code)
      }
    }),
    { numRuns: 300 },
  )
})

test('"__proto__" keys in a saved state add no inherited values', () => {
  const text = JSON.stringify(finished).replace(
    '"metadata":{',
    '"__proto__":{"admin":1},"metadata":{"__proto__":{"role":"admin"},',
  )
  const state = fromStateJson(JSON.parse(text))
  assert.equal(state.metadata['role'], undefined)
  assert.equal((state as unknown as { admin?: number }).admin, undefined)
  assert.equal(JSON.stringify(state).includes('admin'), false)
})

test('requests and exceptions are never part of a saved run', async () => {
  const failure = Object.assign(new Error('broken pipe', { cause: 'CAUSE-SECRET' }), { token: 'TOKEN-SECRET' })
  const agent = createAgent({
    model: scriptedModel([{ error: failure }, 'done', 'done']),
    use: [
      errorPolicy({ backoffMs: 0 }),
      hook('beforeInference', (ctx) =>
        ctx.withRequest({
          system: 'REQUEST-SECRET',
          settings: { providerOptions: { scripted: { key: 'SETTING-SECRET' } } },
        }),
      ),
    ],
  })
  const run = await agent.run('x')
  const text = JSON.stringify(run.state)
  assert.equal(run.status, 'completed')
  assert.match(text, /broken pipe/)
  assert.doesNotMatch(text, /SECRET|saved-run\.test|"stack"|"request"/)
})

function pathsOf(value: Json, prefix = ''): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => [`${prefix}${key}`, ...pathsOf(inner, `${prefix}${key}.`)])
}

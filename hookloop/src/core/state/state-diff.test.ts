import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { AgentState } from './agent-state.ts'
import type { ExecutionFields, Step } from './execution.ts'
import type { Json } from '../../values/json.ts'
import { List } from './list.ts'
import { textMessage, type Message } from './message.ts'
import { applyChange, applyDiff, diffState, stateChange, type StateDiff } from './state-diff.ts'
import { addUsage, noTokens, noUsage } from './usage.ts'

type Change = (state: AgentState) => AgentState

/** Each state written as a diff to the one before and built again, as in a log. */
function folded(states: readonly AgentState[]): readonly unknown[] {
  let before: AgentState | undefined
  let built: AgentState | undefined
  return states.map((state) => {
    const line = JSON.stringify(diffState(before, state))
    before = state
    built = applyDiff(built, JSON.parse(line) as StateDiff)
    return JSON.parse(JSON.stringify(built))
  })
}

const started: ExecutionFields = Object.freeze({
  id: 'x.1',
  status: 'running',
  startedAt: 1,
  waitedMs: 0,
  steps: List.from<Step>([]),
  votes: Object.freeze([]),
  usage: noUsage,
  failures: 0,
  continuations: Object.freeze({ inRow: 0, total: 0 }),
  hooks: Object.freeze([{ name: 'g', mode: 'guard' as const }]),
})

function step(index: number, text: string): Step {
  return Object.freeze({
    index,
    type: 'finalResponse',
    text,
    toolCalls: [],
    toolExecutions: [],
    errors: [],
    finishReason: 'stop',
    usage: noTokens,
    messageCount: index,
  })
}

function onExecution(change: (execution: ExecutionFields) => ExecutionFields): Change {
  return (state) =>
    AgentState.patch(state, { execution: Object.freeze(change(AgentState.fieldsOf(state).execution ?? started)) })
}

const suspend: Change = onExecution((execution) => ({ ...execution, status: 'suspended' }))
const resume: Change = onExecution((execution) => ({ ...execution, status: 'running' }))
const end: Change = onExecution((execution) => ({
  ...execution,
  status: 'completed',
  final: { status: 'completed', reason: 'completed', by: 'g', message: '', votes: [], at: 9 },
}))
const startAgain: Change = (state) =>
  AgentState.patch(state, {
    executionCount: state.executionCount + 1,
    spentBefore: state.usage,
    execution: Object.freeze({ ...started, id: `x.${state.executionCount + 2}` }),
  })

const word = fc.oneof(fc.constantFrom('__proto__', 'constructor', 'toString', '', '1', '0', 'a', 'b'), fc.string())
const json = fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<Json>
const change: fc.Arbitrary<Change> = fc.oneof(
  word.map(
    (text): Change =>
      (state) =>
        state.withMessage(text),
  ),
  fc.nat({ max: 9 }).map(
    (at): Change =>
      (state) =>
        state.withMessages(state.messages.slice(at)),
  ),
  fc.nat({ max: 9 }).map(
    (at): Change =>
      (state) =>
        state.withMessages(state.messages.slice(0, at)),
  ),
  fc.constant<Change>((state) => state.withMessages(state.messages.map(reworded))),
  fc.tuple(fc.nat({ max: 5 }), fc.nat({ max: 9 }), word).map(
    ([keep, from, text]): Change =>
      (state) =>
        summarized(state, { keep, from, text }),
  ),
  fc.tuple(word, json).map(
    ([key, value]): Change =>
      (state) =>
        state.withMetadata(key, value),
  ),
  word.map(
    (key): Change =>
      (state) =>
        state.withoutMetadata(key),
  ),
  word.map(
    (text): Change =>
      (state) =>
        state.withSystemPrompt(text),
  ),
  fc.option(fc.dictionary(word, json), { nil: undefined }).map((format): Change => {
    return (state) => state.withResponseFormat(format)
  }),
  word.map((text): Change => onExecution((each) => ({ ...each, steps: each.steps.append(step(1, text)) }))),
  word.map((text): Change => onExecution((each) => ({ ...each, steps: each.steps.take(1).append(step(1, text)) }))),
  fc.nat().map((steps): Change => onExecution((each) => ({ ...each, usage: addUsage(each.usage, { steps }) }))),
  fc.constantFrom(suspend, resume, end, startAgain),
)

function reworded({ role }: Message, index: number): Message {
  return textMessage(role, `message ${index}`)
}

/** The first messages, a new one, and the last messages. */
function summarized(state: AgentState, { keep, from, text }: { keep: number; from: number; text: string }): AgentState {
  const { messages } = state
  return state.withMessages([...messages.slice(0, keep), textMessage('user', text), ...messages.slice(from)])
}

test('a state that is built from its diffs is the same, whatever changed', () => {
  fc.assert(
    fc.property(fc.array(fc.array(change, { maxLength: 4 }), { maxLength: 12 }), (rounds) => {
      let state = AgentState.create({ agentId: 'a' })
      const states = rounds.map((changes) => (state = changes.reduce((before, make) => make(before), state)))
      assert.deepEqual(
        folded(states),
        states.map((each): unknown => JSON.parse(JSON.stringify(each))),
      )
    }),
    { numRuns: 500 },
  )
})

test('a change that is applied to the state it was made from gives the changed state', () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 4 }), fc.array(change, { maxLength: 4 }), (first, second) => {
      const before = first.reduce((state, make) => make(state), AgentState.create({ agentId: 'a' }))
      const after = second.reduce((state, make) => make(state), before)
      const { metadata, messages, systemPrompt, responseFormat } = applyChange(before, stateChange(before, after))
      const shown = (value: unknown): unknown => JSON.parse(JSON.stringify(value ?? null))
      assert.deepEqual(shown(metadata), shown(after.metadata))
      assert.deepEqual(
        shown([messages, systemPrompt, responseFormat]),
        shown([after.messages, after.systemPrompt, after.responseFormat]),
      )
    }),
  )
})

test('a diff holds only what changed', () => {
  const state = end(AgentState.create({ agentId: 'a' }).withMessage('long '.repeat(1000)).withMetadata('k', [1]))
  assert.deepEqual(diffState(state, state.withMetadata('l', 2)), { metadata: { l: 2 } })
  assert.deepEqual(diffState(state, state), {})
})

test('a conversation of any length is built from its diff', () => {
  const messages = List.from(Array.from({ length: 200_000 }, () => textMessage('user', 'x')))
  const [built] = folded([AgentState.create({ agentId: 'a', messages })]) as { messages: unknown[] }[]
  assert.equal(built!.messages.length, 200_000)
})

test('the size of all diffs grows linearly with the number of steps', () => {
  const written = (steps: number): number => {
    let state = startAgain(AgentState.create({ agentId: 'a' }))
    const states = Array.from({ length: steps }, (_, i) => {
      state = onExecution((each) => ({ ...each, steps: each.steps.append(step(i, 'Looking on.')), votes: [] }))(
        state.withMessage('a result').withMetadata('progress', i),
      )
      return state
    })
    return sizeOfDiffs(states)
  }
  const [few, many] = [written(100), written(1_000)]
  assert.ok(many <= 1.3 * 10 * few, `${many} bytes for 1,000 steps, ${few} for 100`)
})

function sizeOfDiffs(states: readonly AgentState[]): number {
  return states.reduce((sum, state, i) => sum + JSON.stringify(diffState(states[i - 1], state)).length, 0)
}

const state = AgentState.create({ agentId: 'a' }).withMessage('one').withMessage('two')
const malformed: { readonly [what: string]: unknown } = {
  'keeps more than there is': { messages: { keep: 3, add: [] } },
  'keeps a negative number': { messages: { keep: -1, add: [] } },
  'keeps half a message': { messages: { keep: 0.5, add: [] } },
  'keeps more than an array can hold': { messages: { keep: 2 ** 32, add: [] } },
  'keeps a number beyond all integers': { messages: { keep: 1e308, add: [] } },
  'keeps a text': { messages: { keep: '1', add: [] } },
  'adds an object instead of a list': { messages: { keep: 0, add: { length: 1 } } },
  'adds a number as a message': { messages: { keep: 0, add: [17] } },
  'has a null for messages': { messages: null },
  'has a null for its version': { version: null },
  'has a text for metadata': { metadata: 'x' },
  'removes a text instead of a list': { removed: 'x' },
  'sets a list as metadata': { metadata: [1] },
  'has an empty execution': { execution: {} },
  'has a null for an execution': { execution: null },
  'adds steps that are not steps': { execution: { steps: { keep: 0, add: [null] } } },
  'removes the id': { agentId: null },
  'has a text for its version': { version: '1' },
}

for (const [what, diff] of Object.entries(malformed)) {
  test(`a diff that ${what} is rejected`, () => {
    const before = applyDiff(undefined, diffState(undefined, state))
    assert.throws(() => applyDiff(before, diff as StateDiff), { code: 'STATE_INVALID' })
  })
}

test('a diff of a newer version is rejected with STATE_VERSION', () => {
  const before = applyDiff(undefined, diffState(undefined, state))
  assert.throws(() => applyDiff(before, { version: 99 }), { code: 'STATE_VERSION' })
})

test('no key of a diff reaches a prototype', () => {
  const before = applyDiff(undefined, diffState(undefined, state))
  const diff = JSON.parse('{"metadata":{"__proto__":{"polluted":true},"constructor":{"prototype":1}}}') as StateDiff
  const { metadata } = applyDiff(before, diff)
  assert.deepEqual([JSON.stringify(metadata), 'polluted' in {}], ['{"constructor":{"prototype":1}}', false])
})

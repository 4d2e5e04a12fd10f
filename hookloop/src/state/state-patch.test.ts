import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { AgentState } from './agent-state.ts'
import type { Execution, Step } from './execution.ts'
import type { Json, JsonObject } from './json.ts'
import { List } from './list.ts'
import { textMessage, type Message } from './message.ts'
import { patchBetween, StateBuilder, type StatePatch } from './state-patch.ts'
import { addUsage, noTokens, noUsage } from './usage.ts'

type Change = (state: AgentState) => AgentState

/** States as a log has them: each as what is different from the one before, written down and read again. */
function folded(states: readonly AgentState[]): { readonly texts: readonly string[]; readonly bytes: number } {
  const builder = new StateBuilder()
  let before: AgentState | undefined
  let bytes = 0
  const texts = states.map((state) => {
    const line = JSON.stringify(patchBetween(before, state))
    bytes += line.length
    before = state
    builder.apply(JSON.parse(line) as StatePatch)
    return JSON.stringify(builder.build())
  })
  return { texts, bytes }
}

const begun: Execution = Object.freeze({
  id: 'x.1',
  status: 'running',
  startedAt: 1,
  waitedMs: 0,
  steps: List.empty<Step>(),
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

function onExecution(change: (execution: Execution) => Execution): Change {
  return (state) => AgentState.patch(state, { execution: Object.freeze(change(state.execution ?? begun)) })
}

const suspend: Change = onExecution((execution) => {
  const asked = textMessage('assistant', 'May I?')
  const open = { text: '', finishReason: 'tool-calls' as const, usage: noTokens, messageCount: 1, asked, resultsAt: 2 }
  const call = { id: 'c', name: 't', originalArgs: { a: 1 }, args: { constructor: 2 } as JsonObject }
  const cursor = { phase: 'tools' as const, waitingSince: 5, step: { ...open, calls: [call], errors: [] } }
  return { ...execution, status: 'suspended', cursor }
})
const goOn: Change = onExecution(({ cursor: _left, ...execution }) => ({ ...execution, status: 'running' }))
const end: Change = onExecution((execution) => ({
  ...execution,
  status: 'completed',
  final: { status: 'completed', reason: 'completed', by: 'g', message: '', votes: [], at: 9 },
}))
const beginAgain: Change = (state) =>
  AgentState.patch(state, {
    executionCount: state.executionCount + 1,
    spentBefore: state.usage,
    execution: Object.freeze({ ...begun, id: `x.${state.executionCount + 2}` }),
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
        state.withMessages(state.messages.take(at)),
  ),
  fc.constant<Change>((state) => state.withMessages(state.messages.map(reworded))),
  fc.tuple(fc.nat({ max: 5 }), fc.nat({ max: 9 }), word).map(
    ([keep, from, text]): Change =>
      (state) =>
        summedUp(state, { keep, from, text }),
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
  fc.constantFrom(suspend, goOn, end, beginAgain),
)

function reworded({ role }: Message, index: number): Message {
  return textMessage(role, `message ${index}`)
}

/** The beginning, something new, and the end. */
function summedUp(state: AgentState, { keep, from, text }: { keep: number; from: number; text: string }): AgentState {
  const { messages } = state
  return state.withMessages(messages.take(keep).append(textMessage('user', text)).concat(messages.slice(from)))
}

test('whatever becomes of a state, its changes put together give the same text', () => {
  fc.assert(
    fc.property(fc.array(fc.array(change, { maxLength: 4 }), { maxLength: 12 }), (kept) => {
      let state = AgentState.create({ agentId: 'a' })
      const states = kept.map((changes) => (state = changes.reduce((before, make) => make(before), state)))
      assert.deepEqual(
        folded(states).texts,
        states.map((each) => JSON.stringify(each)),
      )
    }),
    { numRuns: 1_500 },
  )
})

test('a key that was taken out and put in again stands where it stands now', () => {
  const before = AgentState.create({ agentId: 'a' }).withMetadata('a', 1).withMetadata('b', 2)
  const after = before.withoutMetadata('a').withMetadata('a', 3)
  const [, text] = folded([before, after]).texts
  assert.equal(text, JSON.stringify(after))
})

test('what nothing happened to is not written again', () => {
  const state = end(AgentState.create({ agentId: 'a' }).withMessage('long '.repeat(1000)).withMetadata('k', [1]))
  assert.deepEqual(patchBetween(state, state.withMetadata('l', 2)), { metadata: { set: { l: 2 } } })
  assert.deepEqual(patchBetween(state, state), {})
})

test('of a conversation that was summed up, what stays is not written again', () => {
  const long = 'long '.repeat(100)
  const messages = Array.from({ length: 50 }, (_, i) => textMessage('user', `${i} ${long}`))
  const before = AgentState.create({ agentId: 'a', messages: List.from(messages) })
  const after = summedUp(before, { keep: 0, from: 20, text: 'in short' }).withMessage('and on')
  assert.deepEqual(patchBetween(before, after), {
    messages: { keep: 0, add: [textMessage('user', 'in short')], from: 20, more: [textMessage('user', 'and on')] },
  })
  assert.equal(folded([before, after]).texts[1], JSON.stringify(after))
})

test('a conversation of any length is put together', () => {
  const messages = List.from(Array.from({ length: 200_000 }, () => textMessage('user', 'x')))
  const [text] = folded([AgentState.create({ agentId: 'a', messages })]).texts
  assert.equal((JSON.parse(text!) as { messages: unknown[] }).messages.length, 200_000)
})

test('what is written grows with the steps, not with their square', () => {
  const written = (steps: number): number => {
    let state = beginAgain(AgentState.create({ agentId: 'a' }))
    const states = Array.from({ length: steps }, (_, i) => {
      state = onExecution((each) => ({ ...each, steps: each.steps.append(step(i, 'Looking on.')), votes: [] }))(
        state.withMessage('a result').withMetadata('progress', i),
      )
      return state
    })
    return patchesOf(states)
  }
  const [few, many] = [written(100), written(1_000)]
  assert.ok(many <= 1.3 * 10 * few, `${many} bytes for 1,000 steps, ${few} for 100`)
})

function patchesOf(states: readonly AgentState[]): number {
  return states.reduce((sum, state, i) => sum + JSON.stringify(patchBetween(states[i - 1], state)).length, 0)
}

const state = AgentState.create({ agentId: 'a' }).withMessage('one').withMessage('two')
const malformed: { readonly [what: string]: unknown } = {
  'keeps more than there is': { messages: { keep: 3, add: [] } },
  'keeps less than nothing': { messages: { keep: -1, add: [] } },
  'keeps half a message': { messages: { keep: 0.5, add: [] } },
  'keeps more than an array can hold': { messages: { keep: 2 ** 32, add: [] } },
  'keeps more than can be counted': { messages: { keep: 1e308, add: [] } },
  'keeps a text': { messages: { keep: '1', add: [] } },
  'adds nothing that is a list': { messages: { keep: 0, add: { length: 1 } } },
  'adds what is no message': { messages: { keep: 0, add: [17] } },
  'goes on from beyond the end': { messages: { keep: 0, add: [], from: 3 } },
  'goes on from what it kept': { messages: { keep: 2, add: [], from: 1 } },
  'goes on from nowhere': { messages: { keep: 0, add: [], from: null } },
  'has more that is no list': { messages: { keep: 0, add: [], from: 0, more: 7 } },
  'has no list at all': { messages: null },
  'has a null for fields': { fields: null },
  'has a text for metadata': { metadata: 'x' },
  'takes out what is no list': { metadata: { unset: 'x' } },
  'puts in a list': { fields: { set: [1] } },
  'has an execution without anything': { execution: {} },
  'has a null for an execution': { execution: null },
  'has steps that are none': { execution: { steps: { keep: 0, add: [null] } } },
  'takes out the id': { fields: { unset: ['agentId'] } },
  'has a version that is none': { fields: { set: { version: '1' } } },
}

for (const [what, patch] of Object.entries(malformed)) {
  test(`a change that ${what} is refused`, () => {
    const builder = new StateBuilder()
    builder.apply(patchBetween(undefined, state))
    assert.throws(
      () => {
        builder.apply(patch as StatePatch)
        builder.build()
      },
      { code: 'STATE_INVALID' },
    )
  })
}

test('a change from a newer version is refused by name', () => {
  const builder = new StateBuilder()
  builder.apply(patchBetween(undefined, state))
  builder.apply({ fields: { set: { version: 99 } } })
  assert.throws(() => builder.build(), { code: 'STATE_VERSION' })
})

test('no key of a change reaches a prototype', () => {
  const builder = new StateBuilder()
  builder.apply(patchBetween(undefined, state))
  builder.apply(JSON.parse('{"metadata":{"set":{"__proto__":{"polluted":true},"constructor":{"prototype":1}}}}'))
  const { metadata } = builder.build()
  assert.deepEqual([JSON.stringify(metadata), 'polluted' in {}], ['{"constructor":{"prototype":1}}', false])
})

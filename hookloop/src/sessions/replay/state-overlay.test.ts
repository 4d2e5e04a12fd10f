import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AgentState } from '../../state/agent-state.ts'
import { StateOverlay } from './state-overlay.ts'

const state = AgentState.create({ agentId: 'a' }).withMetadata('who', 'ann').withMessage('Hello.')

function texts({ messages }: AgentState): readonly string[] {
  return messages.map(({ content: [first] }) => (first?.type === 'text' ? first.text : ''))
}

/** How a state would be after something else was recorded, if other hooks had left it otherwise before. */
function after(would: AgentState, recorded: AgentState, was = state): AgentState {
  const overlay = new StateOverlay()
  overlay.update(was, would)
  return overlay.apply(recorded)
}

test('without a difference a recorded state is the very same', () => {
  const copy = state.withMessages([...state.messages]).withMetadata('who', 'ann')
  assert.equal(after(copy, state), state)
})

test('metadata that would have been written, changed or removed is so in what was recorded later', () => {
  const would = state.withMetadata('new', 1).withoutMetadata('who')
  const { metadata } = after(would, state.withMetadata('later', true))
  assert.deepEqual({ ...metadata }, { later: true, new: 1 })
})

test('messages that would have been added stand where they would stand, before what was recorded later', () => {
  const would = after(state.withMessage('By a hook.'), state.withMessage('By the model.'))
  assert.deepEqual(texts(would), ['Hello.', 'By a hook.', 'By the model.'])
})

test('a conversation that would have been rewritten continues with what was recorded later', () => {
  const would = after(state.withMessages([]).withMessage('Short.'), state.withMessage('By the model.'))
  assert.deepEqual(texts(would), ['Short.', 'By the model.'])
})

test('a conversation that was rewritten in the recorded run stands for itself', () => {
  const rewritten = state.withMessages([]).withMessage('Summary.')
  assert.deepEqual(texts(after(state.withMessage('By a hook.'), rewritten)), ['Summary.'])
})

test('prompt and format that would have been others are', () => {
  const would = state.withSystemPrompt('Be brief.').withResponseFormat({ type: 'object' })
  const { systemPrompt, responseFormat } = after(would, state.withMessage('Later.'))
  assert.deepEqual([systemPrompt, responseFormat], ['Be brief.', { type: 'object' }])
  assert.equal(
    after(state.withResponseFormat(undefined), state.withResponseFormat({}), state.withResponseFormat({}))
      .responseFormat,
    undefined,
  )
})

test('a state that would be the same again is no longer a difference', () => {
  const overlay = new StateOverlay()
  overlay.update(state, state.withMetadata('who', 'bob').withMessage('More.'))
  overlay.update(state, state)
  assert.equal(overlay.apply(state), state)
})

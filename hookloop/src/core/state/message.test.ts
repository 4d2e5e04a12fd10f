import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isMessage, textMessage, textOf, toInput, toMessage, type Part } from './message.ts'

const parts: readonly Part[] = [
  { type: 'text', text: 'Look: ' },
  { type: 'reasoning', text: 'hidden' },
  { type: 'file', mediaType: 'image/png', data: 'aGk=' },
  { type: 'tool-call', toolCallId: '1', toolName: 'read', input: null },
  { type: 'tool-result', toolCallId: '1', toolName: 'read', output: 'x', isError: true },
  { type: 'text', text: 'done' },
]

test('a text is a message of the user', () => {
  assert.deepEqual(toMessage('hello', 'input'), { role: 'user', content: [{ type: 'text', text: 'hello' }] })
})

test('a message with every kind of part is taken as it is, as a frozen copy', () => {
  const given = { role: 'assistant' as const, content: parts.map((part) => ({ ...part })) }
  const message = toMessage(given, 'input')
  given.content.length = 0
  assert.deepEqual(message.content, parts)
  assert.ok(Object.isFrozen(message) && Object.isFrozen(message.content) && message.content.every(Object.isFrozen))
})

test('the text of a message leaves out reasoning, files and calls', () => {
  assert.equal(textOf(parts), 'Look: done')
  assert.equal(textOf([]), '')
  assert.equal(textOf(textMessage('user', 'alone').content), 'alone')
})

const wrong: { readonly [what: string]: unknown } = {
  'a number': 5,
  null: null,
  'a list of messages': [textMessage('user', 'hi')],
  'an unknown role': { role: 'boss', content: [] },
  'content that is a text': { role: 'user', content: 'hi' },
  'no content': { role: 'user' },
  'a part of no known type': { role: 'user', content: [{ type: 'video', data: '' }] },
  'a text part without text': { role: 'user', content: [{ type: 'text' }] },
  'a file without a media type': { role: 'user', content: [{ type: 'file', data: '' }] },
  'a call without input': { role: 'assistant', content: [{ type: 'tool-call', toolCallId: '1', toolName: 'a' }] },
  'a result without output': { role: 'tool', content: [{ type: 'tool-result', toolCallId: '1', toolName: 'a' }] },
  'a part that is null': { role: 'user', content: [null] },
}

for (const [what, value] of Object.entries(wrong)) {
  test(`${what} is not a message, and the error says what is`, () => {
    assert.equal(isMessage(value), false)
    assert.throws(() => toMessage(value, 'input'), { code: 'INPUT_INVALID', message: /must be a string or a message/ })
  })
}

test('the error about an input says what was given, and that "content" is a list of parts', () => {
  const expected = `The input must be a string or a message: { role, content: [{ type: 'text', text }] }, not`
  for (const [given, message] of [
    [undefined, `${expected} undefined.`],
    [17, `${expected} 17.`],
    [
      { role: 'user', content: 'Hi' },
      `${expected} {"role":"user","content":"Hi"}. Its "content" is a string, not a list of parts.`,
    ],
  ] as const)
    assert.throws(() => toInput(given), { code: 'INPUT_INVALID', message })
})

test('a message with values that are not JSON is rejected, not changed', () => {
  const message = {
    role: 'assistant',
    content: [{ type: 'tool-call', toolCallId: '1', toolName: 'a', input: { at: new Date(0) } }],
  }
  assert.throws(() => toMessage(message, 'input'), { code: 'JSON_INVALID', message: /^The input / })
})

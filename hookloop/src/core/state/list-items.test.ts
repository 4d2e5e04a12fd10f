import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { copiedItems } from './copied-items.fixture.ts'
import { messagesOf, withMessages, withoutMessages } from './inference.ts'
import { List } from './list.ts'
import { textMessage } from './message.ts'

const list = List.from([textMessage('user', 'one'), textMessage('user', 'two')])

test('the messages of a request are an array wherever it is copied, compared or printed', () => {
  const request = withMessages({ system: 'Be brief.', tools: [] }, list)
  const plain = { system: 'Be brief.', tools: [], messages: list.items }
  assert.deepEqual({ ...request }, plain)
  assert.equal(inspect(request), inspect(plain))
  assert.equal(JSON.stringify(request), JSON.stringify(plain))
  assert.deepEqual(structuredClone(request), plain)
  assert.equal(request.messages, request.messages)
})

test('a request whose messages no model reads makes no array', async () => {
  const copied = await copiedItems(() => {
    const request = withMessages({ system: '' }, list.append(textMessage('user', 'three')))
    const changed = withMessages({ ...withoutMessages(request), system: 'Be brief.' }, messagesOf(request))
    assert.deepEqual([changed.system, messagesOf(changed).length], ['Be brief.', 3])
  })
  assert.equal(copied, 0)
})

test('the messages of any other request are those of its array', () => {
  assert.deepEqual(messagesOf({ messages: list.items }).items, list.items)
})

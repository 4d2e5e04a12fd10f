import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createAgent } from '../create-agent.ts'
import { scriptedModel } from '../models/scripted.ts'
import { memoryStore } from '../sessions/stores/memory-store.ts'
import { checkSessionId } from '../sessions/stores/store.ts'
import { serve } from './serve.ts'
import { chatOf, prefixOf, sessionOf } from './session-ids.ts'

const hostile = [
  '..',
  '.',
  '../ann/1',
  'ann/1',
  '/',
  'chat/ann/1',
  '%2F',
  '..%2fann%2f1',
  '\0',
  '\n',
  '\u2028',
  '__proto__',
  'ann~1',
  '＃',
  'é',
  'e\u0301',
  ' ',
]

test('the session of a chat has one user, whatever its ids contain', () => {
  const names = ['ann', 'bob', ...hostile]
  const sessions = names.flatMap((user) => names.map((chat) => sessionOf({ user, chat })))
  assert.equal(new Set(sessions).size, names.length ** 2)
  for (const session of sessions) assert.equal(checkSessionId(session), session)
})

test('no chat id leads to a session of another user', () => {
  const id = fc.string({ unit: 'binary', minLength: 1, maxLength: 6 })
  fc.assert(
    fc.property(id, id, id, id, (user, chat, other, more) => {
      const session = sessionOf({ user, chat })
      assert.deepEqual(chatOf(session), { user, chat })
      assert.equal(session.startsWith(prefixOf(user)), true)
      if (other !== user) assert.notEqual(sessionOf({ user: other, chat: more }), session)
    }),
  )
})

test('an id that is empty, too long, malformed or not a text is answered with 400', () => {
  for (const chat of ['', 'x'.repeat(81), 'é'.repeat(41), '\ud800', undefined, null, 1, {}, ['a']])
    assert.throws(() => sessionOf({ user: 'ann', chat }), { status: 400 })
})

test('a user whose id cannot be part of a session is an error of the program, not of the client', () => {
  for (const user of ['', 'x'.repeat(161), '\ud800'])
    assert.throws(() => sessionOf({ user, chat: 'a' }), { code: 'AGENT_INVALID_OPTION' })
})

test('sessions of other programs are not chats', () => {
  for (const session of [
    '',
    'nightly',
    'chat',
    'chat/ann',
    'chat/ann/',
    'chat/ann/a/b',
    'chat/%/a',
    'chat/a b/c',
    'other/ann/a',
  ])
    assert.equal(chatOf(session), undefined, session)
})

test('a request for which "user" returns null or an empty text is answered with 401, and one with another value with 500', async () => {
  const store = memoryStore()
  const agent = createAgent({ model: scriptedModel([]) })
  const errors: unknown[] = []
  for (const [user, status] of [
    [null, 401],
    ['', 401],
    [5, 500],
    [['ann'], 500],
    [{ id: 'ann' }, 500],
  ] as const) {
    const handle = serve(agent, { store, user: () => user as never, onError: (error) => void errors.push(error) })
    assert.equal((await handle(new Request('http://a.example/api/chat/c'))).status, status, JSON.stringify(user))
  }
  assert.deepEqual(
    errors.map((error) => (error as { code: string }).code),
    ['AGENT_INVALID_OPTION', 'AGENT_INVALID_OPTION', 'AGENT_INVALID_OPTION'],
  )
})

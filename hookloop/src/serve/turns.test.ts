import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAgent } from '../create-agent.ts'
import { scriptedModel } from '../models/scripted.ts'
import type { SessionHead } from '../sessions/session/session-head.ts'
import { memoryStore } from '../sessions/stores/memory-store.ts'
import type { SessionStore } from '../sessions/stores/store.ts'
import { readTurns } from './turns.ts'

/** A store that counts the lines that are read from it. */
function counting(inner: SessionStore): SessionStore & { readonly take: () => number } {
  let count = 0
  return {
    ...inner,
    async read(id, options) {
      const stored = await inner.read(id, options)
      count += stored?.lines.length ?? 0
      return stored
    },
    take: () => {
      const taken = count
      count = 0
      return taken
    },
  }
}

test('the turns of a chat are read once: each further message reads only what is new', async () => {
  const store = counting(memoryStore())
  const agent = createAgent({ model: scriptedModel(() => 'Hello.'), store })
  const createdAt = async (): Promise<number | undefined> =>
    ((await store.read('chat', { after: Infinity }))?.head as SessionHead | undefined)?.createdAt
  const turns = async () => readTurns(store, 'chat', await createdAt())
  assert.deepEqual((await turns()).turns, [])
  const read: number[] = []
  for (let i = 0; i < 5; i++) {
    await agent.run(`Message ${i}`, { session: 'chat', turn: `turn ${i}` })
    const two = await Promise.all([turns(), turns()])
    assert.deepEqual(
      two.map((list) => list.turns.map(({ turn, status }) => `${turn} ${status}`)),
      [0, 1].map(() => Array.from({ length: i + 1 }, (_, n) => `turn ${n} completed`)),
    )
    read.push(store.take())
  }
  assert.equal(
    new Set(read.slice(1)).size,
    1, // the first one also reads the start of the session
    `lines read: ${read.join()}`,
  )
  await store.delete('chat')
  await agent.run('Hello again.', { session: 'chat', turn: 'first' })
  assert.deepEqual(
    (await turns()).turns.map(({ turn }) => turn),
    ['first'],
  )
})

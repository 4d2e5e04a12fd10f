import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tool, type Tool } from '../../agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { readSession } from '../log/read-session.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { dyingStore } from './dying-store.fixture.ts'

const never = new Promise<never>(() => undefined)

/** The starts of model calls in the log of a session. */
async function begins(store: SessionStore): Promise<number> {
  const { records } = readSession((await store.read('s'))!.lines, 's')
  return records.filter((record) => record.type === 'begin' && record.kind === 'inference').length
}

test('a model call that was cut off is repeated by the same agent without a second start in the log, and by a changed one with its own', async () => {
  const started: number[] = []
  for (const added of [
    [],
    [tool({ name: 'new', description: 'New.', input: { type: 'object' }, execute: () => '' })],
  ]) {
    const store = memoryStore()
    const dying = dyingStore(store, { at: 2, stored: true })
    const agent = (each: SessionStore, answer: () => string | Promise<never>, use: readonly Tool[]) =>
      createAgent({ model: scriptedModel(answer as () => string), store: each, use })
    void agent(dying, () => never, []).run('Go.', { session: 's' })
    await dying.died
    assert.equal(await begins(store), 1)
    const run = await agent(store, () => 'Done.', added).resume('s')
    assert.equal(run.text, 'Done.')
    started.push(await begins(store))
  }
  assert.deepEqual(started, [1, 2])
})

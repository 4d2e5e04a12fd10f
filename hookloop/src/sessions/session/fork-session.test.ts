import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { forkSession } from './fork-session.ts'

test('a session is not forked at a line that is not the end of a step', async () => {
  const store = memoryStore()
  const agent = createAgent({ model: scriptedModel(() => 'Done.'), store })
  await agent.run('Go.', { session: 's' })
  for (const at of [0, 99_999]) {
    const wrong = {
      code: 'AGENT_INVALID_OPTION',
      message: `The session has no step ${at}. listPoints returns its steps.`,
    }
    await assert.rejects(forkSession(store, 's', { at }), wrong)
    await assert.rejects(agent.session('s').fork({ at }), wrong)
  }
  assert.equal((await store.list()).length, 1)
})

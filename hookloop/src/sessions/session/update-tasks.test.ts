import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { memoryStore } from '../stores/memory-store.ts'

test('tasks that the model would not see are rejected, and the session is not changed', async () => {
  const session = createAgent({ model: scriptedModel(['One.']), store: memoryStore() }).session()
  await session.send('One.')
  for (const [wrong, message] of [
    [{}, /"tasks" must be a list of tasks/],
    [['x'], /each task must have a content and a status \(pending, in_progress, completed\), not "x"/],
    [[{ titel: 'x' }], /session\.updateTasks: unknown option "titel"/],
    [[{ content: 'x', status: 'done' }], /not \{"content":"x","status":"done"\}/],
    [[{ content: ' ', status: 'pending' }], /each task must have a content/],
  ] as const) {
    await assert.rejects(session.updateTasks(wrong as never), { code: 'AGENT_INVALID_OPTION', message })
  }
  assert.equal((await session.state())!.metadata['hookloop.tasks'], undefined)
})

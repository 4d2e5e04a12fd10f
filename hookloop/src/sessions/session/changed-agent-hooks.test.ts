import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tool } from '../../agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import { guard, hook, observe } from '../../hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { dyingStore } from './dying-store.fixture.ts'

/** An agent with one tool, whose arguments a hook marks. Other hooks note that they run when a run ends. */
function clerk(store: SessionStore, mark: string, seen: string[]) {
  const work = tool({ name: 'work', description: '', input: { type: 'object' }, execute: () => 'done' })
  const marks = hook('beforeToolUse', (ctx) => ctx.withArgs({ mark }))
  const ends = ['onStop', 'afterExecution'] as const
  const hooks = ends.map((trigger) => hook(trigger, (ctx) => (seen.push(`hook ${trigger}`), ctx)))
  const judge = guard('onStop', (ctx) => (seen.push('guard onStop'), ctx))
  const watch = observe(ends, ({ trigger }) => void seen.push(`observer ${trigger}`))
  const model = scriptedModel(({ messages }) => (messages.length < 3 ? { toolCalls: [{ name: 'work' }] } : 'Done.'))
  return createAgent({ model, store, use: [work, marks, ...hooks, judge, watch] })
}

test('the hooks at the end of a run run once in the process that resumes it with a changed agent', async () => {
  let changed = 0
  for (let [at, isDead] = [1, true]; isDead; at++) {
    const inner = memoryStore()
    const dying = dyingStore(inner, { at, stored: true })
    const run = clerk(dying, 'old', []).run('Go.', { session: 's' })
    isDead = await Promise.race([run.then(() => false), dying.died.then(() => true)])
    const seen: string[] = []
    const resumed = await clerk(inner, 'new', seen)
      .resume('s')
      .catch(() => undefined) // it may have ended
    if (resumed === undefined) continue
    changed++
    assert.equal(resumed.status, 'completed')
    assert.deepEqual(
      [at, seen.toSorted()],
      [at, ['guard onStop', 'hook afterExecution', 'hook onStop', 'observer afterExecution', 'observer onStop']],
    )
  }
  assert.ok(changed > 1, `${changed} resumed runs`)
})

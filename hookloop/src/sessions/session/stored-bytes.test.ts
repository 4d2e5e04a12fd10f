import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tool } from '../../core/agent/tool.ts'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import { hook } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { memoryStore } from '../stores/memory-store.ts'

test('what is written to a store grows with the steps of a run, not with their square', async () => {
  const act = tool({ name: 'act', description: 'Acts.', input: { type: 'object' }, execute: () => 'the same' })
  const written = async (steps: number): Promise<number> => {
    const store = memoryStore()
    let step = 0
    const model = scriptedModel(() => ((step += 1) < steps ? { toolCalls: [{ name: 'act', args: {} }] } : 'Done.'))
    const limits = guards({ maxSteps: null, maxTokens: null })
    const progress = hook('afterStep', (ctx) => ctx.withState((state) => state.withMetadata('at', state.stepCount)))
    await createAgent({ model, store, use: [act, limits, progress] }).run('Go.', { session: 's' })
    return (await store.read('s'))!.lines.join('\n').length
  }
  // Snapshots grow, and come the less often the longer they are: with few of them, their number is a matter of chance.
  const [few, many] = [await written(300), await written(1_500)]
  assert.ok(many <= 1.3 * 5 * few, `${many} bytes for 1,500 steps, ${few} for 300`)
})

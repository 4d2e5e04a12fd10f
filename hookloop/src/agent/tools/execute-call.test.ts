import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import type { Json } from '../../state/json.ts'
import { tool, type ToolRun } from '../tool.ts'

test('a tool can copy what it gets, change a part, and call another tool with it', async () => {
  const updates: unknown[] = []
  const inner = async (run: ToolRun) => {
    const { progress, spend, describe, ...rest } = run
    progress('half')
    spend({ inputTokens: 3 })
    return [describe().tools.length, rest.idempotencyKey, rest.signal.aborted, rest.state.stepCount]
  }
  const outer = tool({
    name: 'outer',
    description: 'Calls another tool.',
    input: { type: 'object' },
    timeoutMs: 60_000,
    execute: (_args, run) => inner({ ...run, progress: (update) => updates.push(update) }),
  })
  const model = scriptedModel([{ toolCalls: [{ name: 'outer' }] }, 'Done.'])
  const { execution } = (await createAgent({ model, use: [outer] }).run('Go.')).state
  const [tools, key, aborted, steps] = execution!.steps.at(0)!.toolExecutions[0]!.output as readonly Json[]
  assert.deepEqual([tools, aborted, steps, updates], [1, false, 0, ['half']])
  assert.match(key as string, /tool$/)
  assert.equal(execution!.usage.inputTokens, 23) // two model calls of 10, and the tool's own
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { calls, familyWorld, look, plan, spawn } from '../agent/subagents/family-world.fixture.ts'
import { guard } from '../hooks/hook.ts'
import { inMemory, treeOf } from './in-memory.fixture.ts'

test('the spans of a subagent are inside the step of its parent, under its own name, once', async () => {
  const otel = inMemory({ agentName: 'main' })
  const noRm = guard('beforeToolUse', (ctx) => (ctx.toolCall.args['at'] === 'rm' ? ctx.block('no') : ctx), {
    name: 'noRm',
  })
  const { agent } = familyWorld({ use: [noRm, otel.tracing] })
  await agent.run(plan(calls(spawn('s', 'plain', calls(look('x', 'rm')), 'A.')), 'Done.'))
  assert.deepEqual(treeOf(otel.spans()), [
    'invoke_agent main',
    '  step 1',
    '    chat script',
    '    invoke_agent plain',
    '      step 1',
    '        chat script',
    '        hook noRm',
    '        execute_tool look !',
    '      step 2',
    '        chat script',
    '        hook completion',
    '    execute_tool spawn',
    '  step 2',
    '    chat script',
    '    hook completion',
  ])
})

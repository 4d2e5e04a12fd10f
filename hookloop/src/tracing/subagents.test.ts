import assert from 'node:assert/strict'
import { test } from 'node:test'
import { calls, familyWorld, look, plan, spawn } from '../core/subagents/family-world.fixture.ts'
import { guard } from '../core/hooks/hook.ts'
import { approval } from '../capabilities/approval.ts'
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

test('a run that waits for its subagent ends the spans of both, and they continue in new ones', async () => {
  const otel = inMemory({ agentName: 'main' })
  const asks = guard('beforeToolUse', (ctx) => (ctx.toolCall.args['at'] === 'rm' ? ctx.ask('Sure?') : ctx), {
    name: 'asks',
  })
  const { agent } = familyWorld({ use: [asks, approval('suspend'), otel.tracing] })
  const run = await agent.run(plan(calls(spawn('s', 'plain', calls(look('x', 'rm')), 'A.')), 'Done.'))
  assert.ok(run.status === 'suspended')
  assert.deepEqual(treeOf(otel.spans()), [
    'invoke_agent main',
    '  step 1',
    '    chat script',
    '    invoke_agent plain',
    '      step 1',
    '        chat script',
    '        hook asks',
  ])
  const before = otel.spans().length
  const resumed = await agent.resume(run, { answers: { [run.pending[0]!.id]: 'allow' } })
  assert.equal(resumed.status, 'completed')
  assert.deepEqual(treeOf(otel.spans().slice(before)), [
    'invoke_agent main',
    '  step 1',
    '    invoke_agent plain',
    '      step 1',
    '        hook asks',
    '        hook hookloop',
    '        hook asks',
    '        execute_tool look',
    '      step 2',
    '        chat script',
    '        hook completion',
    '    execute_tool spawn',
    '  step 2',
    '    chat script',
    '    hook completion',
  ])
  const [first, second] = otel.spans().filter(({ name }) => name === 'invoke_agent plain')
  assert.deepEqual(
    second!.links.map((link) => link.context),
    [first!.spanContext()],
  )
})

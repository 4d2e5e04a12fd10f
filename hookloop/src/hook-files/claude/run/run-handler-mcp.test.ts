import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { tool } from '../../../core/agent/tool.ts'
import { mcp, type Mcp } from '../../../capabilities/mcp/mcp.ts'
import { real } from '../../../capabilities/mcp/mcp.fixture.ts'
import { createAgent } from '../../../create-agent.ts'
import type { JsonObject } from '../../../values/json.ts'
import { scriptedModel } from '../../../models/scripted.ts'
import { claudeHooks } from '../claude-hooks.ts'

async function servers(t: TestContext, tools = ['*']): Promise<Mcp> {
  const connected = await mcp({ servers: { guards: { ...real, tools } } })
  t.after(() => connected.close())
  return connected
}

/** The result of a call of `work` with one handler, and the warnings. */
async function worked(connected: Mcp, handler: JsonObject): Promise<{ output: unknown; warnings: readonly string[] }> {
  const settings = { hooks: { PreToolUse: [{ matcher: 'work', hooks: [{ type: 'mcp_tool', ...handler }] }] } }
  const work = tool({ name: 'work', description: 'Works.', input: { type: 'object' }, execute: () => 'done' })
  const agent = createAgent({
    model: scriptedModel([{ toolCalls: [{ name: 'work', args: { to: 'production' } }] }, 'Done.']),
    use: [work, claudeHooks({ dir: import.meta.dirname, home: false, settings, mcp: connected })],
  })
  const live = agent.stream('Go.')
  const warnings: string[] = []
  for await (const event of live) if (event.type === 'warning') warnings.push(event.message)
  const run = await live.run
  return { output: run.state.execution!.steps.at(0)!.toolExecutions[0]!.output, warnings }
}

const denies = {
  hookSpecificOutput: {
    hookEventName: 'PreToolUse',
    permissionDecision: 'deny',
    permissionDecisionReason: 'Not to ${tool_input.to}.',
  },
}

test('an mcp_tool handler calls a tool of a connected server with fields of the event', async (t) => {
  const handler = { server: 'guards', tool: 'echo', input: { text: JSON.stringify(denies) } }
  const { output, warnings } = await worked(await servers(t), handler)
  assert.match(String(output), /Not to production\./)
  assert.deepEqual(warnings, [])
})

const failing: readonly [what: string, handler: JsonObject, why: RegExp][] = [
  ['a tool that says it is an error', { server: 'guards', tool: 'fail' }, /guards\/fail: The disk is full/],
  ['a server that is not there', { server: 'other', tool: 'echo' }, /one of the connected servers: guards/],
  ['a tool that is not offered', { server: 'guards', tool: 'add', input: { a: 1, b: 2 } }, /has no tool/],
  ['arguments that do not fit', { server: 'guards', tool: 'echo', input: { text: 1 } }, /are not valid/],
]
for (const [what, handler, why] of failing) {
  test(`an mcp_tool handler fails with ${what}, and blocks with onFailure "block"`, async (t) => {
    const connected = await servers(t, ['echo', 'fail'])
    const open = await worked(connected, handler)
    const closed = await worked(connected, { ...handler, onFailure: 'block' })
    assert.equal(open.output, 'done')
    assert.match(open.warnings.join('\n'), why)
    assert.match(String(closed.output), /The hook "\w+\/\w+" (?:did not answer|could not be started)/)
    assert.doesNotMatch(String(closed.output), why)
  })
}

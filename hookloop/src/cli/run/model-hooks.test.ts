import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { real } from '../../capabilities/mcp/mcp.fixture.ts'
import { ProjectWithHooks } from '../project-with-hooks.fixture.ts'

// What handlers of Claude Code ask is asked of the model, and of the servers, of the agent that the command runs.

/** An agent whose model blocks what names production, and calls `work` with the input. */
function agentCode(use: string): string {
  return `import { appendFileSync } from 'node:fs'
import { tool } from 'hookloop'
import { mcp } from 'hookloop/mcp'
import { scriptedModel } from 'hookloop/testing'
const input = { type: 'object', properties: { to: { type: 'string' } } }
const execute = ({ to }) => { appendFileSync(process.env.MARKS, 'worked ' + to + '\\n'); return 'done' }
const work = tool({ name: 'work', description: 'Works.', input, execute })
const model = scriptedModel(({ messages, tools }) => {
  const last = messages.at(-1)
  const said = last.content.map(({ text, output }) => text ?? output).join(' ')
  const ok = !said.includes('"to":"production"')
  const verdict = ok ? { ok } : { ok, reason: 'Never to production.' }
  if (tools.some(({ name }) => name === 'final_answer')) return { toolCalls: [{ name: 'final_answer', args: verdict }] }
  return last.role === 'tool' ? 'It says: ' + said : { toolCalls: [{ name: 'work', args: { to: said } }] }
})
export default { model, use: [work, ${use}] }
`
}

function projectWith(handler: object, use = ''): ProjectWithHooks {
  const project = new ProjectWithHooks()
  writeFileSync(project.agent, agentCode(use))
  project.write('.claude/settings.json', { hooks: { PreToolUse: [{ matcher: 'work', hooks: [handler] }] } })
  return project
}

describe('handlers that call a model or an MCP server', { concurrency: 2 }, () => {
  test('of the type prompt are answered by the model of the conversation, whatever model they name', async () => {
    const project = projectWith({ type: 'prompt', prompt: 'Is it safe? $ARGUMENTS', model: 'claude-haiku-4-5' })
    await project.trust('--yes')
    const no = await project.run('production')
    const yes = await project.run('staging')
    assert.deepEqual([no.code, yes.code, project.marked()], [3, 0, ['worked staging']])
    assert.match(`${no.stdout}${no.stderr}`, /Never to production\./)
  })

  test('of the type mcp_tool call servers that the agent has connected', async () => {
    const decision = { hookEventName: 'PreToolUse', permissionDecision: 'deny' }
    const text = JSON.stringify({
      hookSpecificOutput: { ...decision, permissionDecisionReason: 'No ${tool_input.to}.' },
    })
    const handler = { type: 'mcp_tool', server: 'guards', tool: 'echo', input: { text } }
    const project = projectWith(handler, `await mcp({ servers: { guards: ${JSON.stringify(real)} } })`)
    await project.trust('--yes')
    const { code, stdout } = await project.run('production')
    assert.deepEqual([code, project.marked()], [0, []])
    assert.match(stdout, /No production\./)
  })
})

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { files } from '../../capabilities/files/files.ts'
import { selfCritique } from '../../capabilities/self-critique.ts'
import { subagents } from '../../capabilities/subagents/subagents.ts'
import { toolRegistry } from '../../capabilities/tool-registry/tool-registry.ts'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { tool } from '../agent/tool.ts'

const root = mkdtempSync(join(tmpdir(), 'hookloop-child-tools-'))
after(() => rmSync(root, { recursive: true }))
const spawn = { toolCalls: [{ name: 'spawn_subagent', args: { subagent: 'reader', prompt: 'Look.' } }] }
const reader = (model: ReturnType<typeof scriptedModel>) =>
  subagents({ agents: { reader: { description: 'Reads.', model } } })

test('a tool works for a subagent as for its parent', async () => {
  writeFileSync(join(root, 'note.txt'), 'hello\n')
  const child = scriptedModel([{ toolCalls: [{ name: 'read_file', args: { path: 'note.txt' } }] }, 'read'])
  await createAgent({ model: scriptedModel([spawn, 'done']), use: [files({ root }), reader(child)] }).run('go')
  const shown = JSON.stringify(child.requests.at(-1)!.messages.at(-1)!)
  assert.match(shown, /"output":" +1\\thello/)
})

test('a subagent is sent only the loaded tools of a tool registry, as its parent is', async () => {
  const many = Array.from({ length: 200 }, (_, i) =>
    tool({ name: `tool_${i}`, description: 'One.', input: { type: 'object' }, execute: () => 'done' }),
  )
  const child = scriptedModel(['seen'])
  const use = [toolRegistry({ tools: many }), reader(child)]
  await createAgent({ model: scriptedModel([spawn, 'done']), use }).run('go')
  assert.deepEqual(
    child.requests[0]!.tools.map(({ name }) => name).toSorted((a, b) => (a < b ? -1 : 1)),
    ['spawn_subagent', 'tools'],
  )
})

test('the critic of the parent does not judge the answer of a subagent', async () => {
  const critic = scriptedModel([JSON.stringify({ verdict: 'approve', summary: '', weaknesses: [], suggestions: [] })])
  const use = [selfCritique({ model: critic }), reader(scriptedModel(['seen']))]
  const run = await createAgent({ model: scriptedModel([spawn, 'done']), use }).run('go')
  const output = run.state.execution!.steps.at(0)!.toolExecutions[0]?.output
  assert.deepEqual([run.status, output, critic.requests.length], ['completed', 'seen', 1])
})

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { claudeEventNames } from '../../hook-files/claude/events/claude-events.ts'
import { prints } from '../../hook-files/claude/hook-project.fixture.ts'
import { chat } from '../commands/chat.ts'
import { Terminal } from '../terminal/terminal.fixture.ts'
import { ProjectWithHooks } from '../project-with-hooks.fixture.ts'

/** A project whose hooks log every event that they receive, with its details. */
function telling(): ProjectWithHooks {
  const project = new ProjectWithHooks()
  const what =
    '[e.hook_event_name, e.source ?? e.trigger ?? e.reason ?? e.tool_name ?? e.prompt ?? ""].join(" ").trim()'
  const hooks = [{ type: 'command', command: `${prints(what)} >> '${project.marks}'` }]
  project.write('.claude/settings.json', {
    hooks: Object.fromEntries(claudeEventNames.map((name) => [name, [{ hooks }]])),
  })
  return project
}

const turn = ['UserPromptSubmit work x', 'PreToolUse work', 'worked x', 'PostToolUse work', 'PostToolBatch']
const end = ['MessageDisplay', 'Stop']

test('hookloop run fires the events of Claude Code in their order', async () => {
  const project = telling()
  await project.trust('--yes')
  const { code, stderr } = await project.run('work x')
  assert.equal(code, 0, stderr)
  assert.deepEqual(project.marked(), ['SessionStart startup', ...turn, ...end, 'SessionEnd other'])
})

test('hookloop chat fires them too, with compact, clear and exit', async () => {
  const project = telling()
  const agent = join(project.root, 'summing.mjs')
  const sums = `import { summarization } from 'hookloop/summarization'\n`
  const code = readFileSync(project.agent, 'utf8')
  writeFileSync(agent, `${sums}${code.replace('use: [', "use: [summarization({ summarize: () => 'sum' }), ")}`)
  await project.trust('--yes')
  process.chdir(project.dir)
  Object.assign(process.env, project.env)
  const terminal = new Terminal()
  const chatting = chat({ agent, session: 'talk', stream: true }, terminal.cli(project.env))
  for (const line of ['work x', '/compact', 'hello', '/clear', 'bye', '/exit']) await terminal.after('› ', `${line}\r`)
  assert.equal(await chatting, 0)
  assert.deepEqual(project.marked(), [
    'SessionStart startup',
    ...turn,
    ...end,
    'UserPromptSubmit hello',
    'PreCompact manual',
    'SessionStart compact',
    'PostCompact manual',
    ...end,
    'SessionEnd clear',
    'SessionStart clear',
    'UserPromptSubmit bye',
    ...end,
    'SessionEnd prompt_input_exit',
  ])
})

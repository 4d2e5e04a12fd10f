import assert from 'node:assert/strict'
import { test } from 'node:test'
import { run } from '../commands/run.ts'
import { Terminal } from '../terminal/terminal.fixture.ts'
import { ProjectWithHooks } from '../project-with-hooks.fixture.ts'

/** A project that wants this shown in place of every text. */
async function showing(displayContent: string): Promise<ProjectWithHooks> {
  const project = new ProjectWithHooks()
  const says = { hookSpecificOutput: { hookEventName: 'MessageDisplay', displayContent } }
  const hooks = [{ type: 'command', command: `echo '${JSON.stringify(says)}'` }]
  project.write('.claude/settings.json', { hooks: { MessageDisplay: [{ hooks }] } })
  await project.trust('--yes')
  process.chdir(project.dir)
  Object.assign(process.env, project.env)
  return project
}

async function screenOf(project: ProjectWithHooks, flags: { stream: boolean; quiet?: boolean; json?: boolean }) {
  const terminal = new Terminal()
  assert.equal(await run(['hello'], { agent: project.agent, ...flags }, terminal.cli(project.env)), 0)
  return terminal.written
}

test('a hook can replace the display of an answer that is not streamed', async () => {
  const project = await showing('(four words)\u001B[2J')
  for (const flags of [{ stream: false }, { stream: false, quiet: true }, { stream: true, quiet: true }]) {
    const written = await screenOf(project, flags)
    assert.match(written, /\(four words\)/)
    assert.ok(!written.includes('I heard hello') && !written.includes('\u001B[2J'), written)
  }
})

test('a streamed answer is displayed as it is, and a pipe gets the answer itself', async () => {
  const project = await showing('(four words)')
  const streamed = await screenOf(project, { stream: true })
  const lines = await screenOf(project, { stream: false, json: true })
  const { stdout } = await project.run('hello', '--no-stream')
  assert.match(streamed, /I heard hello/)
  assert.match(lines, /"text":"I heard hello"/)
  assert.equal(stdout, 'I heard hello\n')
})

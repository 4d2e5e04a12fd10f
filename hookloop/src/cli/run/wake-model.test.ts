import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { chat } from '../commands/chat.ts'
import { Terminal } from '../terminal/terminal.fixture.ts'
import { ProjectWithHooks } from '../project-with-hooks.fixture.ts'

/** A project with a hook that wakes the model when a file says that it may. */
async function waking(event: string, command: string): Promise<ProjectWithHooks> {
  const project = new ProjectWithHooks()
  project.write('.claude/settings.json', {
    hooks: { [event]: [{ hooks: [{ type: 'command', command, asyncRewake: true }] }] },
  })
  await project.trust('--yes')
  process.chdir(project.dir)
  Object.assign(process.env, project.env)
  return project
}

function talk(project: ProjectWithHooks, session = 'talk') {
  const terminal = new Terminal()
  return { terminal, ended: chat({ agent: project.agent, session, stream: true }, terminal.cli(project.env)) }
}

const once = 'until [ -e go ]; do sleep 0.02; done; [ -e went ] && exit 0; touch went;'

test('a background hook that exits with 2 wakes the model at the prompt, and the typed text stays', async () => {
  const project = await waking('Stop', `${once} echo "the build broke" >&2; exit 2`)
  const { terminal, ended } = talk(project)
  await terminal.after('› ', 'hello\r')
  await terminal.after('completed', '')
  await terminal.after('› ', 'half a ')
  writeFileSync(join(project.dir, 'go'), '')
  await terminal.after('a hook wakes the model: the build broke', '')
  await terminal.after('the build broke', '') // the model has heard it
  await terminal.after('completed', '')
  await terminal.after('half a ', 'word\r')
  await terminal.after('look into the report and act on it., half a word', '')
  await terminal.after('› ', '\u0004')
  assert.equal(await ended, 0)
})

test('a hook that wakes the model after every turn is limited', async () => {
  const project = await waking('Stop', 'echo again >&2; exit 2')
  const { terminal, ended } = talk(project)
  await terminal.after('› ', 'hello\r')
  await terminal.after('it receives them with your next message', '')
  await terminal.after('› ', '\u0004')
  assert.equal(await ended, 0)
  assert.equal(terminal.written.match(/a hook wakes the model/g)?.length, 8)
})

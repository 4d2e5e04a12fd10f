import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chat } from '../commands/chat.ts'
import { run } from '../commands/run.ts'
import { Terminal } from '../terminal/terminal.fixture.ts'
import { ProjectWithHooks } from '../project-with-hooks.fixture.ts'

const title = '\u001B]2;your turn\u0007'
const clipboard = '\u001B]52;c;aGk=\u0007'

/** A project that writes to the terminal when something is said, before its answer and after it. */
async function writing(sequence: string): Promise<ProjectWithHooks> {
  const project = new ProjectWithHooks()
  const says = { type: 'command', command: `echo '${JSON.stringify({ terminalSequence: sequence })}'` }
  const beside = { ...says, async: true }
  project.write('.claude/settings.json', {
    hooks: { UserPromptSubmit: [{ hooks: [says] }], Stop: [{ hooks: [beside] }] },
  })
  await project.trust('--yes')
  process.chdir(project.dir)
  Object.assign(process.env, project.env)
  return project
}

function placeAt(terminal: Terminal, project: ProjectWithHooks, TERM = 'xterm') {
  const cli = terminal.cli(project.env)
  return { ...cli, env: { ...cli.env, TERM } }
}

test('a title that a hook sets is written to the terminal, also by an async hook', async () => {
  const project = await writing(title)
  const terminal = new Terminal()
  const chatting = chat({ agent: project.agent, session: 'talk', stream: true }, placeAt(terminal, project))
  await terminal.after('› ', 'hello\r')
  await terminal.after(title, '')
  await terminal.after(title, '\u0004')
  assert.equal(await chatting, 0)
})

test('another escape sequence is not written, and the user gets a warning', async () => {
  const project = await writing(`${title}${clipboard}`)
  const terminal = new Terminal()
  const chatting = chat({ agent: project.agent, session: 'talk', stream: true }, placeAt(terminal, project))
  await terminal.after('› ', 'hello\r')
  await terminal.after('completed', '\u0004')
  assert.equal(await chatting, 0)
  assert.match(terminal.written, /UserPromptSubmit hook: its "terminalSequence" is ignored/)
  assert.ok(!terminal.written.includes('\u001B]'))
})

test('no sequence is written with --json, to a dumb terminal, or to a pipe', async () => {
  const project = await writing(title)
  const flags = { agent: project.agent, stream: true }
  const [lines, dumb] = [new Terminal(), new Terminal()]
  assert.equal(await run(['hello'], { ...flags, json: true }, placeAt(lines, project)), 0)
  assert.equal(await run(['hello'], flags, placeAt(dumb, project, 'dumb')), 0)
  const piped = await project.run('hello')
  for (const written of [lines.written, dumb.written, piped.stdout, piped.stderr])
    assert.ok(!written.includes('\u001B]'))
  assert.match(lines.written, /"status":"completed"/)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chat } from './chat.ts'
import { ScriptedProject } from '../scripted-project.fixture.ts'
import { Terminal } from '../terminal/terminal.fixture.ts'

async function led(
  keys: readonly (readonly [after: string, keys: string])[],
  session = 'talk',
  project = new ScriptedProject(),
) {
  const terminal = new Terminal()
  const chatting = chat({ agent: project.agent, session, stream: true }, terminal.cli(project.env))
  for (const [after, press] of keys) await terminal.after(after, press)
  return { code: await chatting, written: terminal.written, project }
}

test('chat at a terminal takes messages and commands, and prints how to continue', async () => {
  const { code, written } = await led([
    ['› ', 'hello\r'],
    ['completed', ''],
    ['› ', '/model\r'],
    ['› ', '/explain\r'],
    ['› ', '/fork\r'],
    ['› ', '/compact\r'],
    ['› ', '/clear\r'],
    ['› ', ' /slash\r'],
    ['› ', '/nothing\r'],
    ['› ', '/exit\r'],
  ])
  assert.equal(code, 0)
  assert.match(written, /^talk · scripted\/script · \/help lists commands/)
  assert.match(written, /I heard hello\r?\n✓ completed/)
  assert.match(written, /The model is scripted\/script\./)
  assert.match(written, /The run is complete: .*\n +spent +1 step/)
  assert.match(
    written,
    /This is now (talk-\w+); talk does not change\.[^]*saved as \1 · continue with: hookloop chat --session \1\n$/,
  )
  assert.match(written, /This agent cannot summarize: /)
  assert.match(written, /Cleared\.[^]*I heard \/slash\r?\n/)
  assert.match(written, /Unknown command \/nothing\./)
})

test('chat asks for approvals at the terminal', async () => {
  const { project, written } = await led([
    ['› ', 'deploy one\r'],
    ['Allow this call?', 'y\n'],
    ['› ', 'deploy two\r'],
    ['Allow this call?', 'not on Fridays\n'],
    ['› ', 'deploy three\r'],
    ['Allow this call?', 'e\n'],
    ['JSON', '{"to":"staging"}\n'],
    ['› ', '\u0004'],
  ])
  assert.deepEqual(project.done(), ['deployed to one', 'deployed to staging'])
  assert.match(written, /It says: The user blocked this call: not on Fridays/)
})

test('an approval that is answered later ends the conversation, and is asked again when it continues', async () => {
  const later = await led([
    ['› ', 'deploy one\r'],
    ['Allow this call?', 'l\n'],
  ])
  assert.deepEqual([later.code, later.project.done()], [4, []])
  assert.match(later.written, /hookloop approve \w{8}, or hookloop block/)
  const back = await led(
    [
      ['Allow this call?', 'y\n'],
      ['› ', '\u001B[A\r'],
      ['Allow this call?', 'n\n'],
      ['Reason', '\n'],
      ['› ', '\u0004'],
    ],
    'talk',
    later.project,
  )
  assert.deepEqual([back.code, back.project.done()], [0, ['deployed to one']])
})

test('Ctrl-C cancels a run and the conversation continues; pressed twice at the prompt, it exits', async () => {
  const terminal = new Terminal()
  const project = new ScriptedProject()
  const chatting = chat({ agent: project.agent, session: 'talk', stream: true }, terminal.cli(project.env))
  await terminal.after('› ', 'slow\r')
  await terminal.after('word word', '')
  process.emit('SIGINT', 'SIGINT') // as a terminal sends it while no line is edited
  await terminal.after('■ cancelled', '')
  await terminal.after('› ', 'hello\r')
  await terminal.after('I heard slow, hello', '')
  await terminal.after('› ', 'half\u0003')
  await terminal.after('Press Ctrl-C again, or Ctrl-D, to exit.', '\u0003')
  assert.equal(await chatting, 0)
})

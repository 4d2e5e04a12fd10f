import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chat } from './chat.ts'
import { Workshop } from '../scripted-project.fixture.ts'
import { Terminal } from '../terminal/terminal.fixture.ts'

async function led(keys: readonly (readonly [after: string, keys: string])[], session = 'talk', shop = new Workshop()) {
  const terminal = new Terminal()
  const chatting = chat({ agent: shop.agent, session, stream: true }, terminal.cli(shop.env))
  for (const [after, press] of keys) await terminal.after(after, press)
  return { code: await chatting, written: terminal.written, shop }
}

test('a conversation at a terminal: messages, commands, and the way back to it', async () => {
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
  assert.match(written, /decided by +completion/)
  assert.match(
    written,
    /This is now (talk-\w+); talk does not change\.[^]*saved as \1 · continue with: hookloop chat --session \1\n$/,
  )
  assert.match(written, /This agent cannot summarize: /)
  assert.match(written, /Cleared\.[^]*I heard \/slash\r?\n/)
  assert.match(written, /Unknown command \/nothing\./)
})

test('questions are asked where the conversation is', async () => {
  const { shop, written } = await led([
    ['› ', 'deploy one\r'],
    ['Allow this call?', 'y\n'],
    ['› ', 'deploy two\r'],
    ['Allow this call?', 'not on Fridays\n'],
    ['› ', 'deploy three\r'],
    ['Allow this call?', 'e\n'],
    ['JSON', '{"to":"staging"}\n'],
    ['› ', '\u0004'],
  ])
  assert.deepEqual(shop.done(), ['deployed to one', 'deployed to staging'])
  assert.match(written, /It says: The user denied this call: not on Fridays/)
})

test('a question that is left for later ends the conversation; who comes back is asked again', async () => {
  const later = await led([
    ['› ', 'deploy one\r'],
    ['Allow this call?', 'l\n'],
  ])
  assert.deepEqual([later.code, later.shop.done()], [4, []])
  assert.match(later.written, /hookloop approve \w{8}, or hookloop deny/)
  const back = await led(
    [
      ['Allow this call?', 'y\n'],
      ['› ', '\u001B[A\r'],
      ['Allow this call?', 'n\n'],
      ['Reason', '\n'],
      ['› ', '\u0004'],
    ],
    'talk',
    later.shop,
  )
  assert.deepEqual([back.code, back.shop.done()], [0, ['deployed to one']])
})

test('Ctrl-C cancels an answer and the conversation goes on; at the prompt it leaves when pressed twice', async () => {
  const terminal = new Terminal()
  const shop = new Workshop()
  const chatting = chat({ agent: shop.agent, session: 'talk', stream: true }, terminal.cli(shop.env))
  await terminal.after('› ', 'slow\r')
  await terminal.after('word word', '')
  process.emit('SIGINT', 'SIGINT') // as a terminal sends it while nobody edits a line
  await terminal.after('■ cancelled', '')
  await terminal.after('› ', 'hello\r')
  await terminal.after('I heard slow, hello', '')
  await terminal.after('› ', 'half\u0003')
  await terminal.after('Press Ctrl-C again, or Ctrl-D, to exit.', '\u0003')
  assert.equal(await chatting, 0)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pipes, terminal } from '../cli.fixture.ts'
import { Screen } from './screen.ts'

const env = { NO_COLOR: '1' }

test('the answer goes to stdout as it was written, everything else to stderr', () => {
  const { out, err, stdout, stderr } = pipes()
  const screen = new Screen({ out, err, env })
  screen.aside('thinking: ')
  screen.aside('hm')
  screen.answer('Hello ')
  screen.line('a line')
  screen.answer('world')
  screen.endAnswer()
  screen.line('the end')
  assert.deepEqual([stdout(), stderr()], ['Hello world\n', 'thinking: hm\na line\nthe end\n'])
})

test('on one terminal no line starts in the middle of another', () => {
  const { out, err, written } = terminal()
  const screen = new Screen({ out, err, env })
  screen.aside('thinking')
  screen.answer('Hello ')
  screen.line('a line')
  screen.answer('world')
  screen.endAnswer()
  screen.line('the end')
  assert.equal(written(), 'thinking\nHello \na line\nworld\nthe end\n')
})

test('escape sequences of models reach neither a terminal nor a pipe', () => {
  const { out, err, stdout, stderr } = pipes()
  const screen = new Screen({ out, err, env })
  screen.answer('\u001B[2Ja')
  screen.aside('\u001B[2Jb')
  assert.deepEqual([stdout(), stderr()], ['[2Ja', '[2Jb'])
})

test('the spinner is hidden while a line of the answer is written, and returns after it', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { out, err, written } = terminal()
  const screen = new Screen({ out, err, env, status: () => 'busy' })
  screen.startSpinner()
  t.mock.timers.tick(100)
  screen.answer('Hello')
  t.mock.timers.tick(200)
  screen.endAnswer()
  t.mock.timers.tick(100)
  screen.stopSpinner()
  t.mock.timers.tick(200)
  const cleared = '\r\u001B[K'
  assert.equal(written(), `${cleared}⠋ busy${cleared}Hello\n${cleared}⠙ busy${cleared}`)
})

test('there is no spinner in a pipe or on a dumb terminal', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const [piped, dumb] = [pipes(), terminal()]
  const screens = [
    new Screen({ ...piped, env, status: () => 'busy' }),
    new Screen({ ...dumb, env: { TERM: 'dumb' }, status: () => 'busy' }),
  ]
  for (const screen of screens) screen.startSpinner()
  t.mock.timers.tick(200)
  for (const screen of screens) screen.stopSpinner()
  assert.deepEqual([piped.stderr(), dumb.written()], ['', ''])
})

test('a surrogate pair in two pieces is written when it is complete', () => {
  const { out, err, stdout, stderr } = pipes()
  const screen = new Screen({ out, err, env })
  for (const half of '😀'.split('')) screen.aside(half)
  const pieces: string[] = []
  const cut = new Screen({ out: { write: (piece) => pieces.push(piece) }, err, env })
  for (const piece of ['a\uD83D', '\uDE00b', '\uD83D']) cut.answer(piece)
  cut.endAnswer()
  assert.deepEqual([pieces, stdout(), stderr()], [['a', '😀b', '\uD83D\n'], '', '😀'])
})

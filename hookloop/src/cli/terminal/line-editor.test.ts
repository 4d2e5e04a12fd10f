import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { LineEditor, type Typed } from './line-editor.ts'

// Node edits no lines if the terminal of the tests is a dumb one.
const { TERM } = process.env
before(() => {
  process.env['TERM'] = 'xterm'
})
after(() => {
  if (TERM === undefined) delete process.env['TERM']
  else process.env['TERM'] = TERM
})

/** What comes of keys that are pressed one bunch after the other. */
async function type(bunches: readonly string[], history: readonly string[] = [], reads = 1): Promise<readonly Typed[]> {
  const stdin = new PassThrough()
  const editor = new LineEditor({ stdin, output: new PassThrough(), history, words: ['/help', '/clear'] })
  const typed: Typed[] = []
  const keys = [...bunches]
  for (let i = 0; i < reads; i++) {
    const before = typed.length
    const reading = editor.read('› ').then((each) => typed.push(each))
    while (typed.length === before && keys.length > 0) {
      stdin.write(keys.shift())
      await sleep(40)
    }
    await reading
  }
  return typed
}

test('a line has the edits of the user', async () => {
  assert.deepEqual(await type(['helo\u001B[Dl\u001B[F!\r']), [{ text: 'hello!' }])
})

test('pasted lines are one message, also without a last line end', async () => {
  assert.deepEqual(await type(['one\rtwo\rthree', '\r']), [{ text: 'one\ntwo\nthree' }])
})

test('the history has earlier lines, also those of an earlier process', async () => {
  const typed = await type(['new\r', '\u001B[A\u001B[A\r'], ['older', 'old'], 2)
  assert.deepEqual(typed, [{ text: 'new' }, { text: 'old' }])
})

test('the tab key completes commands', async () => {
  assert.deepEqual(await type(['/cl', '\t', '\r']), [{ text: '/clear' }])
})

test('Ctrl-C interrupts and Ctrl-D ends, and the editor can be used again', async () => {
  const typed = await type(['some\u0003', '\u0004', 'more\r'], [], 3)
  assert.deepEqual(typed, ['interrupted', 'ended', { text: 'more' }])
})

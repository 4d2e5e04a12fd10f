import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Spinner } from './spinner.ts'

function spinnerOn(columns: number, mayDraw: () => boolean = () => true) {
  const written: string[] = []
  const spinner = new Spinner(
    { columns, write: (text) => written.push(text) },
    { line: () => '1.0 s · working on it', paint: (line) => `<${line}>`, mayDraw },
  )
  return { spinner, written }
}

test('a frame replaces the one before, and clearing leaves an empty line', () => {
  const { spinner, written } = spinnerOn(80)
  spinner.draw()
  spinner.draw()
  spinner.clear()
  spinner.clear()
  const line = '\r\u001B[K'
  assert.deepEqual(written, [`${line}<⠋ 1.0 s · working on it>`, `${line}<⠙ 1.0 s · working on it>`, line])
})

test('a line that would wrap is cut, because it could not be cleared', () => {
  const { spinner, written } = spinnerOn(12)
  spinner.draw()
  assert.deepEqual(written, ['\r\u001B[K<⠋ 1.0 s · …>'])
})

test('nothing is drawn in the middle of a line', () => {
  const { spinner, written } = spinnerOn(80, () => false)
  spinner.draw()
  spinner.clear()
  assert.deepEqual(written, [])
})

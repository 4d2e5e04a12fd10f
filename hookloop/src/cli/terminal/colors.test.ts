import assert from 'node:assert/strict'
import { test } from 'node:test'
import { colorsFor } from './colors.ts'

const isColored = (isTTY: boolean, env: { readonly [name: string]: string }): boolean =>
  colorsFor({ isTTY }, env).isColorSupported

test('colours are used on a terminal only', () => {
  assert.deepEqual([isColored(true, {}), isColored(false, {}), isColored(true, { TERM: 'dumb' })], [true, false, false])
})

test('NO_COLOR turns colours off, FORCE_COLOR on, and NO_COLOR wins', () => {
  const answers = [
    isColored(true, { NO_COLOR: '1' }),
    isColored(true, { NO_COLOR: '' }),
    isColored(false, { FORCE_COLOR: '1' }),
    isColored(true, { FORCE_COLOR: '0' }),
    isColored(true, { FORCE_COLOR: '1', NO_COLOR: '1' }),
  ]
  assert.deepEqual(answers, [false, true, true, false, false])
})

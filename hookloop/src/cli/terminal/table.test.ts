import assert from 'node:assert/strict'
import { test } from 'node:test'
import pico from 'picocolors'
import { table, widthOf } from './table.ts'

test('columns are aligned whatever the colours, and no line ends with blanks', () => {
  const { red } = pico.createColors(true)
  const rows = [
    ['a', red('long'), 'z'],
    [red('wide'), 'b', red('')],
  ]
  assert.equal(table(rows), `a     ${red('long')}  z\n${red('wide')}  b`)
  assert.equal(widthOf(rows), 'wide  long  z'.length)
})

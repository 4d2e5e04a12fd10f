import assert from 'node:assert/strict'
import { test } from 'node:test'
import { table, widthOf } from './table.ts'

test('columns are aligned whatever the colours, and no line ends with blanks', () => {
  const paint = (text: string): string => `<${text}>`
  const rows = [
    [{ text: 'a' }, { text: 'long', paint }, { text: 'z' }],
    [{ text: 'wide', paint }, { text: 'b' }],
  ]
  assert.equal(table(rows), 'a     <long>  z\n<wide>  b')
  assert.equal(widthOf(rows), 'wide  long  z'.length)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { table, widthOf } from './table.ts'

test('columns stand below each other whatever the cells are painted with, and no line ends in blanks', () => {
  const paint = (text: string): string => `<${text}>`
  const rows = [
    [{ text: 'a' }, { text: 'long', paint }, { text: 'z' }],
    [{ text: 'wide', paint }, { text: 'b' }],
  ]
  assert.equal(table(rows), 'a     <long>  z\n<wide>  b')
  assert.equal(widthOf(rows), 'wide  long  z'.length)
})

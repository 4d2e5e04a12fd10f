import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { flat, isHigherBetter, markdownTable, merged } from './report.ts'

suite('the report of the benchmark', () => {
  test('has the figures of all measurements in one object', () => {
    const figures = merged([
      { a: 1, median: { a: 2 } },
      { b: { c: null }, median: { b: 3 } },
    ])
    assert.deepEqual(figures, { a: 1, b: { c: null }, median: { a: 2, b: 3 } })
    assert.deepEqual(
      [...flat(figures)],
      [
        ['a', 1],
        ['median.a', 2],
        ['median.b', 3],
        ['b.c', null],
      ],
    )
  })

  test('shows a figure that is missing as –', () => {
    const table = markdownTable([
      { label: 'µs per step', value: 1234.5678, goal: 4 },
      { label: '  by hand', value: null, goal: undefined },
    ])
    assert.deepEqual(table.split('\n').slice(2), ['| µs per step | 1,234.57 | 4 |', '| by hand | – |  |'])
  })

  test('knows that more runs per second are better, and fewer milliseconds', () => {
    assert.deepEqual(['stores.sqlite.recordsPerSec', 'cliMs'].map(isHigherBetter), [true, false])
  })
})

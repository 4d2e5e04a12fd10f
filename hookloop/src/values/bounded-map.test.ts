import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BoundedMap } from './bounded-map.ts'

test('a map with a maximum size drops the entry that was not used for the longest time, and says which', () => {
  const dropped: string[] = []
  const map = new BoundedMap<string, string>(2, (value) => dropped.push(value))
  map.set('a', 'A').set('b', 'B').set('a', 'AA').set('c', 'C')
  assert.deepEqual(dropped.splice(0), ['B'])
  const values = ['a', 'd'].map((key) => map.getOrAdd(key, () => 'D'))
  assert.deepEqual([values, [...map.keys()], dropped], [['AA', 'D'], ['a', 'd'], ['C']])
  assert.deepEqual([map.take('a'), map.has('a'), map.take('a')], ['AA', false, undefined])
})

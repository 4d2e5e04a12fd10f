import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { List } from './list.ts'

test('a list behaves like the array it stands for, whatever was appended to earlier versions of it', () => {
  const operation = fc.record({ from: fc.nat(), count: fc.nat(90), take: fc.option(fc.nat(200)) })
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 30 }), (operations) => {
      const versions: { list: List<number>; array: number[] }[] = [{ list: List.empty(), array: [] }]
      let next = 0
      for (const { from, count, take } of operations) {
        const base = versions[from % versions.length]!
        let list = take === null ? base.list : base.list.take(take)
        const array = take === null ? [...base.array] : base.array.slice(0, take)
        for (let i = 0; i < count; i++) {
          list = list.append(next)
          array.push(next++)
        }
        versions.push({ list, array })
      }
      for (const { list, array } of versions) {
        assert.deepEqual([...list], array)
        assert.equal(list.length, array.length)
        assert.equal(list.at(-1), array.at(-1))
        assert.deepEqual(list.slice(-3), array.slice(-3))
      }
    }),
  )
})

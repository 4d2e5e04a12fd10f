import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { copiedItems } from './copied-items.fixture.ts'
import { List, type FoldCache } from './list.ts'

type Version = { readonly list: List<number>; readonly array: readonly number[] }

/** Versions of one list that were made from each other, some of them from the same one. */
const versions: fc.Arbitrary<readonly Version[]> = fc
  .array(fc.record({ from: fc.nat(), items: fc.array(fc.nat(3), { maxLength: 5 }), take: fc.option(fc.nat(12)) }))
  .map((changes) => {
    const made: Version[] = [{ list: List.from<number>([]), array: [] }]
    for (const { from, items, take } of changes) {
      const base = made[from % made.length]!
      const count = take ?? base.array.length
      made.push({ list: base.list.take(count).concat(items), array: [...base.array.slice(0, count), ...items] })
    }
    return made
  })

test('a list has the items of the array it stands for, whatever was appended to the lists it shares them with', () => {
  fc.assert(
    fc.property(versions, (made) => {
      for (const { list, array } of made) {
        assert.deepEqual([list.length, list.at(0), list.at(-1)], [array.length, array.at(0), array.at(-1)])
        assert.equal(
          list.find((item) => item > 1),
          array.find((item) => item > 1),
        )
        assert.deepEqual([list.slice(1), list.slice(-2)], [array.slice(1), array.slice(-2)])
      }
      for (const { list, array } of made) assert.deepEqual(list.items, array)
      for (const { list, array } of made) assert.deepEqual(list.append(9).items, [...array, 9])
    }),
  )
})

test('a list extends another if it starts with the same items', () => {
  fc.assert(
    fc.property(versions, (made) => {
      for (const one of made) {
        for (const other of made) {
          const isStart =
            other.array.length <= one.array.length && other.array.every((item, i) => one.array[i] === item)
          assert.equal(one.list.extends(other.list), isStart)
        }
      }
    }),
  )
})

test('folding gives what reducing the array gives', () => {
  fc.assert(
    fc.property(versions, (made) => {
      const cache: FoldCache<number, string> = new WeakMap()
      const step = (sum: string, item: number): string => `${sum}${item}`
      for (const { list, array } of [...made, ...made]) assert.equal(list.fold(cache, '', step), array.reduce(step, ''))
    }),
  )
})

test('folding a list again after it has grown looks only at what is new', () => {
  const cache: FoldCache<number, number> = new WeakMap()
  let steps = 0
  const count = (sum: number): number => {
    steps++
    return sum + 1
  }
  let list = List.from<number>([])
  for (let i = 0; i < 500; i++) {
    list = list.append(i)
    list.append(-1) // discarded
    assert.equal(list.fold(cache, 0, count), i + 1)
  }
  assert.equal(steps, 500)
})

test('a list that is appended to again and again is not copied', async () => {
  const copied = await copiedItems(() => {
    let list = List.from([0])
    for (let i = 0; i < 500; i++) {
      list.append(-1) // discarded
      list = list.append(i).append(i)
      list = list.take(list.length - 1).append(-i) // with another last item
    }
  })
  assert.equal(copied, 0)
})

test('the items of a list are one frozen array', () => {
  const list = List.from([1, 2])
  assert.equal(list.items, list.items)
  assert.throws(() => (list.items as number[]).push(3), TypeError)
})

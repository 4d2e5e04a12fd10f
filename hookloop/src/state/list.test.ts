import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { List, type FoldCache } from './list.ts'

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

test('folding gives what reducing the array gives, on every version of a list', () => {
  const operation = fc.record({ from: fc.nat(), count: fc.nat(150), take: fc.option(fc.nat(300)) })
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 15 }), (operations) => {
      const cache = new WeakMap() as FoldCache<number, string>
      const step = (sum: string, item: number): string => (sum + item).slice(-12)
      const versions = [List.empty<number>()]
      let next = 0
      for (const { from, count, take } of operations) {
        const base = versions[from % versions.length]!
        let list = take === null ? base : base.take(take)
        for (let i = 0; i < count; i++) list = list.append(next++)
        versions.push(list)
        assert.equal(list.fold(cache, '', step), list.slice().reduce(step, ''))
      }
      for (const list of versions) assert.equal(list.fold(cache, '', step), list.slice().reduce(step, ''))
    }),
  )
})

test('folding a list again after it has grown looks only at what is new', () => {
  for (const atOnce of [1, 2, 3, 63, 64, 65, 200]) {
    const cache = new WeakMap() as FoldCache<number, number>
    let steps = 0
    const count = (sum: number): number => {
      steps++
      return sum + 1
    }
    let list = List.empty<number>().append(0)
    while (list.length < 2000) {
      for (let i = 0; i < atOnce; i++) list = list.append(i)
      assert.equal(list.fold(cache, 0, count), list.length)
    }
    assert.equal(steps, list.length, `grown by ${atOnce}`)
  }
})

test('appends that are thrown away leave the list shared with whatever grows from it next', () => {
  for (const length of [63, 64, 65, 1000, 1024]) {
    const cache = new WeakMap() as FoldCache<number, number>
    let steps = 0
    const count = (sum: number): number => {
      steps++
      return sum + 1
    }
    const base = List.from(Array.from({ length }, (_, i) => i))
    base.append(-1).fold(cache, 0, count)
    steps = 0
    for (let i = 0; i < 50; i++) {
      base.append(i) // discarded
      assert.equal(base.append(i).fold(cache, 0, count), length + 1)
    }
    assert.ok(steps <= 50 * 66, `${steps} steps for 50 folds of ${length} items: the chunks were copied`)
  }
})

test('a list extends another if it starts with the same items', () => {
  // Few different items, so that lists with other histories hold the same ones.
  const operation = fc.record({ from: fc.nat(), take: fc.nat(200), items: fc.array(fc.nat(1), { maxLength: 90 }) })
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 6 }), (operations) => {
      const versions = [List.empty<number>()]
      for (const { from, take, items } of operations) {
        versions.push(versions[from % versions.length]!.take(take).concat(items))
      }
      for (const a of versions) {
        for (const b of versions) {
          const prefix = b.length <= a.length && b.slice().every((item, i) => a.at(i) === item)
          assert.equal(a.extends(b), prefix)
        }
      }
    }),
  )
})

test('a list that was built apart from the same items extends the other all the same', () => {
  const items = Array.from({ length: 70 }, (_, id) => ({ id }))
  assert.equal(List.from(items).append({ id: 70 }).extends(List.from(items)), true)
})

test('searching, mapping and printing are those of the array', () => {
  const list = List.from([3, 1, 4, 1, 5])
  assert.equal(
    list.find((item) => item > 3),
    4,
  )
  assert.equal(
    list.findLast((item) => item > 3),
    5,
  )
  assert.equal(
    list.some((item) => item === 9),
    false,
  )
  assert.deepEqual(
    list.map((item, i) => item * i),
    [0, 1, 8, 3, 20],
  )
  assert.deepEqual(
    list.filter((item) => item === 1),
    [1, 1],
  )
  assert.equal(JSON.stringify({ list }), '{"list":[3,1,4,1,5]}')
  assert.deepEqual([list.at(-5), list.at(-6), list.at(5), list.take(0).length], [3, undefined, undefined, 0])
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isShown } from './hook-spans.ts'
import { layOut, type Noted } from './hook-times.ts'

function noted(hook: string, trigger: string, durationMs?: number): Noted {
  return { step: 0, trigger, hook, mode: 'guard', ...(durationMs !== undefined && { durationMs }) }
}

test('hooks of a firing lie one after the other, the last of them ending now', () => {
  const { hooks, from, callEnded } = layOut([noted('a', 'beforeStep', 30), noted('b', 'beforeStep', 20)], 1000)
  const times = hooks.map(({ entry, start, end }) => [entry.hook, start, end])
  assert.deepEqual(times, [
    ['a', 950, 980],
    ['b', 980, 1000],
  ])
  assert.deepEqual([from, callEnded], [950, 950])
})

test('hooks around a call all end when the call did, before the hooks that looked at its result', () => {
  const entries = [
    noted('inner', 'aroundInference', 400),
    noted('outer', 'aroundInference', 500),
    noted('after', 'afterInference', 100),
  ]
  const { hooks, from, callEnded } = layOut(entries, 1000)
  const times = hooks.map(({ entry, start, end }) => [entry.hook, start, end])
  assert.deepEqual(times, [
    ['inner', 500, 900],
    ['outer', 400, 900],
    ['after', 900, 1000],
  ])
  assert.deepEqual([from, callEnded], [400, 900])
})

test('where nobody knows how long hooks took, they took no time', () => {
  const { hooks, from, callEnded } = layOut([noted('a', 'afterInference'), noted('b', 'afterInference')], 1000)
  assert.deepEqual([hooks[0]!.start, hooks[1]!.end, from, callEnded], [1000, 1000, 1000, 1000])
})

test('a hook without an opinion is shown if it was slow', () => {
  assert.equal(isShown(noted('a', 'beforeStep', 99), 'decisions'), false)
  assert.equal(isShown(noted('a', 'beforeStep', 100), 'decisions'), true)
  assert.equal(isShown({ ...noted('a', 'beforeStep'), decision: 'skipped' }, 'decisions'), false)
})

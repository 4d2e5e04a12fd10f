import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readLedger, type Noted } from './hook-times.ts'

function noted(hook: string, trigger: string, durationMs?: number): Noted {
  return { step: 0, trigger, hook, mode: 'guard', ...(durationMs !== undefined && { durationMs }) }
}

test('hooks of a trigger are consecutive, and the last one ends now', () => {
  const { hooks, from, callEnded } = readLedger([noted('a', 'beforeStep', 30), noted('b', 'beforeStep', 20)], 1000)
  const times = hooks.map(({ entry, start, end }) => [entry.hook, start, end])
  assert.deepEqual(times, [
    ['a', 950, 980],
    ['b', 980, 1000],
  ])
  assert.deepEqual([from, callEnded], [950, 950])
})

test('around hooks end with the call, before the hooks that judge its result', () => {
  const entries = [
    noted('inner', 'aroundInference', 400),
    noted('outer', 'aroundInference', 500),
    noted('after', 'afterInference', 100),
  ]
  const { hooks, from, callEnded } = readLedger(entries, 1000)
  const times = hooks.map(({ entry, start, end }) => [entry.hook, start, end])
  assert.deepEqual(times, [
    ['inner', 500, 900],
    ['outer', 400, 900],
    ['after', 900, 1000],
  ])
  assert.deepEqual([from, callEnded], [400, 900])
})

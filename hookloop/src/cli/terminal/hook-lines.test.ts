import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hookLines } from './hook-lines.ts'

const entry = { step: 0, trigger: 'beforeStep', hook: 'strict', mode: 'guard', durationMs: 0 } as const

test('a decision in shadow mode is shown as one that was not applied', () => {
  const decided = { ...entry, decision: 'forbidContinuation', message: 'Enough.' }
  assert.deepEqual(
    [decided, { ...decided, shadow: true as const }].map((each) => hookLines(each).map(({ text }) => text)),
    [['strict stopped the run'], ['strict (shadow) would decide forbidContinuation on beforeStep']],
  )
})

test('a shadow hook that decides nothing is not shown, and one that fails is', () => {
  const shadow = true as const
  assert.deepEqual(hookLines({ ...entry, shadow }), [])
  assert.deepEqual(hookLines({ ...entry, shadow, decision: 'skipped' }), [])
  assert.deepEqual(
    hookLines({ ...entry, shadow, error: 'broken', decision: 'forbid' }).map(({ text }) => text),
    ['Guard "strict" failed at beforeStep in shadow mode: broken'],
  )
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hookWords } from './hook-words.ts'

const entry = { step: 0, trigger: 'beforeStep', hook: 'strict', mode: 'guard', durationMs: 0 } as const

test('what a shadow would have decided is never told as if it had been', () => {
  const decided = { ...entry, decision: 'forbidContinuation', message: 'Enough.' }
  assert.deepEqual(
    [decided, { ...decided, shadow: true as const }].map((each) => hookWords(each).map(({ text }) => text)),
    [['strict stops the run'], ['strict, a shadow, would decide forbidContinuation at beforeStep']],
  )
})

test('a shadow without an opinion is not told, and one that failed is', () => {
  const shadow = true as const
  assert.deepEqual(hookWords({ ...entry, shadow }), [])
  assert.deepEqual(hookWords({ ...entry, shadow, decision: 'skipped' }), [])
  assert.deepEqual(
    hookWords({ ...entry, shadow, error: 'broken', decision: 'forbid' }).map(({ text, message }) => [text, message]),
    [['strict, a shadow, failed at beforeStep', 'broken']],
  )
})

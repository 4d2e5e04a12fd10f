import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noTokens } from '../../state/usage.ts'
import { ago, count, dollars, duration, tokens } from './amounts.ts'

test('amounts are short, and small ones precise', () => {
  assert.deepEqual([count(1, 'step'), count(1200, 'step')], ['1 step', '1,200 steps'])
  assert.equal(tokens({ ...noTokens, inputTokens: 1204, outputTokens: 1 }), '1,204 tokens in, 1 out')
  assert.deepEqual([0.00001, 0.0012, 0.5, 12.345].map(dollars), ['<$0.0001', '$0.0012', '$0.5000', '$12.35'])
  assert.deepEqual([0.4, 999, 3210, 59_990, 61_000].map(duration), ['0 ms', '999 ms', '3.2 s', '1 m 0 s', '1 m 1 s'])
})

test('ages are rounded', () => {
  const minute = 60_000
  assert.deepEqual([-5, 59_999, minute, 59 * minute, 90 * minute, 50 * 60 * minute].map(ago), [
    'now',
    'now',
    '1 min ago',
    '59 min ago',
    '1 h ago',
    '2 d ago',
  ])
})

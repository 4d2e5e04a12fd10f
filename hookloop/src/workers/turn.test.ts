import assert from 'node:assert/strict'
import { test } from 'node:test'
import { approvalFor } from '../core/state/tool-call.ts'
import { expiryOf } from './turn.ts'

const turn = { session: 's', turn: 't' }
const call = { id: 'c', name: 'work', args: {} }
const asked = (times: { readonly expiresAt?: number; readonly expiresInMs?: number }) =>
  approvalFor(call, [{ by: 'ask', message: 'Really?' }], { key: 'k', ...times })
const suspended = (...times: readonly Parameters<typeof asked>[0][]) =>
  expiryOf(turn, { status: 'suspended', text: '', pending: times.map(asked) })

test('a turn is due when the first of its questions expires, and none is if no question does', () => {
  const late = { expiresAt: 9_000, expiresInMs: 8_000 }
  const { due, delayMs } = suspended(late, {}, { expiresAt: 4_000, expiresInMs: 3_000 })!
  assert.deepEqual(due, { session: 's', turn: 't/expiry', expiredAt: 4_000 })
  assert.equal(delayMs(1_000), 3_000)
  assert.equal(delayMs(3_500), 500)
  assert.equal(delayMs(60_000), 1)
  assert.equal(suspended({}), undefined)
  assert.equal(expiryOf(turn, { status: 'completed', text: '', pending: [asked(late)] }), undefined)
})

test('a question that a machine asked whose clock is ahead expires no later than one that is asked now', () => {
  const aheadMs = 600_000
  const now = 1_000
  const { delayMs } = suspended({ expiresAt: now + aheadMs + 5_000, expiresInMs: 5_000 })!
  assert.equal(delayMs(now), 5_000)
})

test('a question that an earlier version asked expires by the clock of the worker', () => {
  assert.equal(suspended({ expiresAt: 9_000 })!.delayMs(1_000), 8_000)
})

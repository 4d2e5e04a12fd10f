import assert from 'node:assert/strict'
import { test } from 'node:test'
import { retryAfterOf } from './retry-after.ts'

const known: readonly (readonly [string, object, number | undefined])[] = [
  ['seconds', { responseHeaders: { 'retry-after': '7' } }, 7_000],
  ['a part of a second', { responseHeaders: { 'retry-after': '0.25' } }, 250],
  ['milliseconds, which are more precise', { responseHeaders: { 'retry-after-ms': '120', 'retry-after': '1' } }, 120],
  ['a time that is over', { responseHeaders: { 'retry-after': 'Wed, 21 Oct 2015 07:28:00 GMT' } }, 0],
  ['less than nothing', { responseHeaders: { 'retry-after': '-5' } }, 0],
  ['the body, as Google has it', { responseBody: '{"error":{"details":[{"retryDelay": "34.5s"}]}}' }, 34_500],
  ['words that are no time', { responseHeaders: { 'retry-after': 'later' } }, undefined],
  ['nothing', { responseHeaders: {}, responseBody: 'slow down' }, undefined],
  ['no headers at all', { responseHeaders: null }, undefined],
]

for (const [what, thrown, expected] of known) {
  test(`how long to wait is read from ${what}`, () => {
    assert.equal(retryAfterOf(thrown), expected)
  })
}

test('a time to come is waited for', () => {
  const wait = retryAfterOf({ responseHeaders: { 'retry-after': new Date(Date.now() + 60_000).toUTCString() } })
  assert.ok(wait !== undefined && wait > 55_000 && wait <= 60_000, String(wait))
})

test('what is no error asks for no wait', () => {
  assert.deepEqual([undefined, null, 'busy', 7].map(retryAfterOf), [undefined, undefined, undefined, undefined])
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '../../state/json.ts'
import { LogCache } from './log-cache.ts'
import { LineEncoder, readLines } from './session-log.ts'

/** The lines of a session that is suspended and resumed many times. */
function logOf(count: number, more: JsonObject = {}): string[] {
  const encoder = new LineEncoder()
  const first = { type: 'session', version: 1, id: 's', at: 1, agent: 'agent' }
  const rest = Array.from({ length: count }, (_, i) => ({
    type: i % 2 === 0 ? 'sessionSuspended' : 'sessionResumed',
    at: i,
    ...more,
  }))
  return [first, ...rest].map((record) => encoder.encode(record))
}

test('a log that has grown is read like a new one', () => {
  const [logs, lines] = [new LogCache(), logOf(6)]
  for (const length of [0, 1, 3, 3, 7]) {
    const { records, end } = logs.read(lines.slice(0, length))
    assert.deepEqual({ records, end }, readLines(lines.slice(0, length)))
  }
})

test('records that were read before are reused', () => {
  const [logs, lines] = [new LogCache(), logOf(6)]
  const before = logs.read(lines.slice(0, 4)).records
  const after = logs.read(lines).records
  assert.ok(before.every((record, i) => record === after[i]))
})

test('a line that was changed after it was read is found', () => {
  const [logs, lines] = [new LogCache(), logOf(6)]
  logs.read(lines)
  for (let i = 1; i < lines.length; i++) {
    const changed = lines.with(i, lines[i]!.replace(/"at":\d/, '"at":9'))
    assert.throws(() => logs.read(changed), { code: 'SESSION_CORRUPT', value: i })
  }
  for (let i = 1; i < lines.length - 1; i++) {
    assert.throws(() => logs.read(lines.toSpliced(i, 1)), { code: 'SESSION_CORRUPT', value: i })
  }
})

test('so is one in the place of a list that was read', () => {
  const [logs, lines] = [new LogCache(), logOf(6)]
  logs.read(lines)
  lines[2] = lines[2]!.replace('"at":1', '"at":7')
  assert.throws(() => logs.read(lines), { code: 'SESSION_CORRUPT', value: 2 })
})

test('a log that has lost its end, or went another way, is read as it is', () => {
  const [logs, lines] = [new LogCache(), logOf(6)]
  logs.read(lines)
  assert.deepEqual(logs.read(lines.slice(0, 3)).records, readLines(lines.slice(0, 3)).records)
  const other = logOf(4, { reason: 'other' })
  assert.deepEqual(logs.read(other), readLines(other))
})

test('more than is to be known is read all the same', () => {
  const logs = new LogCache()
  const long = logOf(3, { reason: 'x'.repeat(6_000_000) })
  for (let i = 0; i < 2; i++) assert.equal(logs.read(long).records.length, 4)
})

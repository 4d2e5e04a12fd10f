import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { JsonObject } from '../../values/json.ts'
import { decodeLine, encodeLine, noLine } from './session-log.ts'

function sealed(records: readonly JsonObject[]): readonly string[] {
  let end = noLine
  return records.map((record) => {
    const encoded = encodeLine(record, end)
    end = encoded.end
    return encoded.line
  })
}

function readLines(all: readonly string[]): readonly JsonObject[] {
  let end = noLine
  return all.map((line) => {
    const decoded = decodeLine(line, end)
    end = decoded.end
    return decoded.record
  })
}

const lines = sealed(Array.from({ length: 6 }, (_, i) => ({ t: 'suspended', at: i, text: `line ${i % 2}` })))
const corrupt = { name: 'AgentError', code: 'SESSION_CORRUPT' }

test('what was written is read again, with its number, whatever is in it', () => {
  fc.assert(
    fc.property(fc.array(fc.dictionary(fc.string(), fc.jsonValue().map(withoutProto))), (records) => {
      const kept = records.map(({ seq: _seq, sum: _sum, ['__proto__']: _proto, ...record }) => ({
        t: 'any',
        ...(record as JsonObject),
      }))
      const read = readLines(sealed(kept))
      const expected = kept.map((record, seq) => ({ seq, ...record }))
      assert.deepEqual(read, JSON.parse(JSON.stringify(expected)))
    }),
  )
})

test('half of a surrogate pair, a newline and a NUL are read again, and a line has none of them', () => {
  const [line] = sealed([{ text: 'a \ud800 \n \0 \u2028 b' }])
  assert.deepEqual([line!.isWellFormed(), /[\n\0]/.test(line!)], [true, false])
  assert.deepEqual(readLines([line!]), [{ seq: 0, text: 'a \ud800 \n \0 \u2028 b' }])
})

test('a line of which a character was changed, added or left out is found', () => {
  const place = fc.tuple(fc.nat({ max: lines.length - 1 }), fc.nat({ max: 60 }))
  fc.assert(
    fc.property(place, fc.string({ maxLength: 2 }), fc.nat({ max: 2 }), ([at, from], text, length) => {
      const line = lines[at]!
      const edited = line.slice(0, from) + text + line.slice(from + length)
      fc.pre(edited !== line)
      assert.throws(() => readLines(lines.with(at, edited)), corrupt)
    }),
    { numRuns: 2_000 },
  )
})

const changes: { readonly [what: string]: readonly string[] } = {
  'without its first line': lines.slice(1),
  'without a line in the middle': lines.toSpliced(2, 1),
  'with a line twice': lines.toSpliced(2, 0, lines[2]!),
  'with a line from another one': lines.with(2, sealed([{ t: 'suspended', at: 2, text: 'line 0' }])[0]!),
  'with a line that is not sealed': lines.with(2, '{"seq":2,"t":"held","at":2}'),
  'cut off within its last line': [...lines.slice(0, -1), lines.at(-1)!.slice(0, -5)],
}

for (const [what, changed] of Object.entries(changes)) {
  test(`D09: a log ${what} is rejected`, () => {
    assert.throws(() => readLines(changed), corrupt)
  })
}

/** A key that no record has, because it would be lost. */
function withoutProto(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value).replaceAll('__proto__', 'proto'))
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Json, JsonObject } from './json.ts'
import { partialPattern } from './partial-pattern.ts'
import { redactStream } from './redact-stream.ts'
import { joinRedactors, keyPatterns, redactor } from './secrets.ts'

const random = 'Zq81Kd0fWm4TnX27Lr9c'
const password = 'correct horse "battery"\nstaple'
const also = [password, /INT-\d{6}/, /(?<=pin: )\d{4}(?= ok)/, /begin(?:\s[a-f]{2}){3,}\send/i]
const redact = redactor([...also, ...keyPatterns])
const secrets = [
  `sk-proj-${random}`,
  `ghp_${random}${random}`,
  ['AKIA', 'ABCDEFGH12345678'].join(''),
  `AIzaSy${random}${random}`,
  `xoxb-${random}`,
  `eyJhbGciOiJIUzI1NiJ9.${random}.${random}`,
  `-----BEGIN RSA PRIVATE KEY-----\n${random.repeat(3)}\n-----END RSA PRIVATE KEY-----`,
  `Bearer   ${random}${random}`,
  `postgres://admin:pw-${random}@db.example/x`,
  password,
  JSON.stringify(password),
  encodeURIComponent(password),
  Buffer.from(password).toString('base64'),
  'INT-123456',
  'pin: 1234 ok',
  'Begin aa bb cc dd end',
]

/** What is shown of pieces of a text, as one text. */
function shown(pieces: readonly string[], by = redact): string {
  let all = ''
  const stream = redactStream(by, (update) => void (all += by(update) as string))
  for (const piece of pieces) stream.write(piece)
  stream.end()
  return all
}

test('a secret that is split at any position over two updates is redacted as in one', () => {
  for (const secret of secrets) {
    for (const [before, after] of [
      ['', ''],
      ['It is ', ' now.\n'],
      ['="', '"\nsk'],
    ]) {
      const whole = `${before}${secret}${after}`
      const expected = redact(whole)
      assert.notEqual(expected, whole)
      for (let at = 0; at <= whole.length; at++) {
        assert.equal(shown([whole.slice(0, at), whole.slice(at)]), expected, `${secret} at ${at}`)
      }
    }
  }
})

test('secrets in updates of any sizes are redacted as in one text', () => {
  const whole = secrets.map((secret, i) => `${i}: ${secret} and more\n`).join('')
  const expected = redact(whole)
  for (const size of [1, 2, 3, 5, 7, 11, 50, 1_000]) {
    const pieces = whole.match(new RegExp(`[^]{1,${size}}`, 'g'))!
    assert.equal(shown(pieces), expected, `pieces of ${size}`)
  }
})

test('the texts of two streams and of two fields are separate, and updates of a stream keep their order and other fields', () => {
  const updates: JsonObject[] = []
  const key = `sk-proj-${random}`
  for (const at of [2, 5, 12, 20]) {
    updates.push({ stream: 'stdout', text: key.slice(0, at), at })
    updates.push({ stream: 'stderr', text: 'a warning\n', at })
    updates.push({ stream: 'stdout', text: `${key.slice(at)}\n`, at })
    updates.push({ title: `${at}`, lines: [key.slice(0, at), 'x '] })
    updates.push({ title: ' of 20', lines: [`${key.slice(at)} `, key] })
  }
  const all: Json[] = []
  const stream = redactStream(redact, (update) => void all.push(redact(update)))
  for (const update of updates) stream.write(update)
  stream.end()
  assert.equal(all.length, updates.length)
  for (const name of ['stdout', 'stderr', undefined]) {
    const fieldsOf = (list: readonly Json[]): readonly Json[] =>
      (list as readonly JsonObject[])
        .filter(({ stream: own }) => own === name)
        .map((update) => [Object.keys(update), update['at'] ?? null])
    assert.deepEqual(fieldsOf(all), fieldsOf(updates))
  }
  assert.doesNotMatch(JSON.stringify(all), /sk-|proj|Zq81|Kd0f|TnX2|Lr9c/)
  assert.deepEqual(all.slice(0, 3), [
    { stream: 'stderr', text: 'a warning\n', at: 2 },
    { stream: 'stdout', text: '[redacted]', at: 2 },
    { stream: 'stdout', text: '\n', at: 2 },
  ])
})

test('an update whose end cannot be the start of a secret is passed on at once', () => {
  const all: Json[] = []
  const stream = redactStream(redact, (update) => void all.push(update))
  const updates: readonly Json[] = [
    '50%',
    'Compiling',
    { text: 'tasks' },
    { progress: 3, total: 4 },
    'done.\n',
    7,
    null,
    '',
  ]
  for (const update of updates) stream.write(update)
  assert.deepEqual(all, updates)
  stream.write('the key is sk')
  assert.equal(all.length, updates.length)
  stream.write('ipped')
  assert.deepEqual(all.slice(updates.length), ['the key is sk', 'ipped'])
})

test('memory is bounded: what may be the start of a secret is redacted once too much is held back', () => {
  const all: Json[] = []
  const stream = redactStream(redact, (update) => void all.push(update))
  stream.write('-----BEGIN PRIVATE KEY-----')
  for (let i = 0; i < 2_000; i++) stream.write('0123456789\n')
  assert.ok(all.length > 400, `${all.length} updates`)
  assert.doesNotMatch(JSON.stringify(all.slice(0, 400)), /\d/)
  stream.write(`${'x'.repeat(1_000_000)} sk-${'a1'.repeat(50)}`)
  stream.end()
  assert.match(all.at(-1) as string, /x \[redacted\]$/)
  assert.equal(shown([`sk-${'a1'.repeat(20_000)}`, 'b2'.repeat(100), ' end']), '[redacted] end')
})

test('joined redactors find what each of them finds', () => {
  const opaque = (value: Json): Json => (typeof value === 'string' ? value.replaceAll('blue', 'red') : value)
  const joined = joinRedactors([redactor(['hunter2-of-ours']), opaque, redactor(keyPatterns)])!
  const key = `sk-proj-${random}`
  assert.equal(shown(['hunter2-', 'of-ours blue ', key.slice(0, 9), key.slice(9)], joined), '[redacted] red [redacted]')
  assert.equal(joinRedactors([]), undefined)
})

test('every start of a match is found at the end of a text', () => {
  const rows: readonly (readonly [RegExp, string])[] = [
    [/ab{2}c{1,3}d?e+/, 'abbccdee'],
    [/(?<name>x|y(z|[\]a])){2}\.\u{1F600}/u, 'xya.😀'],
    [/a(?=bcd)b/, 'abcd'],
    [/\bkey\s=\s(?!no)\x41+$/m, 'key = AAA'],
    [/(?:ab|cd)*?e/, 'abcdabe'],
    [/\\\(\[\{/, '\\([{'],
    [/(a)\1/, 'aa'],
    [/[[a]b]/v, 'a'],
  ]
  for (const [pattern, example] of rows) {
    assert.match(example, pattern)
    const partial = partialPattern(pattern)
    const characters = Array.from(example)
    for (let length = 1; length <= characters.length; length++) {
      const start = characters.slice(0, length).join('')
      assert.equal(start.match(partial)?.[0], start, String(pattern))
    }
  }
  assert.equal('nothing'.search(partialPattern(/ab{2}c/)), -1)
  assert.deepEqual('a <key> <key> <k'.match(partialPattern(/<key>/)), ['<key>', '<key>', '<k'])
})

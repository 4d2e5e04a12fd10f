import assert from 'node:assert/strict'
import { test } from 'node:test'
import { redactor } from './secrets.ts'

test('a string is redacted as it is, and as it is written in JSON, URLs and Base64, also within a longer text', () => {
  const secret = 'p"ss w/rd\n+é\\9'
  const redact = redactor([secret])
  const forms = [
    secret,
    JSON.stringify(secret),
    JSON.stringify({ inner: JSON.stringify({ secret }) }),
    `https://db.example/?key=${encodeURIComponent(secret)}`,
    encodeURIComponent(secret).toLowerCase(),
    new URLSearchParams({ key: secret }).toString(),
    `Basic ${Buffer.from(secret).toString('base64')}`,
    Buffer.from(secret).toString('base64url'),
    ...['u:', 'me:', 'jane:'].map((user) => `Basic ${Buffer.from(`${user}${secret}`).toString('base64')}`),
    Buffer.from(`key=${secret};`).toString('base64url'),
  ]
  for (const text of forms) assert.match(redact(text) as string, /\[redacted\]/, text)
  assert.equal(redact('nothing here'), 'nothing here')
})

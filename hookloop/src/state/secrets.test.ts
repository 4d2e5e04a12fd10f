import assert from 'node:assert/strict'
import { test } from 'node:test'
import { redactor } from './secrets.ts'

test('a string is redacted as it is, and as it is written in JSON, URLs, HTML, SQL, shells, source code, hex and Base64, also within a longer text', () => {
  const secret = 'p"ss w/rd\n+é\\9'
  const marked = `a&b<c>'d"e`
  const redact = redactor([secret, marked])
  const forms = [
    secret,
    JSON.stringify(secret),
    JSON.stringify({ inner: JSON.stringify({ secret }) }),
    `https://db.example/?key=${encodeURIComponent(secret)}`,
    encodeURIComponent(secret).toLowerCase(),
    new URLSearchParams({ key: secret }).toString(),
    String.raw`{"key": "p\"ss w/rd\n+\u00e9\\9"}`,
    String.raw`{"key":"p\"ss w\/rd\n+\u00E9\\9"}`,
    `Basic ${Buffer.from(secret).toString('base64')}`,
    Buffer.from(secret).toString('base64url'),
    ...['u:', 'me:', 'jane:'].map((user) => `Basic ${Buffer.from(`${user}${secret}`).toString('base64')}`),
    Buffer.from(`key=${secret};`).toString('base64url'),
    Buffer.from(secret).toString('hex'),
    Buffer.from(`key=${secret};`).toString('hex').toUpperCase(),
    '<p>a&amp;b&lt;c&gt;&#39;d&quot;e</p>',
    '<p>a&amp;b&lt;c&gt;\'d"e</p>',
    String.raw`curl -u 'a&b<c>'\''d"e'`,
    encodeURIComponent(`https://db.example/?key=${encodeURIComponent(secret)}`),
    JSON.stringify(JSON.stringify({ inner: JSON.stringify({ secret }) })),
    new URLSearchParams({ key: marked }).toString(),
    encodeURIComponent(marked).replaceAll("'", '%27'),
    String.raw`{"key":"a\u0026b\u003cc\u003e'd\"e"}`,
    String.raw`{"key":"a\u0026b\u003Cc\u003E\u0027d\"e"}`,
    String.raw`'a&b<c>\'d"e'`,
    String.raw`"a&b<c>'d\"e"`,
    `INSERT INTO t VALUES ('a&b<c>''d"e')`,
    `x,"a&b<c>'d""e"`,
    String.raw`echo a\&b\<c\>\'d\"e`,
    `'a&b<c>'"'"'d"e'`,
    marked.replace(/[^]/g, (unit) => `\\u00${unit.charCodeAt(0).toString(16)}`),
    marked.replace(/[^]/g, (unit) => `\\x${unit.charCodeAt(0).toString(16)}`),
    marked.replace(/[^]/g, (unit) => `%${unit.charCodeAt(0).toString(16)}`),
    marked.replace(/[^]/g, (unit) => `&#${unit.charCodeAt(0)};`),
    ...['$& ', '$&:'].map((each) => Buffer.from(secret).toString('hex').replace(/../g, each)),
    `00000000: ${Buffer.from(secret).toString('hex').replace(/.{4}/g, '$& ')}`,
    Buffer.from(`$x = "${secret}"`, 'utf16le').toString('base64'),
  ]
  for (const text of forms) assert.match(redact(text) as string, /\[redacted\]/, text)
  assert.equal(redact('nothing here'), 'nothing here')
})

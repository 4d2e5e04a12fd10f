import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shellQuote } from './shell-quote.ts'

test('a value is quoted for a shell, and control characters in it are visible', () => {
  const values = ['agent.ts', '', 'my agent.ts', "it's", '$(rm -rf /)', 'a\u001B[2J\nb']
  assert.deepEqual(values.map(shellQuote), [
    'agent.ts',
    "''",
    "'my agent.ts'",
    `'it'\\''s'`,
    "'$(rm -rf /)'",
    "'a\\u{1b}[2J\\nb'",
  ])
})

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { hookFileSchema } from './hook-file-schema.ts'

test('the published schema is that of the code', () => {
  const published: unknown = JSON.parse(readFileSync(new URL('../../hooks.schema.json', import.meta.url), 'utf8'))
  assert.deepEqual(published, hookFileSchema())
})

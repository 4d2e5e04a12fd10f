import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { readGuide } from './guide.fixture.ts'

const { files } = readGuide('site/guides/write-your-own-capability.md')
const MAX_LINES = 60

test('the guide to a capability prints the files of the example, whose tests run with all others', () => {
  assert.deepEqual(Object.keys(files), ['notebook.ts', 'notebook.test.ts'])
  for (const [name, code] of Object.entries(files))
    assert.equal(code, readFileSync(`examples/capability/${name}`, 'utf8'))
})

test(`the capability of the guide has at most ${MAX_LINES} lines`, () => {
  assert.ok(files['notebook.ts']!.split('\n').length <= MAX_LINES)
})

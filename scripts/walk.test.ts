import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'

// A plain run must stay easy to follow: the number of files it visits is limited, and it passes through no code for
// features that it does not use.

const MAX_FILES = 38
const MAX_CHANGES = 732
const unused = /subagents\/|resume|pause|interrupted|stream|attempts|replay|sessions\//

type Walk = {
  readonly files: readonly { readonly file: string; readonly functions: readonly string[] }[]
  readonly changes: number
}

const script = join(import.meta.dirname, 'walk.ts')
const output = execFileSync(process.execPath, ['--conditions=hookloop-source', script, '--json'], { encoding: 'utf8' })
const { files, changes } = JSON.parse(output) as Walk

test(`a run with one tool and one guard visits at most ${MAX_FILES} files`, () => {
  assert.ok(files.length <= MAX_FILES, `${files.length} files`)
})

test(`such a run changes from one file to another at most ${MAX_CHANGES} times`, () => {
  assert.ok(changes <= MAX_CHANGES, `${changes} changes`)
})

test('a plain run visits no code for subagents, suspended or interrupted runs, streaming or retries', () => {
  assert.deepEqual(
    files.map(({ file }) => file).filter((file) => unused.test(file)),
    [],
  )
})

test('a model call visits one file of agent/model', () => {
  assert.deepEqual(
    files.map(({ file }) => file).filter((file) => file.startsWith('core/model/')),
    ['core/model/send-request.ts'],
  )
})

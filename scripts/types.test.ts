import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

// The compiler is the judge: `*.types.fixture.ts` files hold what must compile and, under `@ts-expect-error`, what must not.

for (const [what, project] of Object.entries({
  everything: 'tsconfig.json',
  'the page of the studio': 'hookloop/src/studio/page/app',
}))
  test(`${what} compiles, and what must not compile does not`, () => {
    const { stdout, status } = spawnSync(join('node_modules', '.bin', 'tsc'), ['-p', project], { encoding: 'utf8' })
    assert.equal(stdout, '')
    assert.equal(status, 0)
  })

test('there are compile-time tests of what may not be done', () => {
  const files = globSync('hookloop/src/**/*.types.fixture.ts')
  const misuses = files.flatMap((file) => readFileSync(file, 'utf8').match(/@ts-expect-error/g) ?? [])
  assert.ok(misuses.length > 100)
})

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'

test('on a machine without a browser the summary of the test run says that page tests were not run', () => {
  const runner = join(import.meta.dirname, '../test.ts')
  const { stdout } = spawnSync(process.execPath, ['--conditions=hookloop-source', runner, 'browser/browser.test'], {
    encoding: 'utf8',
    env: { ...process.env, HOOKLOOP_TEST_BROWSER: 'no-such-browser' },
  })
  assert.match(stdout, /NOT RUN: page tests, because there is no browser\..*\n\n0 passed, 0 failed\n$/)
})

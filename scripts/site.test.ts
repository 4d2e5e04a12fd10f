import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { test } from 'node:test'

test('the documentation site is built: the API pages have no type error, and no link is dead', () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/docs.ts'], { encoding: 'utf8' })
  assert.equal(status, 0, stdout + stderr)
  const pages = globSync('site/{start,guides,concepts,reference,recipes}/**/*.md')
  const missing = pages.filter(
    (page) => globSync(page.replace(/^site/, 'site/.vitepress/dist').replace(/\.md$/, '.html')).length === 0,
  )
  assert.ok(pages.length > 50)
  assert.deepEqual(missing, [])
})

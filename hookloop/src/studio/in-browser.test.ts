import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { pageTest } from '../../../scripts/browser/browser.fixture.ts'
import { loadPage } from './page-html.ts'
import { runAsPage } from './run-as-page.ts'
import { RunReader } from './runs.ts'
import { completed, waiting } from './scenes.fixture.ts'
import { cleaner, studioFor } from './studio.fixture.ts'

suite('the studio in a browser', () => {
  pageTest(
    'answers a question, the run resumes with the answer in another process, and the page shows it',
    async ({ t, open, screenshot }) => {
      const { store, path } = await waiting()
      await using studio = await studioFor(store, { page: loadPage })
      const script = fileURLToPath(new URL('studio-process.fixture.ts', import.meta.url))
      const args = ['--conditions=hookloop-source', script, path, 'clean-up']
      const other = spawn(process.execPath, args, { stdio: 'inherit' })
      t.after(() => other.kill())
      const ended = once(other, 'exit')
      const page = await open(studio.url)
      await page.getByRole('link', { name: 'Clean up the folder, then publish.' }).first().click()
      await page.getByText('rm b.txt').first().click()
      await page.getByRole('button', { name: 'Allow exactly this' }).first().click()
      assert.deepEqual(await ended, [0, null])
      await page.getByText('All done.').first().waitFor()
      await page.getByText('allowed (ann)').first().waitFor()
      await screenshot(page, 'studio-answered')
    },
  )

  pageTest('shows what would change without a hook, with no model call and no tool call', async ({ open }) => {
    const { store, done } = await completed()
    const before = structuredClone(done)
    await using studio = await studioFor(store, { page: loadPage, agent: cleaner(store, done) })
    const page = await open(studio.url)
    await page.getByRole('link', { name: 'Clean up the folder, then publish.' }).first().click()
    await page.getByRole('button', { name: 'What if' }).click()
    await page.getByRole('complementary', { name: 'What if' }).getByLabel('no-push').uncheck()
    await page.getByText('the call would run').first().waitFor()
    assert.deepEqual(done, before)
  })

  pageTest('a run as one file is shown from the disk, and loads nothing', async ({ t, open }) => {
    const { store } = await completed()
    const view = await new RunReader(store).view({ session: 'clean-up' })
    const html = runAsPage(view, { page: await loadPage(), live: false, redact: [] })
    await store.close()
    const folder = mkdtempSync(join(tmpdir(), 'hookloop-page-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    writeFileSync(join(folder, 'run.html'), html)
    const page = await open(pathToFileURL(join(folder, 'run.html')).href)
    for (const text of ['git push', 'All done.', 'no-push']) await page.getByText(text).first().waitFor()
  })
})

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'node:test'
import { pathToFileURL } from 'node:url'
import type { Page } from 'playwright-core'
import { eventually, pageTest } from '../../../../scripts/browser/browser.fixture.ts'
import { completed, waiting } from '../scenes.fixture.ts'
import { cleaner, newStore, studioFor } from '../studio.fixture.ts'
import { bundlePage } from './bundle-page.ts'

const RUN = '#/run/clean-up/last/decisions'
const at = (url: string, route: string): string => `${url}&${route.slice(1)}`
const cell = (page: Page, name: string) => page.getByRole('gridcell', { name, exact: true })

suite('a studio in the browser', () => {
  pageTest(
    'shows a run of another process, answers its question, and shows how the run continues there',
    async ({ t, open }) => {
      const { store, path } = newStore()
      await using studio = await studioFor(store, { page: bundlePage })
      const page = await open(at(studio.url, '#/inbox'))
      await page.getByText('No run waits for an answer.').waitFor()

      const program = join(import.meta.dirname, 'elsewhere.fixture.ts')
      const other = spawn(process.execPath, ['--conditions=hookloop-source', program, path, 'clean-up'], {
        stdio: ['pipe', 'inherit', 'inherit'],
      })
      t.after(() => other.kill())
      const ended = once(other, 'exit')
      await page.getByRole('article', { name: 'bash: Remove it?' }).getByText('rm b.txt').waitFor()
      await page.getByRole('link', { name: 'Clean up the folder' }).click()
      await cell(page, 'ask-rm: asked').click()
      const answered = page.waitForResponse(/api\/answer/)
      await page.getByRole('button', { name: 'Allow exactly this' }).click()
      assert.equal((await answered).status(), 200)
      other.stdin.end()
      assert.deepEqual(await ended, [0, null])

      await page.locator('.run-head').getByText('completed', { exact: true }).waitFor()
      await page.getByRole('grid').getByText('All done.').first().waitFor()
      await cell(page, 'ask-rm: asked').click()
      await page.getByRole('complementary').getByText('"ran rm b.txt" [checked]').first().waitFor()
      assert.deepEqual(studio.errors, [])
    },
  )

  pageTest(
    'shows what hooks decided and changed in a recorded run, and what it would be without one',
    async ({ open, screenshot }) => {
      const { store, done } = await completed()
      await using studio = await studioFor(store, { page: bundlePage, agent: cleaner(store, done) })
      const page = await open(at(studio.url, RUN))
      const [models, tools] = [done.models, done.tools.length]
      await cell(page, 'no-push: blocked').click()
      await page.getByRole('region', { name: 'no-push: block' }).getByText('Agents never push.').waitFor()
      await cell(page, 'mark: changed').first().click()
      await eventually(
        () => page.getByRole('complementary').locator('.diff .add').allInnerTexts(),
        ['"ran ls" [checked]'],
      )
      await page.keyboard.press('w')
      await page.getByRole('complementary').getByLabel('no-push').uncheck()
      await page.getByText(/1 of \d+ decisions would change/).waitFor()
      await page.locator('.row.marked').waitFor()
      await screenshot(page, 'real-what-if')
      assert.deepEqual([done.models, done.tools.length], [models, tools])
      await page.getByRole('tab', { name: 'Time and cost' }).click()
      await page.getByRole('grid', { name: 'Waterfall' }).locator('rect').first().waitFor()
    },
  )

  pageTest('exports a run as one file that opens without the studio', async ({ open, t }) => {
    const { store } = await waiting()
    const studio = await studioFor(store, { page: bundlePage })
    t.after(() => studio[Symbol.asyncDispose]())
    const page = await open(at(studio.url, RUN))
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'HTML' }).click()
    const folder = mkdtempSync(join(tmpdir(), 'hookloop-page-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'run.html')
    await (await download).saveAs(file)
    const shared = await open(pathToFileURL(file).href)
    await cell(shared, 'no-push: blocked').click()
    await shared.getByRole('complementary').getByText('Agents never push.').first().waitFor()
  })
})

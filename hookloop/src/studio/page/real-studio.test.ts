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
import { tool } from '../../core/agent/tool.ts'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { sqliteStore } from '../../sessions/stores/sqlite-store.ts'
import { loadPage } from '../page-html.ts'
import { completed, waiting } from '../scenes.fixture.ts'
import { cleaner, newStore, studioFor } from '../studio.fixture.ts'

const RUN = '#/run/clean-up/last/decisions'
const at = (url: string, route: string): string => `${url}&${route.slice(1)}`
const cell = (page: Page, name: string) => page.getByRole('gridcell', { name, exact: true })

suite('a studio in the browser', () => {
  pageTest(
    'shows a run of another process, answers its question, and shows how the run continues there',
    async ({ t, open }) => {
      const { store, path } = newStore()
      await using studio = await studioFor(store, { page: loadPage })
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
      await using studio = await studioFor(store, { page: loadPage, agent: cleaner(store, done) })
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
      await page.getByText(/2 of \d+ decisions would change/).waitFor()
      await page.locator('.row.marked').waitFor()
      await screenshot(page, 'real-what-if')
      assert.deepEqual([done.models, done.tools.length], [models, tools])
      await page.getByRole('tab', { name: 'Time and cost' }).click()
      await page.getByRole('grid', { name: 'Waterfall' }).locator('rect').first().waitFor()
      await page.getByRole('tab', { name: 'Explanation' }).click()
      await page.getByText('blocked step 2, bash, by no-push: Agents never push.').waitFor()
    },
  )

  pageTest('grows while a run continues, without asking again for what it has', async ({ open, screenshot, t }) => {
    const { store, path } = newStore()
    const other = sqliteStore(path)
    t.after(() => other.close())
    let steps = 0
    let [waits, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const bash = tool({
      name: 'bash',
      description: 'Works.',
      input: { type: 'object' },
      execute: async () => {
        if (++steps % 100 !== 0) return 'done'
        held.resolve()
        await waits.promise
        return 'done'
      },
    })
    const model = scriptedModel(() => (steps < 300 ? { toolCalls: [{ name: 'bash', args: {} }] } : 'All done.'))
    const use = [bash, guards({ maxSteps: null, maxTokens: null })]
    const run = createAgent({ model, store: other, use }).run('Work.', { session: 'clean-up' })
    const next = async (): Promise<void> => {
      const [before, here] = [waits, held]
      ;[waits, held] = [Promise.withResolvers(), Promise.withResolvers()]
      await here.promise
      before.resolve()
    }
    await held.promise
    await using studio = await studioFor(store, { page: loadPage })
    const page = await open(at(studio.url, RUN))
    const rows = (count: number) =>
      eventually(() => page.getByRole('grid').getAttribute('aria-rowcount'), String(count + 1))
    await rows(201)
    const asked: string[] = []
    page.on('request', (request) => asked.push(new URL(request.url()).pathname))
    await next()
    await rows(401)
    await eventually(() => page.locator('.decided').innerText(), '') // a run that runs needs no advice
    await screenshot(page, 'real-live-run')
    await next()
    await rows(601)
    await next()
    await page.locator('.run-head').getByText('completed', { exact: true }).waitFor()
    await page.getByRole('grid').getByText('All done.').first().waitFor()
    await run
    assert.deepEqual(asked, [])
  })

  pageTest('lists sessions, and finds one by what was said in it', async ({ open, screenshot }) => {
    const where = newStore()
    const { store } = where
    await using studio = await studioFor(store, { page: loadPage })
    const page = await open(studio.url)
    await page.getByText('There is no session in this store yet.').waitFor()
    await waiting(where, 'waits')
    await page.getByRole('row', { name: 'waits' }).getByText('1 question').waitFor()
    await completed(where, 'clean-up')
    await page.getByRole('row', { name: 'clean-up' }).getByText('completed').waitFor()
    const ids = (expected: readonly string[]) =>
      eventually(() => page.locator('tbody td.main code').allInnerTexts(), [...expected])
    await ids(['clean-up', 'waits'])
    await page.keyboard.press('/')
    await page.keyboard.type('all done')
    await ids(['clean-up'])
    await screenshot(page, 'real-sessions')
    await page.getByLabel('Filter by text').fill('was never said')
    await page.getByText('No session matches.').waitFor()
    await page.getByLabel('Filter by text').fill('')
    await page.getByLabel('Filter by status').selectOption('suspended')
    await ids(['waits'])
    await page.getByLabel('Filter by status').selectOption('')
    await page.getByLabel('Filter by agent').fill('another')
    await page.getByLabel('Filter by agent').press('Enter')
    await page.getByText('No session matches.').waitFor()
    await page.getByLabel('Filter by agent').fill('cleaner')
    await page.getByLabel('Filter by folder').fill(process.cwd())
    await page.getByLabel('Filter by folder').press('Enter')
    await ids(['clean-up', 'waits'])
    await page.getByLabel('Filter by least cost').fill('0.01')
    await page.getByLabel('Filter by least cost').press('Enter')
    await page.getByText('No session matches.').waitFor()
    await page.getByLabel('Filter by least cost').fill('')
    await page.getByLabel('Filter by least cost').press('Enter')
    await ids(['clean-up', 'waits'])
    await store.delete('waits')
    await ids(['clean-up'])
    assert.deepEqual(studio.errors, [])
  })

  pageTest('searches the conversations of many sessions step by step', async ({ open, screenshot }) => {
    const { store } = newStore()
    for (let i = 0; i <= 130; i++) {
      const id = i === 0 ? 'oldest' : i === 130 ? 'latest' : `s${i}`
      const writer = await store.open(id, { create: true })
      await writer.append([JSON.stringify({ text: i === 0 ? 'the needle' : 'hay' })], {
        head: { title: id, status: 'completed' },
      })
      await writer.release()
    }
    await using studio = await studioFor(store, { page: loadPage })
    const page = await open(studio.url)
    await page.getByLabel('Filter by text').fill('needle')
    await page.getByText('No session matches so far.').waitFor()
    await page.getByText('Searched the sessions since').waitFor()
    await screenshot(page, 'real-search')
    const changed = Promise.withResolvers<void>()
    await page.route('**/api/sessions', async (route) => {
      const response = await route.fetch()
      await changed.promise
      await route.fulfill({ response })
    })
    await page.getByRole('button', { name: 'Search older sessions' }).click()
    await page.getByLabel('Filter by text').fill('latest')
    await eventually(() => page.locator('tbody td.main a').allInnerTexts(), ['latest'])
    changed.resolve()
    await page.locator('main[aria-busy=false]').waitFor()
    await eventually(() => page.locator('tbody td.main a').allInnerTexts(), ['latest'])
    await page.getByLabel('Filter by text').fill('needle')
    await page.getByText('No session matches so far.').waitFor()
    await page.getByRole('button', { name: 'Search older sessions' }).click()
    await eventually(() => page.locator('tbody td.main a').allInnerTexts(), ['oldest'])
    await eventually(() => page.getByText('Searched the sessions since').count(), 0)
  })

  pageTest('exports a session, and compares two of them step by step', async ({ open }) => {
    const where = newStore()
    await completed(where, 'clean-up')
    await waiting(where, 'waits')
    await using studio = await studioFor(where.store, { page: loadPage })
    const page = await open(studio.url)
    const row = (id: string) => page.getByRole('row', { name: id })
    await row('clean-up').getByRole('checkbox').check()
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export' }).click()
    assert.equal((await download).suggestedFilename(), 'clean-up.jsonl')
    await row('waits').getByRole('checkbox').check()
    await page.getByRole('button', { name: 'Compare the two' }).click()
    await page.getByRole('heading', { name: 'The runs part at step 3' }).waitFor()
  })

  pageTest('shows what each hook did in all runs, and leads to where', async ({ open }) => {
    const where = newStore()
    await completed(where, 'clean-up')
    await waiting(where, 'waits')
    await using studio = await studioFor(where.store, { page: loadPage })
    const page = await open(at(studio.url, '#/hooks'))
    await page.getByText('no-ls would have blocked 2').waitFor()
    const numbers = page.getByRole('row', { name: 'no-push' }).locator('td.number')
    await eventually(async () => numbers.allInnerTexts(), ['2', '0', '0', '0', '0'])
    await page.getByRole('row', { name: 'no-push' }).getByRole('link').first().click()
    await page.waitForURL(/#\/run\/waits\/0\//)
    await cell(page, 'no-push: blocked').waitFor()
  })

  pageTest('exports a run as one file that opens without the studio', async ({ open, t }) => {
    const { store } = await waiting()
    const studio = await studioFor(store, { page: loadPage })
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

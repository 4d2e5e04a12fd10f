import assert from 'node:assert/strict'
import { suite } from 'node:test'
import type { Page } from 'playwright-core'
import { eventually, pageTest } from '../../../../scripts/browser/browser.fixture.ts'
import type { Row } from '../run.types.ts'
import { fakeStudio } from './fake-studio.fixture.ts'
import { exampleRun, question } from './run-data.fixture.ts'

const RUN = `/run/${question.session}/1/decisions`
const row = (page: Page, index: number) => page.locator(`[aria-rowindex="${index + 2}"]`)
const detail = (page: Page) => page.getByRole('complementary', { name: 'Detail' })
const cell = (page: Page, name: string) => page.getByRole('gridcell', { name, exact: true })

suite('the view of a run', () => {
  pageTest('has a row for each event and a column for each hook, with shadows marked', async ({ open, screenshot }) => {
    await using studio = await fakeStudio()
    const page = await open(studio.url(RUN), { width: 1180, height: 720 })
    const grid = page.getByRole('grid')
    await eventually(() => grid.getAttribute('aria-rowcount'), String(exampleRun.rows.length + 1))
    await row(page, 5).getByText('git push origin main').waitFor()
    const hooks = exampleRun.run.columns.filter(({ bookkeeping }) => !bookkeeping)
    await eventually(
      async () => (await grid.getByRole('columnheader').allTextContents()).slice(1),
      hooks.map(({ hook, shadow }) => (shadow ? `${hook} *` : hook)),
    )
    for (const name of ['no-push: blocked', 'no-ls: blocked, but in shadow mode: not applied', 'ask-rm: asked'])
      await eventually(() => cell(page, name).count(), 1)
    await page.getByLabel('all hooks').check()
    await grid.getByText('tasks-bookkeeping').waitFor()
    await page.getByLabel('all hooks').uncheck()
    await cell(page, 'no-push: blocked').click()
    await detail(page).getByText('Agents never push.').first().waitFor()
    await screenshot(page, 'studio-run')
  })

  pageTest('shows how the run ended, who decided that, and what was used of each limit', async ({ open }) => {
    await using studio = await fakeStudio()
    const page = await open(studio.url(RUN))
    const head = page.locator('.run-head')
    for (const text of [
      'suspended',
      'by ask-rm',
      'Deletes files that are not in git.',
      '.hookloop/hooks.json:8',
      'run 2 of 2',
    ])
      await head.getByText(text).first().waitFor()
    await eventually(
      () => head.getByRole('list', { name: 'Limits' }).getByRole('listitem').allInnerTexts(),
      ['steps\n6 of 20', 'tokens\n27.7K of 32.8K', 'cost\n$0.049 of $0.100', 'time\n27.5 s of 5 min 0 s'],
    )
  })

  pageTest('shows who decided in a cell, why, in what time and in which file and line', async ({ open }) => {
    await using studio = await fakeStudio()
    const page = await open(studio.url(RUN))
    await cell(page, 'no-push: blocked').click()
    const entry = detail(page).getByRole('region', { name: 'no-push: block' })
    await eventually(
      async () => (await entry.innerText()).split(/\n+/),
      [
        'no-push',
        'block',
        'Agents never push. Open a pull request instead.',
        'guard at beforeToolUse · 0.4 ms',
        'agent.ts:12',
      ],
    )
  })

  pageTest('shows what a hook changed as a diff, and says that a value before may be secret', async ({ open }) => {
    await using studio = await fakeStudio()
    const page = await open(studio.url(RUN))
    await cell(page, 'normalize-paths: changed').click()
    const entry = detail(page).getByRole('region', { name: 'normalize-paths: changed' })
    await entry.getByText('toolCall.args.path').waitFor()
    await eventually(() => entry.locator('.del').innerText(), './src/../config.json')
    await eventually(() => entry.locator('.add').innerText(), 'config.json')
    await detail(page).getByText('it may be a secret').waitFor()
  })

  pageTest('shows the votes after a step, and how they were counted', async ({ open }) => {
    await using studio = await fakeStudio()
    const page = await open(studio.url(`${RUN}/13`))
    await detail(page).getByRole('heading', { name: 'The run continues' }).waitFor()
    await detail(page).getByText('forbidContinuation beats requestContinuation').waitFor()
    await eventually(() => detail(page).locator('tbody tr.winner td').first().innerText(), 'tests-must-pass')
  })

  pageTest('is used by keyboard: decisions, rows, cells, search, fork, compare, help', async ({ open }) => {
    await using studio = await fakeStudio()
    const page = await open(studio.url(RUN))
    await row(page, 0).waitFor()
    const press = async (keys: string, then: string) => {
      for (const key of keys.split(' ')) await page.keyboard.press(key)
      await page.locator(`#${then}.active`).waitFor()
      await eventually(() => page.getByRole('grid').getAttribute('aria-activedescendant'), then)
    }
    await press('n', 'r3c4') // normalize-paths changed
    await press('n', 'r5c6') // no-push blocked; a shadow is no decision
    await press('p', 'r3c4')
    await press('n n p', 'r5c6')
    await press('p', 'r3c4')
    await press('ArrowDown ArrowDown ArrowUp', 'r4c4')
    await press('ArrowRight ArrowRight ArrowLeft', 'r4c5')
    await press('ArrowLeft k', 'r3c4')
    await press('End', 'r15c4')
    await press('Home', 'r0c4')

    await page.keyboard.press('/')
    await page.keyboard.type('npm test')
    await page.keyboard.press('Enter')
    await page.locator('#r11c4.active').waitFor()
    await page.getByText('Row 12 of 16').first().waitFor()
    await page.keyboard.press('Escape')

    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys and signs' }).waitFor()
    await page.keyboard.press('Escape')
    await eventually(() => page.locator('dialog').count(), 0)
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys and signs' }).waitFor()
    // A key that is pressed before the page knows that the browser closed a dialog.
    await page.evaluate(
      `document.querySelector('dialog').close(); dispatchEvent(new KeyboardEvent('keydown', { key: 'c' }))`,
    )
    const dialog = page.getByRole('dialog', { name: 'Compare this run with …' })
    await dialog.getByText('What is in this folder?').click()
    await page.getByRole('heading', { name: 'The runs part at step 2' }).waitFor()
    assert.deepEqual(studio.sent.find(({ name }) => name === 'compare')?.request, {
      a: { session: question.session, run: 1 },
      b: { session: question.session, run: 0 },
    })
  })

  pageTest('forks the session after the selected step, with another message', async ({ open }) => {
    await using studio = await fakeStudio()
    const page = await open(studio.url(`${RUN}/4`))
    await detail(page).getByText('Fork after step 2').waitFor()
    await page.keyboard.press('f')
    const dialog = page.getByRole('dialog', { name: 'Fork the session after step 2' })
    await dialog.getByRole('textbox').fill('Open a pull request instead.')
    await dialog.getByRole('button', { name: 'Fork' }).click()
    await page.waitForURL(/#\/run\/forked\//)
    assert.deepEqual(studio.sent.find(({ name }) => name === 'fork')?.request, {
      session: question.session,
      at: 11,
      message: 'Open a pull request instead.',
    })
  })

  pageTest('grows while the run is running, follows its end, and says that the run has ended', async ({ open }) => {
    const rows = longRun(60)
    const run = { ...exampleRun.run, status: 'running' as const, live: true, rows: rows.length }
    await using studio = await fakeStudio({ run: { ...exampleRun, run, rows, details: [] } })
    const page = await open(studio.url(RUN))
    await page.locator('.strip .live').waitFor()
    await page.keyboard.press('End')
    await row(page, 59).waitFor()
    const place = { seq: 1, at: 0, run: 'r', step: 1 }
    studio.change({ type: 'event', event: { type: 'text', delta: 'I am writ', ...place } })
    studio.change({ type: 'event', event: { type: 'text', delta: 'ing this', ...place } })
    await page.getByText('I am writing this').waitFor()
    const next = longRun(90)
    studio.change({ type: 'rows', rows: next.slice(60), total: 90 })
    await row(page, 89).getByText('call 89').waitFor()
    studio.change({ type: 'rows', rows: [{ ...next[89]!, text: 'replaced', status: 'ok' }], total: 90 })
    await row(page, 89).getByText('replaced').waitFor()
    studio.change({ type: 'run', run: { ...run, status: 'completed', live: false } })
    await page.locator('.run-head').getByText('completed').waitFor()
    await eventually(() => page.locator('.strip').count(), 0)
    studio.change({ type: 'newRun', run: 2 })
    await page.getByRole('link', { name: 'Show run 3' }).waitFor()
    studio.change({ type: 'deleted' })
    await page.getByText('This session was deleted.').waitFor()
    await eventually(() => page.title(), `${question.session} · Hookloop studio`)
  })

  pageTest('keeps a row that has changed while an older one was being loaded', async ({ open }) => {
    const rows = longRun(600)
    const run = { ...exampleRun.run, status: 'running' as const, live: true, rows: rows.length }
    await using studio = await fakeStudio({ run: { ...exampleRun, run, rows, details: [] } })
    const page = await open(studio.url(RUN))
    await row(page, 599).getByText('call 599').waitFor()
    const changed = Promise.withResolvers<void>()
    await page.route('**/api/rows', async (route) => {
      const response = await route.fetch()
      await changed.promise
      await route.fulfill({ response })
    })
    await page.evaluate('document.querySelector("#matrix").scrollTop = 8_400')
    await row(page, 300).and(page.locator('.loading')).waitFor()
    studio.change({ type: 'rows', rows: [{ ...rows[300]!, text: 'changed' }], total: 600 })
    await row(page, 300).getByText('changed').waitFor()
    changed.resolve()
    await row(page, 301).getByText('call 301').waitFor()
    await eventually(() => row(page, 300).locator('.what').innerText(), 'changed')
  })

  pageTest(
    'connects again after the studio was lost, and asks for the new rows and the last 500, which may have changed',
    async ({ open, takeProblems }) => {
      const rows = longRun(600)
      const run = { ...exampleRun.run, status: 'running' as const, live: true, rows: rows.length }
      await using studio = await fakeStudio({ run: { ...exampleRun, run, rows, details: [] } })
      const page = await open(studio.url(RUN))
      await row(page, 599).waitFor()
      studio.change({ type: 'rows', rows: longRun(604).slice(600), total: 604 })
      await page.getByRole('grid').and(page.locator('[aria-rowcount="605"]')).waitFor()
      const connect = studio.drop()
      await page.getByText('Connecting …').waitFor()
      connect()
      await page.locator('.strip:not(.lost)').waitFor()
      const streams = studio.sent.filter(({ request }) => typeof (request as { from?: unknown }).from === 'number')
      assert.deepEqual(
        streams
          .filter(({ name, request }) => name === 'run' && 'from' in (request as object))
          .map(({ request }) => (request as { from: number }).from),
        [100, 104],
      )
      assert.deepEqual(
        takeProblems().filter((problem) => !problem.includes('ERR_')),
        [],
      )
    },
  )

  pageTest(
    'stays small with 10,000 steps: the document has the visible rows only, and any row is one key away',
    async ({ open }) => {
      const rows = longRun(30_000)
      await using studio = await fakeStudio({
        run: { ...exampleRun, run: { ...exampleRun.run, rows: rows.length }, rows, details: [] },
      })
      const page = await open(studio.url(RUN))
      await row(page, 0).waitFor()
      const isSmall = async () => (await page.locator('.virtual [role=row]').count()) < 60
      await eventually(isSmall, true)
      await page.keyboard.press('End')
      await row(page, 29_999).getByText('call 29999').waitFor()
      await eventually(isSmall, true)
      await page.evaluate('document.querySelector("#matrix").scrollTop = 420_000')
      await row(page, 15_000).getByText('call 15000').waitFor()
      await eventually(isSmall, true)
      const loads = studio.sent.filter(({ name }) => name === 'rows')
      assert.ok(loads.length < 12, `${loads.length} pages were loaded`)
    },
  )
})

/** Rows of a run with three rows per step. */
function longRun(total: number): readonly Row[] {
  return Array.from({ length: total }, (_, index) => ({
    index,
    kind: index % 3 === 0 ? 'model' : index % 3 === 1 ? 'call' : 'votes',
    step: Math.floor(index / 3),
    text: `call ${index}`,
    cells: ' ----x---',
    decision: index % 100 === 0,
  }))
}

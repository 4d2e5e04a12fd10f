import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { gzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { eventually, pageTest, type PageTest } from '../../../../scripts/browser/browser.fixture.ts'
import type { EmbeddedRun } from '../run.types.ts'
import { bundlePage } from './bundle-page.ts'
import { fakeStudio } from './fake-studio.fixture.ts'
import { exampleRun, question } from './run-data.fixture.ts'
import { sessions } from './studio-data.fixture.ts'

const RUN = `/run/${question.session}/1/decisions`
const views: { readonly [name: string]: readonly [route: string, shows: string] } = {
  sessions: ['/sessions', 'Find flaky tests.'],
  inbox: ['/inbox', 'packages/site'],
  hooks: ['/hooks', 'would have blocked'],
  run: [`${RUN}/5`, 'Agents never push.'],
  question: [`${RUN}/15`, 'Allow exactly this'],
  votes: [`${RUN}/13`, 'The run continues'],
  time: [`/run/${question.session}/1/time`, '8.4 s'],
  explanation: [`/run/${question.session}/1/explanation`, 'The run waits for 1 answer.'],
  compare: ['/compare/a/1/b/0', 'The runs part at step 2'],
}

/** A view that has loaded all it shows. */
async function visit({ open }: Pick<PageTest, 'open'>, url: string, shows: string): Promise<Page> {
  const page = await open(url)
  await page.getByText(shows).first().waitFor()
  await eventually(() => page.locator('.loading, [aria-busy=true], .empty:text("Loading …")').count(), 0)
  return page
}

test('the page is at most 60 KB gzipped', async () => {
  const { script, style } = await bundlePage()
  const bytes = gzipSync(script).length + gzipSync(style).length
  assert.ok(bytes <= 60_000, `${bytes} bytes`)
})

test('no component sets HTML', () => {
  const files = globSync(join(import.meta.dirname, 'app/*.{ts,tsx}'))
  assert.deepEqual(
    files.filter((file) =>
      /innerHTML|dangerouslySet|insertAdjacent|createContextual|srcdoc|document\.write/i.test(
        readFileSync(file, 'utf8'),
      ),
    ),
    [],
  )
})

suite('every view', () => {
  for (const [name, [route, shows]] of Object.entries(views))
    pageTest(
      `${name}: has names for its controls, a contrast of at least 4.5 in both color schemes, and fits a phone`,
      async ({ open, screenshot }) => {
        await using studio = await fakeStudio()
        const page = await visit({ open }, studio.url(route), shows)
        await eventually(() => page.evaluate(unnamedControls), [])
        await eventually(() => page.getByRole('heading', { level: 1 }).count(), 1)
        await screenshot(page, `${name}-light`)
        const colors: unknown[] = []
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme })
          await eventually(() => page.evaluate(weakTexts), [])
          colors.push(await page.evaluate('getComputedStyle(document.body).backgroundColor'))
        }
        assert.deepEqual(colors, ['rgb(255, 255, 255)', 'rgb(19, 20, 23)'])
        await screenshot(page, `${name}-dark`)
        await page.keyboard.press('Tab')
        await eventually(() => page.evaluate('document.activeElement.textContent'), 'Sessions')
        await page.setViewportSize({ width: 390, height: 844 })
        await eventually(() => page.evaluate('document.documentElement.scrollWidth'), 390)
        await eventually(() => page.evaluate(smallButtons), [])
        await screenshot(page, `${name}-phone`)
      },
    )
})

suite('the link of the studio', () => {
  pageTest('contains a token that leaves the address at once and survives a reload', async ({ open, takeProblems }) => {
    await using studio = await fakeStudio()
    const page = await open(studio.url('/inbox'))
    await page.getByRole('heading', { name: 'Inbox' }).waitFor()
    await eventually(async () => page.url(), `${studio.origin}/#/inbox`)
    await page.reload()
    await page.getByText('packages/site').waitFor()
    const other = await open(`${studio.origin}/#/inbox`, { sameUserAs: page })
    await other.getByText('Open the link that `hookloop studio` printed last.').waitFor()
    assert.match(takeProblems().join(), /401/)
  })
})

suite('a page in one file', () => {
  pageTest(
    'shows a run without a studio: it sends nothing and offers nothing that needs one',
    async ({ t, open, screenshot }) => {
      const folder = mkdtempSync(join(tmpdir(), 'hookloop-page-'))
      t.after(() => rmSync(folder, { recursive: true }))
      writeFileSync(join(folder, 'run.html'), await inOneFile(exampleRun))
      const page = await open(pathToFileURL(join(folder, 'run.html')).href)
      const requests: string[] = []
      page.on('request', (request) => requests.push(request.url()))
      await page.getByRole('grid').waitFor()
      await page.keyboard.press('n')
      await page.locator('#r3c4.active').waitFor()
      await page.keyboard.press('/')
      await page.keyboard.type('Agents never push')
      await page.keyboard.press('Enter')
      await page.locator('#r5c4.active').waitFor()
      await page.getByRole('complementary').getByText('agent.ts:12').waitFor()
      await screenshot(page, 'one-file')
      for (const name of ['Fork', 'Compare', 'What if', 'HTML'])
        await eventually(() => page.getByRole('button', { name }).count(), 0)
      await page.getByRole('tab', { name: 'Time and cost' }).click()
      await page.getByText('8.4 s').waitFor()
      assert.deepEqual(requests, [])
    },
  )
})

suite('hostile text', () => {
  const attacks = [
    '<img src=x onerror="globalThis.hacked=1"><script>globalThis.hacked=1</script>',
    '"><svg onload="globalThis.hacked=1">',
    'javascript:globalThis.hacked=1',
    '![x](https://example.com/x.png) [link](https://example.com/)',
    '\u001B[2J\u001B]8;;https://example.com/\u0007link\u001B]8;;\u0007',
    'safe\u202Etxt.exe\u2066\u200B\u{E0041}',
  ].join(' ')
  const big = `${attacks} ${'A'.repeat(250_000)}`
  const hostile = (text: string): EmbeddedRun => ({
    ...exampleRun,
    explanation: { text: big, warnings: [text] },
    run: {
      ...exampleRun.run,
      input: text,
      agent: text,
      decided: { by: text, message: text, definedAt: text },
      columns: exampleRun.run.columns.map((column) => ({ ...column, hook: text, group: text, definedAt: text })),
    },
    rows: exampleRun.rows.map((row) => ({ ...row, name: text, text, path: [text] })),
    details: exampleRun.details.map((each) => ({
      ...each,
      text: big,
      args: { [text]: big, nested: { [text]: [text] } },
      originalArgs: { old_string: text, new_string: big },
      output: { [text]: big },
      errors: [text],
      entries: each.entries.map((entry) => ({
        ...entry,
        hook: text,
        message: big,
        error: text,
        decision: text,
        value: text,
        warnings: [{ code: 'ACTION_WARNING', message: text }],
        changes: [{ path: text, before: big, after: text }],
      })),
    })),
  })

  const attack = (
    title: string,
    visit: (given: PageTest, studio: Awaited<ReturnType<typeof fakeStudio>>) => Promise<Page>,
  ) =>
    pageTest(title, async (given) => {
      const questions = [
        {
          ...question,
          title: attacks,
          message: attacks,
          toolCall: {
            id: 'c',
            name: attacks,
            args: { [attacks]: big, old_string: attacks, new_string: big },
          },
          asks: [{ by: attacks, message: attacks }],
        },
      ]
      await using studio = await fakeStudio({
        run: hostile(attacks),
        questions,
        sessions: sessions.map((each) => ({ ...each, title: attacks, agent: attacks, cwd: attacks, problem: attacks })),
      })
      const page = await visit(given, studio)
      assert.equal(await page.evaluate('globalThis.hacked'), undefined)
      assert.deepEqual(
        await page.evaluate(
          '[...document.querySelectorAll(\'img, iframe, object, script:not([src]), a[href^="http"], a[href^="javascript"]\')].length',
        ),
        0,
      )
      const shown = (await page.evaluate('document.body.innerText')) as string
      // oxlint-disable-next-line no-control-regex
      assert.doesNotMatch(shown, /[\u0000-\u0008\u000E-\u001F\u007F-\u009F\u200B\u202A-\u202E\u2066-\u2069]/)
      assert.match(shown, /\\u\{202e\}/)
      assert.match(shown, /<img src=x onerror=/)
    })

  attack('in a run is shown as text, with invisible characters escaped', async ({ open, screenshot }, studio) => {
    const page = await open(studio.url(`${RUN}/5`))
    await page.getByRole('complementary').getByText('hidden)').first().waitFor()
    await page
      .getByRole('button', { name: /^Show 100.0 KB more/ })
      .first()
      .click()
    await screenshot(page, 'hostile')
    return page
  })
  attack('in a list is shown as text', async ({ open }, studio) => {
    const page = await open(studio.url('/sessions'))
    await page.locator('tbody tr').first().waitFor()
    return page
  })
  attack('in a question is shown as text', async ({ open }, studio) => {
    const page = await open(studio.url('/inbox'))
    await page.getByRole('button', { name: 'Allow exactly this' }).waitFor()
    return page
  })
  pageTest('in the address leads to a message of the studio, not to a request elsewhere', async ({ open }) => {
    await using studio = await fakeStudio()
    for (const route of [
      '/run/%3Cimg src=x onerror=alert(1)%3E',
      '/run/..%2F..%2Fapi/x',
      '/compare/%ff/x/%00/y',
      '//example.com/',
      '/run/__proto__/constructor',
    ]) {
      const page = await open(studio.url(route))
      await page.getByRole('heading', { level: 1 }).waitFor()
      assert.equal(new URL(page.url()).origin, studio.origin)
    }
  })
})

async function inOneFile(data: EmbeddedRun): Promise<string> {
  const { script, style } = await bundlePage()
  const hash = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
  const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; require-trusted-types-for 'script'; trusted-types 'none'`
  const json = JSON.stringify(data).replaceAll('<', String.raw`\u003c`)
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}"><title>Run</title><style>${style}</style><body><script type="application/json" id="hookloop-data">${json}</script><script>${script}</script></body></html>`
}

/** Texts that are hard to read: their contrast with what is behind them is below 4.5. */
const weakTexts = `(() => {
  const parse = (color) => (color.match(/[\\d.]+/g) ?? []).map(Number)
  const over = ([r, g, b, a = 1], below) => [r, g, b].map((v, i) => v * a + below[i] * (1 - a))
  const light = (rgb) => rgb.map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0)
  const behind = (element) => {
    if (element === null) return [255, 255, 255]
    const color = parse(getComputedStyle(element).backgroundColor)
    return color.length === 3 ? color : over(color, behind(element.parentElement))
  }
  const weak = new Set()
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const element = node.parentElement
    if (node.data.trim() === '' || element.closest('.hidden, [disabled], .zero, datalist, option, script') || element.getClientRects().length === 0) continue
    const below = behind(element)
    const [a, b] = [light(over(parse(getComputedStyle(element).color), below)), light(below)].sort((x, y) => y - x)
    const contrast = (a + 0.05) / (b + 0.05)
    if (contrast < 4.5) weak.add(element.className + ' "' + node.data.slice(0, 30) + '" ' + contrast.toFixed(2))
  }
  return [...weak]
})()`

const smallButtons = `[...document.querySelectorAll('button:not(.plain, .more)')].filter((each) => each.getClientRects().length > 0 && each.getBoundingClientRect().height < 32).map((each) => each.textContent)`

const unnamedControls = `[...document.querySelectorAll('button, a, input, select, textarea')]
  .filter((each) => !each.textContent.trim() && !each.getAttribute('aria-label') && !each.closest('label') && !each.title).map((each) => each.outerHTML)`

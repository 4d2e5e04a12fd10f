import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, test, type TestContext } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { report } from '../test-reporter.ts'
import { findBrowser } from './find-browser.ts'

/** Where tests put screenshots. Git ignores it. */
export const screenshots = join(import.meta.dirname, '../../.cache/screenshots')

export type OpenOptions = {
  readonly width?: number
  readonly height?: number
  readonly dark?: boolean
  /** Runs in the page before its own scripts, for example to fill sessionStorage. */
  readonly before?: string
}

export type PageTest = {
  readonly t: TestContext
  /** Opens a page in a browser profile of its own. Two calls are two users, unless the second shares the first's profile. */
  readonly open: (url: string, options?: OpenOptions & { readonly sameUserAs?: Page }) => Promise<Page>
  /** Writes `.cache/screenshots/<name>.png`. */
  readonly screenshot: (page: Page, name: string) => Promise<void>
  /** Errors in consoles, uncaught errors, violations of a CSP and requests to other hosts, so far. Empties the list. */
  readonly takeProblems: () => string[]
}

/**
 * No sandbox, because tests may run as root. No services in the background, and no host but this computer: a page under
 * test, and the browser itself, reach nothing else.
 */
const switches = [
  '--no-sandbox',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-default-apps',
  '--disable-domain-reliability',
  '--disable-sync',
  '--disable-dev-shm-usage',
  '--disable-gpu',
  '--no-pings',
  '--font-render-hinting=none',
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost, EXCLUDE [::1]',
]

/** Locators wait for events, not for time. This only ends a test whose page never gets there. */
const TIMEOUT_MS = 120_000

/** Set it to a factor, such as 20, to find races: a page computes that much slower, and its frames and responses are late. */
const slow = process.env['HOOKLOOP_TEST_SLOW_PAGE']
const SLOW = `
  const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
  const { fetch: send, requestAnimationFrame: frame } = window
  window.fetch = async (...given) => {
    const response = await send(...given)
    await later(300)
    return response
  }
  window.requestAnimationFrame = (draw) => frame(() => setTimeout(() => draw(performance.now()), 150))`

const program = await findBrowser()
if (program === undefined)
  report({
    type: 'notRun',
    title:
      'page tests, because there is no browser. "npm test" installs one on Linux x64; elsewhere install Chrome or Chromium.',
  })

let browser: Promise<Browser> | undefined
if (program !== undefined) after(async () => (await browser)?.close())

/**
 * Waits until the page shows what is expected, and fails with what it shows instead. A page is drawn later than an action or a
 * response, so a test never asserts what it reads at once.
 */
export async function eventually<T>(read: () => Promise<T>, expected: T): Promise<void> {
  const end = Date.now() + TIMEOUT_MS
  for (;;) {
    const actual = await read()
    if (isDeepStrictEqual(actual, expected)) return
    if (Date.now() > end) assert.deepEqual(actual, expected)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/**
 * A test in a real browser. It fails if a page logs an error, violates its CSP, or sends a request to another host, unless
 * the test takes these problems. On a machine without a browser there is no test, and the summary of the test run says so.
 */
export function pageTest(title: string, body: (given: PageTest) => Promise<void>): void {
  if (program === undefined) return
  test(title, async (t) => {
    browser ??= chromium.launch({
      executablePath: program.path,
      env: Object.fromEntries(Object.entries(program.env).map(([name, value]) => [name, value ?? ''])),
      args: switches,
      timeout: TIMEOUT_MS,
    })
    const launched = await browser
    const contexts: BrowserContext[] = []
    let problems: string[] = []
    const takeProblems = (): string[] => {
      const taken = problems
      problems = []
      return taken
    }

    const open: PageTest['open'] = async (
      url,
      { width = 1280, height = 800, dark = false, before, sameUserAs } = {},
    ) => {
      const context =
        sameUserAs?.context() ??
        (await launched.newContext({
          viewport: { width, height },
          colorScheme: dark ? 'dark' : 'light',
          reducedMotion: 'reduce',
        }))
      if (sameUserAs === undefined) {
        contexts.push(context)
        context.setDefaultTimeout(TIMEOUT_MS)
        if (before !== undefined) await context.addInitScript({ content: before })
        if (slow !== undefined) await context.addInitScript({ content: SLOW })
      }
      const page = await context.newPage()
      if (slow !== undefined)
        await (await context.newCDPSession(page)).send('Emulation.setCPUThrottlingRate', { rate: Number(slow) })
      page.on('console', (message) => message.type() === 'error' && problems.push(`console: ${message.text()}`))
      page.on('pageerror', (error) => problems.push(`uncaught: ${error.stack ?? error.message}`))
      page.on('request', (request) => {
        const { protocol, hostname } = new URL(request.url())
        const isLocal =
          /^(data|blob|about|file):$/.test(protocol) || /^(127\.0\.0\.1|localhost|\[::1\])$/.test(hostname)
        if (!isLocal) problems.push(`request: ${request.url()}`)
      })
      await page.goto(url)
      return page
    }
    const screenshot: PageTest['screenshot'] = async (page, name) => {
      mkdirSync(screenshots, { recursive: true })
      await page.screenshot({ path: join(screenshots, `${name}.png`) })
    }

    try {
      await body({ t, open, screenshot, takeProblems })
      assert.deepEqual(problems, [])
    } finally {
      for (const context of contexts) await context.close()
    }
  })
}

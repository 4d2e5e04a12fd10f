import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { build } from 'esbuild'
import { approval, createAgent, tool, type LanguageModel } from 'hookloop'
import { serve, toNodeListener } from 'hookloop/serve'
import { memoryStore } from 'hookloop/sessions'
import { scriptedModel } from 'hookloop/testing'
import type { Page } from 'playwright-core'
import * as z from 'zod'
import { eventually, pageTest } from './browser.fixture.ts'

// `useChat` of @ai-sdk/react, unchanged, in the page of the guide.

const PAGE = 'examples/web-page/page.jsx'

async function bundled(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [PAGE],
    bundle: true,
    format: 'esm',
    jsx: 'automatic',
    write: false,
    define: { 'process.env.NODE_ENV': '"production"' },
  })
  return outputFiles[0]!.text
}

const paid: string[] = []
const pay = tool({
  name: 'pay',
  description: 'Pays.',
  input: z.object({ to: z.string() }),
  ask: true,
  execute: ({ to }) => {
    paid.push(to)
    return `paid ${to}`
  },
})

async function listen(t: TestContext, model: LanguageModel): Promise<string> {
  const agent = createAgent({ model, use: [pay, approval('suspend')] })
  const handle = serve(agent, { store: memoryStore(), user: () => 'ann' })
  const files = new Map([
    [
      '/',
      [
        'text/html',
        '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><body><script type="module" src="/page.js"></script>',
      ],
    ],
    ['/page.js', ['text/javascript', await bundled()]],
  ])
  const server = createServer(
    toNodeListener(async (request) => {
      const [type, text] = files.get(new URL(request.url).pathname) ?? []
      return text === undefined ? handle(request) : new Response(text, { headers: { 'content-type': type! } })
    }),
  )
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

async function send(page: Page, text: string): Promise<void> {
  await page.getByLabel('Message').fill(text)
  await page.getByRole('button', { name: 'Send' }).click()
}

const answers = (page: Page) => page.locator('article.assistant p')

pageTest(
  'useChat in a browser shows text and tools, answers a question, and has the conversation after a reload',
  async (given) => {
    const model = scriptedModel(({ messages }) =>
      messages.at(-1)!.role === 'tool'
        ? 'Ann <b>is</b> paid.'
        : { reasoning: 'A payment.', text: 'I pay.', toolCalls: [{ name: 'pay', args: { to: 'ann' } }] },
    )
    const page = await given.open(await listen(given.t, model))
    await send(page, 'Pay Ann.')
    await page.getByRole('button', { name: 'Allow' }).waitFor()
    await page.reload()
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.getByText('Ann <b>is</b> paid.').waitFor()
    assert.deepEqual(paid.splice(0), ['ann'])
    const shows = () =>
      eventually(
        () => page.locator('article.assistant > *').allInnerTexts(),
        ['A payment.', 'I pay.', 'pay {"to":"ann"} paid ann', 'Ann <b>is</b> paid.'],
      )
    await shows()
    await given.screenshot(page, 'serve-use-chat')
    await page.reload()
    await shows()
  },
)

pageTest(
  'useChat in a browser stops, answers again, and continues an answer after a reload and in a second tab',
  async (given) => {
    let finish = (): void => undefined
    let calls = 0
    const model: LanguageModel = {
      provider: 'test',
      modelId: 'slow',
      infer: async (_request, { onDelta, signal }) => {
        calls++
        onDelta?.({ type: 'text', delta: 'One ' })
        await new Promise<void>((resolve, reject) => {
          finish = resolve
          signal.addEventListener('abort', () => reject(new Error('aborted')))
        })
        onDelta?.({ type: 'text', delta: 'two.' })
        return { content: [{ type: 'text', text: 'One two.' }], finishReason: 'stop' }
      },
    }
    const url = await listen(given.t, model)
    const page = await given.open(url)
    await send(page, 'Go.')
    await page.getByText('One').waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByRole('button', { name: 'Send' }).waitFor()
    await page.getByRole('button', { name: 'Answer again' }).click()
    await eventually(async () => calls, 2) // the text of the first answer may still be there
    await page.getByText('One').waitFor()
    await page.reload()
    await page.getByText('One').waitFor()
    const tab = await given.open(url, { sameUserAs: page })
    await tab.getByText('One').waitFor()
    finish()
    for (const each of [page, tab]) {
      await each.getByText('One two.').waitFor()
      await each.getByRole('button', { name: 'Send' }).waitFor()
      await eventually(() => answers(each).allInnerTexts(), ['One two.'])
    }
  },
)

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { ScriptedProject } from '../../hookloop/src/cli/scripted-project.fixture.ts'
import { eventually, pageTest } from './browser.fixture.ts'

// The page of `hookloop serve`.

async function start(t: TestContext): Promise<{ readonly project: ScriptedProject; readonly url: string }> {
  const project = new ScriptedProject()
  const server = project.start(['serve', 'agent.ts', '--port', '0', '--json'])
  t.after(async () => {
    server.kill('SIGKILL')
    await server.ended
  })
  return { project, url: (JSON.parse(await server.firstLine()) as { url: string }).url }
}

pageTest(
  'the page of hookloop serve shows answers as text, answers questions, and has the chat after a reload',
  async (given) => {
    const { project, url } = await start(given.t)
    const page = await given.open(url)
    await eventually(async () => new URL(page.url()).hash, '') // the token is in no history
    await page.getByLabel('Message').fill('hello <img src=x onerror=alert(1)>')
    await page.keyboard.press('Enter')
    await page.getByText('I heard hello <img src=x onerror=alert(1)>').waitFor()
    assert.equal(await page.evaluate('document.images.length'), 0)
    await page.getByLabel('Message').fill('deploy prod stage')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText('Deploy to stage?').waitFor()
    await page.reload()
    await page.getByText('Deploy to prod?').waitFor()
    await page.getByRole('button', { name: 'Allow' }).first().click()
    await page.getByRole('button', { name: 'Block' }).click()
    await page.getByText('It says: live on prod').waitFor()
    assert.deepEqual(project.done(), ['deployed to prod'])
    await given.screenshot(page, 'serve-chat-page')
    await page.getByRole('button', { name: 'Answer again' }).click()
    await page.getByText('Deploy to stage?').waitFor()
    await page.getByRole('button', { name: 'New chat' }).click()
    await page.locator('main:empty').waitFor({ state: 'attached' })
    await page.getByLabel('Message').fill('hi')
    await page.keyboard.press('Enter')
    await page.getByText('I heard hi').waitFor()
    await page.locator('option', { hasText: 'hello' }).waitFor({ state: 'attached' })
  },
)

pageTest('the page of hookloop serve stops an answer, and says why a request was rejected', async (given) => {
  const { url } = await start(given.t)
  const page = await given.open(url)
  await page.getByLabel('Message').fill('slow')
  await page.keyboard.press('Enter')
  await page.getByText('word word').waitFor()
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.getByRole('button', { name: 'Send' }).waitFor()
  const other = await given.open(new URL('/', url).href)
  await other.getByText('Open the address that the terminal shows.').waitFor()
  given.takeProblems() // the browser logs the 401
})

const HOLD = `
  const send = window.fetch
  const released = new Promise((resolve) => (window.release = resolve))
  window.fetch = async (url, ...given) => {
    if (url.endsWith('/stream')) await released
    return send(url, ...given)
  }`

pageTest('a message that is sent before the page of hookloop serve has loaded its chat is answered', async (given) => {
  const { url } = await start(given.t)
  const page = await given.open(url, { before: HOLD })
  await page.getByLabel('Message').fill('hi')
  await page.keyboard.press('Enter')
  await page.evaluate('release()')
  await page.getByText('I heard hi').waitFor()
})

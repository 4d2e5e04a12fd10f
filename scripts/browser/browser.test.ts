import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { eventually, pageTest } from './browser.fixture.ts'

const policy = "default-src 'none'; script-src 'unsafe-inline'"
const html = `<!doctype html><p>Hello</p><img src="https://example.com/a.png">
  <script>console.error('broken')</script><script>throw new Error('thrown')</script>`

pageTest('errors of a page, and violations of its CSP, are problems that fail its test', async (given) => {
  const server = createServer((_, response) =>
    response.writeHead(200, { 'content-type': 'text/html', 'content-security-policy': policy }).end(html),
  )
  given.t.after(() => server.close())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const page = await given.open(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  await eventually(() => page.locator('p').textContent(), 'Hello')
  const problems = given.takeProblems().join('\n')
  for (const part of ['console: broken', 'uncaught: Error: thrown', 'Content Security Policy'])
    assert.ok(problems.includes(part), `${part} is not one of: ${problems}`)
})

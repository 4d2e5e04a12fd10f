import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { runAsPage } from './run-as-page.ts'
import { RunReader } from './runs.ts'
import type { EmbeddedRun } from './run.types.ts'
import { cleaner, newStore } from './studio.fixture.ts'

const hostile = '</script><script>alert(1)</script><!-- <script> \u2028 & "'
const page = { script: 'const end = "</script>", start = "<!--"', style: 'a::after { content: "</style>" }' }

async function fileFor(input: string): Promise<string> {
  const { store } = newStore()
  await cleaner(store).run(input, { session: 'clean-up' })
  const view = await new RunReader(store).view({ session: 'clean-up' })
  await store.close()
  return runAsPage(view, { page, live: false, redact: [/acme-\d+/g] })
}

const contentOf = (html: string, tag: RegExp): string => tag.exec(html)![1]!

test('a run as one file contains the run as data that no text of a model, tool or user can leave', async () => {
  const html = await fileFor(hostile)
  const data = contentOf(html, /<script type="application\/json" id="hookloop-data">(.*?)<\/script>/s)
  const { run, rows, details } = JSON.parse(data) as EmbeddedRun
  assert.doesNotMatch(data, /[<>&\u2028]/)
  assert.equal(details[0]!.text, hostile)
  assert.equal(details.length, rows.length)
  assert.equal(run.whatIf, 'This is a copy of the run.')
  assert.equal(html.match(/<script/g)?.length, 2)
  assert.equal(html.match(/<\/script>/g)?.length, 2)
})

test('its policy allows only its own script and style sheet, by their hashes, and no connection', async () => {
  const html = await fileFor('Clean up.')
  const policy = contentOf(html, /http-equiv="Content-Security-Policy" content="([^"]+)"/)
  const hash = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
  assert.ok(policy.includes(`script-src ${hash(contentOf(html, /<script>(.*?)<\/script>/s))};`))
  assert.ok(policy.includes(`style-src ${hash(contentOf(html, /<style>(.*?)<\/style>/s))};`))
  assert.match(policy, /default-src 'none'.*connect-src 'none'.*require-trusted-types-for 'script'/)
})

test('what looks like a secret, and what else is to be redacted, is not in it', async () => {
  const secrets = ['sk-abcdefghijklmnop1234', 'hunter2hunter2', 'acme-4711']
  const html = await fileFor(`Use ${secrets[0]}, password=${secrets[1]} and ${secrets[2]}.`)
  for (const secret of secrets) assert.ok(!html.includes(secret), secret)
  assert.match(html, /<title>clean-up: Use \[redacted\]/)
})

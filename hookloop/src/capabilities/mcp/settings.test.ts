import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mcpDefaults, readSettings, type McpOptions } from './settings.ts'

const rejected: { readonly [why: string]: unknown } = {
  'an unknown option': { servers: {}, timeout: 5 },
  'an unknown option of a server': { servers: { a: { command: 'x', argv: [] } } },
  'headers for a program': { servers: { a: { command: 'x', headers: {} } } },
  'a name with a double underscore': { servers: { a__b: { command: 'x' } } },
  'a name with other letters': { servers: { 'a b': { command: 'x' } } },
  'a name that is too long': { servers: { ['a'.repeat(41)]: { command: 'x' } } },
  'an invalid URL': { servers: { a: { url: 'nowhere' } } },
  'a file URL': { servers: { a: { url: 'file:///etc/passwd' } } },
  'a URL with a password': { servers: { a: { url: 'https://me:pass@a.example' } } },
  'a root that is not a file URL': { servers: { a: { command: 'x' } }, roots: ['http://a'] },
}

for (const [why, options] of Object.entries(rejected)) {
  test(`mcp rejects ${why}`, () => {
    assert.throws(() => readSettings(options as McpOptions), { code: 'AGENT_INVALID_OPTION' })
  })
}

test('a password in a URL does not appear in the error', () => {
  const options = { servers: { a: { url: 'https://me:hunter2@a.example' } } }
  assert.throws(
    () => readSettings(options),
    (thrown: Error & { value?: unknown }) => !/hunter2/.test(`${thrown.message} ${JSON.stringify(thrown.value)}`),
  )
})

test('options of one server override those of all, and these override the defaults', () => {
  const [one, two] = readSettings({
    servers: { one: { command: 'x', callTimeoutMs: 1 }, two: { command: 'x', maxTools: undefined as never } },
    callTimeoutMs: 2,
  })
  assert.deepEqual([one!.callTimeoutMs, two!.callTimeoutMs, two!.maxTools], [1, 2, mcpDefaults.maxTools])
})

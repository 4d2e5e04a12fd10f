import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mcpDefaults, readSettings, type McpOptions } from './settings.ts'

const rejected: { readonly [why: string]: readonly [options: unknown, message: RegExp] } = {
  'no servers': [{}, /"servers" must be an object/],
  'missing options': [undefined, /it needs \{ servers/],
  'an unknown option': [{ servers: {}, timeout: 5 }, /unknown option "timeout"/],
  'an unknown option of a server': [
    { servers: { a: { command: 'x', argv: [] } } },
    /mcp server "a".*unknown option "argv"/,
  ],
  'neither command nor url': [{ servers: { a: {} } }, /either \{ command \} or \{ url \}/],
  'both command and url': [{ servers: { a: { command: 'x', url: 'http://a' } } }, /either \{ command \} or \{ url \}/],
  'headers for a program': [{ servers: { a: { command: 'x', headers: {} } } }, /unknown option "headers"/],
  'a name with a double underscore': [{ servers: { a__b: { command: 'x' } } }, /single _ between them/],
  'a name with other letters': [{ servers: { 'a b': { command: 'x' } } }, /its name must be/],
  'a name that is too long': [{ servers: { ['a'.repeat(41)]: { command: 'x' } } }, /1 to 40 letters/],
  'an invalid URL': [{ servers: { a: { url: 'nowhere' } } }, /http: or https: URL/],
  'a file URL': [{ servers: { a: { url: 'file:///etc/passwd' } } }, /http: or https: URL/],
  'a URL with a password': [{ servers: { a: { url: 'https://me:pass@a.example' } } }, /must not contain a user name/],
  'arguments that are not a list': [{ servers: { a: { command: 'x', args: 'y' } } }, /"args" must be a list/],
  'an environment of numbers': [
    { servers: { a: { command: 'x', env: { A: 1 } } } },
    /"env" must be an object of strings/,
  ],
  'a timeout that is not a number': [
    { servers: { a: { command: 'x', callTimeoutMs: NaN } } },
    /"callTimeoutMs" must be/,
  ],
  'a command that is a pattern': [{ servers: { a: { command: /x/ } } }, /"command" must be a program/],
  'headers that are functions': [{ servers: { a: { url: 'http://a', headers: { a: () => 1 } } } }, /"headers" must be/],
  'a fetch that is not a function': [{ servers: { a: { url: 'http://a', fetch: 'x' } } }, /"fetch" must be a function/],
  'a timeout of zero': [{ servers: { a: { command: 'x', callTimeoutMs: 0 } } }, /"callTimeoutMs" must be a positive/],
  'an ask that is neither boolean nor list': [
    { servers: { a: { command: 'x', ask: 'no' } } },
    /"ask" must be true, false or a list/,
  ],
  'tools that are not a list': [{ servers: { a: { command: 'x' } }, tools: 'read' }, /"tools" must be a list/],
  'a root that is not a file URL': [{ servers: { a: { command: 'x' } }, roots: ['http://a'] }, /paths or file: URLs/],
}

for (const [why, [options, message]] of Object.entries(rejected)) {
  test(`mcp rejects ${why}`, () => {
    assert.throws(() => readSettings(options as McpOptions), { code: 'AGENT_INVALID_OPTION', message })
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

test('the defaults are frozen', () => {
  assert.ok(Object.isFrozen(mcpDefaults) && Object.isFrozen(mcpDefaults.tools) && Object.isFrozen(mcpDefaults.roots))
})

test('patterns may be RegExps, a URL may be a URL object, and limits may be infinite', () => {
  const [server] = readSettings({
    servers: { a: { url: new URL('https://a.example'), tools: [/^read/], ask: [/^write/], maxReconnects: Infinity } },
  })
  assert.deepEqual(
    [server!.patterns[0]!.test('read_it'), server!.asks('write_it'), server!.asks('read_it')],
    [true, true, false],
  )
  assert.equal(server!.maxReconnects, Infinity)
})

test('values of env and headers do not appear in the error', () => {
  const options = { servers: { a: { command: 'x', env: { KEY: 'hunter2', OTHER: 1 as never } } } }
  assert.throws(
    () => readSettings(options),
    (thrown: Error & { value?: unknown }) => !/hunter2/.test(`${thrown.message} ${JSON.stringify(thrown.value)}`),
  )
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mcpPolicy, readSettings, type McpOptions } from './settings.ts'

const refused: { readonly [why: string]: readonly [options: unknown, words: RegExp] } = {
  'no servers': [{}, /"servers" must be an object/],
  'nothing at all': [undefined, /it needs \{ servers/],
  'a misspelt option': [{ servers: {}, timeout: 5 }, /unknown option "timeout"/],
  'a misspelt option of a server': [
    { servers: { a: { command: 'x', argv: [] } } },
    /mcp server "a".*unknown option "argv"/,
  ],
  'neither command nor url': [{ servers: { a: {} } }, /either \{ command \} or \{ url \}/],
  'both command and url': [{ servers: { a: { command: 'x', url: 'http://a' } } }, /either \{ command \} or \{ url \}/],
  'headers for a program': [{ servers: { a: { command: 'x', headers: {} } } }, /unknown option "headers"/],
  'a name with a double underscore': [{ servers: { a__b: { command: 'x' } } }, /single _ between them/],
  'a name with other letters': [{ servers: { 'a b': { command: 'x' } } }, /its name must be/],
  'a name that is too long': [{ servers: { ['a'.repeat(41)]: { command: 'x' } } }, /1 to 40 letters/],
  'an address that is none': [{ servers: { a: { url: 'nowhere' } } }, /http: or https: address/],
  'an address of another kind': [{ servers: { a: { url: 'file:///etc/passwd' } } }, /http: or https: address/],
  'an address with a password': [{ servers: { a: { url: 'https://me:pass@a.example' } } }, /must not hold a name/],
  'arguments that are no list': [{ servers: { a: { command: 'x', args: 'y' } } }, /"args" must be a list/],
  'an environment of numbers': [
    { servers: { a: { command: 'x', env: { A: 1 } } } },
    /"env" must be an object of texts/,
  ],
  'a timeout of zero': [{ servers: { a: { command: 'x', callTimeoutMs: 0 } } }, /"callTimeoutMs" must be a positive/],
  'an ask that is no choice': [{ servers: { a: { command: 'x', ask: 'no' } } }, /"ask" must be true, false or a list/],
  'tools that are no list': [{ servers: { a: { command: 'x' } }, tools: 'read' }, /"tools" must be a list/],
  'a root elsewhere': [{ servers: { a: { command: 'x' } }, roots: ['http://a'] }, /paths or file: addresses/],
}

for (const [why, [options, words]] of Object.entries(refused)) {
  test(`${why} is refused when the capability is made`, () => {
    assert.throws(() => readSettings(options as McpOptions), { code: 'AGENT_INVALID_OPTION', message: words })
  })
}

test('a password in an address is not repeated in the words about it', () => {
  const options = { servers: { a: { url: 'https://me:hunter2@a.example' } } }
  assert.throws(
    () => readSettings(options),
    (thrown: Error & { value?: unknown }) => !/hunter2/.test(`${thrown.message} ${JSON.stringify(thrown.value)}`),
  )
})

test('what is said for one server wins over what is said for all, and that over the policy', () => {
  const [one, two] = readSettings({
    servers: { one: { command: 'x', callTimeoutMs: 1 }, two: { command: 'x', maxTools: undefined as never } },
    callTimeoutMs: 2,
  })
  assert.deepEqual([one!.callTimeoutMs, two!.callTimeoutMs, two!.maxTools], [1, 2, mcpPolicy.maxTools])
})

test('the policy cannot be changed', () => {
  assert.ok(Object.isFrozen(mcpPolicy) && Object.isFrozen(mcpPolicy.tools) && Object.isFrozen(mcpPolicy.roots))
})

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { createAgent } from '../create-agent.ts'
import { modelByName } from './by-name.ts'
import { startServer, type ProviderServer } from './provider-server.fixture.ts'
import { KEY, rows } from './provider-suite.fixture.ts'

let server: ProviderServer
const environment = { ...process.env }
const heard = { says: { content: 'Hi.' }, body: (said: string) => said }

before(async () => {
  server = await startServer()
})
beforeEach(() => {
  process.env = Object.fromEntries(
    Object.entries(environment).filter(([name]) => !/API_KEY|BASE_URL|OLLAMA/.test(name)),
  )
})
after(async () => {
  process.env = environment
  await server.close()
})

for (const row of rows) {
  test(`${row.name}: a model by name is the model of its package, with the key from the environment`, async () => {
    Object.assign(process.env, row.environment(server.url, KEY))
    server.next(heard)
    const run = await createAgent({ model: `${row.name}/${row.modelId}` }).run('Go.')
    assert.equal(run.text, 'Hi.')
    const { path, headers } = server.requests.at(-1)!
    assert.ok(path.startsWith(row.path) && JSON.stringify(headers).includes(KEY))
  })
}

test('google: the key is read from its three usual variables', async () => {
  for (const name of ['GEMINI_API_KEY', 'GOOGLE_API_KEY']) {
    process.env = { ...environment, GOOGLE_GENERATIVE_AI_BASE_URL: `${server.url}/v1beta`, [name]: `${KEY}-${name}` }
    server.next(heard)
    const run = await createAgent({ model: 'google/gemini-2.5-pro' }).run('Go.')
    assert.equal(run.text, 'Hi.')
    assert.equal(server.requests.at(-1)!.headers['x-goog-api-key'], `${KEY}-${name}`)
  }
})

test('ollama: needs no key, is free, and its address is read from the environment', async () => {
  const host = server.url.replace('http://', '')
  for (const [name, address] of [
    ['OLLAMA_HOST', host],
    ['OLLAMA_HOST', `${server.url}/`],
    ['OLLAMA_BASE_URL', `${server.url}/v1`],
  ] as const) {
    process.env = { [name]: address }
    server.next(heard)
    const run = await createAgent({ model: 'ollama/llama3.2:3b' }).run('Go.')
    assert.deepEqual([run.text, run.state.usage.costUsd], ['Hi.', 0])
    const { path, body } = server.requests.at(-1)!
    assert.deepEqual([path, body['model']], ['/v1/chat/completions', 'llama3.2:3b'])
  }
})

test('a missing key is reported with what to do', async () => {
  const run = await createAgent({ model: 'anthropic/claude-sonnet-4-5' }).run('Go.')
  assert.equal(run.status, 'failed')
  assert.equal(run.error.code, 'MODEL_UNAUTHORIZED')
  assert.match(run.error.message, /ANTHROPIC_API_KEY/)
})

test('a missing base URL is reported with its variable, and read again with the next call', async () => {
  const agent = createAgent({ model: 'openai-compatible/llama3.2' })
  const run = await agent.run('Go.')
  assert.equal(run.status, 'failed')
  assert.equal(run.error.code, 'MODEL_REJECTED')
  assert.match(run.error.message, /^openai-compatible\/llama3\.2: Set OPENAI_COMPATIBLE_BASE_URL/)
  process.env['OPENAI_COMPATIBLE_BASE_URL'] = `${server.url}/v1`
  server.next(heard)
  assert.equal((await agent.run('Go.')).text, 'Hi.')
})

test('a name with an unknown provider is rejected with the list of providers', () => {
  for (const name of ['gpt-5', 'acme/large', '/gpt-5', 'openai/', '', 'toString/x', 'OpenAI/gpt-5']) {
    assert.throws(() => modelByName(name, undefined), {
      code: 'MODEL_UNKNOWN',
      value: name,
      message: /Providers: anthropic, openai, google/,
    })
  }
})

test('createAgent rejects a model whose package is not installed, and says what to install', () => {
  assert.throws(() => createAgent({ model: 'cerebras/llama' }), {
    code: 'MODEL_NOT_INSTALLED',
    value: '@ai-sdk/cerebras',
    message: /npm install @ai-sdk\/cerebras/,
  })
})

test('no package is loaded before the first call', () => {
  const { provider, modelId, structuredOutput } = modelByName('openai/gpt-5', undefined)
  assert.deepEqual(
    { provider, modelId, structuredOutput },
    { provider: 'openai', modelId: 'gpt-5', structuredOutput: 'native' },
  )
})

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { providers } from '../models/providers.ts'
import type { Available } from './available.ts'
import { hookloop, serve } from './cli.fixture.ts'

const CANARY = 'sk-canary-1b7e44a0c2'

describe('hookloop models', { concurrency: 2 }, () => {
  test('lists every provider, with its version and the name of the variable that holds its key', async () => {
    const { code, stdout, stderr } = await hookloop(['models'], { env: { OPENAI_API_KEY: CANARY } })
    const rows = stdout.split('\n\n')[0]!.split('\n')
    assert.deepEqual([code, stderr, rows.length], [0, '', providers.length + 1])
    assert.match(rows[1]!, /^✓ openai +@ai-sdk\/openai \d+\.\d+\.\d+ +OPENAI_API_KEY +openai\/gpt-5-mini$/)
    assert.match(stdout, /^ {2}anthropic +@ai-sdk\/anthropic \d.* +set ANTHROPIC_API_KEY +anthropic\/claude-/m)
    assert.match(stdout, /^ {2}groq +npm install @ai-sdk\/groq +set GROQ_API_KEY +groq\//m)
    assert.match(stdout, /\n\nTry it:\n.* run "hello" --model openai\/gpt-5-mini\n$/)
  })

  test('its columns stand below each other, without colours in a pipe', async () => {
    const { stdout } = await hookloop(['models'])
    const rows = stdout.split('\n\n')[0]!.split('\n')
    const column = rows[0]!.indexOf('PACKAGE')
    assert.ok(rows.every((row) => row[column - 1] === ' ' && row[column] !== ' '))
    assert.ok(!stdout.includes('\u001B'))
  })

  test('never prints a key', async () => {
    const env = Object.fromEntries(providers.flatMap(({ keys }) => keys.map((name) => [name, CANARY])))
    const ends = await Promise.all([hookloop(['models'], { env }), hookloop(['models', '--json'], { env })])
    assert.ok(!JSON.stringify(ends).includes(CANARY))
  })

  test('with --json prints the same as data', async () => {
    const { stdout } = await hookloop(['models', '--json'], { env: { GEMINI_API_KEY: 'k' } })
    const { providers: all, ollama } = JSON.parse(stdout) as Available
    const { version, ...google } = all.find(({ provider }) => provider === 'google')!
    assert.match(version!, /^\d+\.\d+/)
    assert.deepEqual(google, {
      provider: 'google',
      ready: true,
      package: '@ai-sdk/google',
      installed: true,
      key: 'GEMINI_API_KEY',
      example: 'google/gemini-2.5-flash',
      toInstall: null,
      toSet: null,
    })
    assert.deepEqual(ollama, { host: '127.0.0.1:9', models: null })
  })

  test('a user with nothing but Ollama gets a line to copy with a model that is there', async () => {
    const tags = {
      models: [
        { name: 'nomic-embed-text:latest', details: { family: 'nomic-bert' } },
        { name: '$(reboot)' },
        { name: 'qwen3:4b', details: { family: 'qwen3' } },
      ],
    }
    await using server = await serve((request, response) => {
      response.writeHead(request.url === '/api/tags' ? 200 : 404).end(JSON.stringify(tags))
    })
    const { stdout } = await hookloop(['models'], { env: { OLLAMA_HOST: server.host } })
    assert.match(stdout, /^✓ ollama +@ai-sdk\/openai-compatible \S+ +not needed +ollama\/qwen3:4b$/m)
    assert.match(
      stdout,
      /\nOllama at 127\.0\.0\.1:\d+ has: qwen3:4b\n\nTry it:\n {2}.* run "hello" --model ollama\/qwen3:4b\n$/,
    )
  })

  test('without any model it says what the shortest ways to one are', async () => {
    const { stdout } = await hookloop(['models'])
    assert.match(
      stdout,
      /Nothing is ready yet\. .*\n {2}ollama serve, .*\nWith a key:\n {2}set ANTHROPIC_API_KEY, then /,
    )
  })

  test('a server that does not answer does not hold it up', async () => {
    await using server = await serve(() => undefined)
    const { code, stdout } = await hookloop(['models'], { env: { OLLAMA_HOST: server.host } })
    assert.equal(code, 0)
    assert.match(stdout, /^ {2}ollama .* ollama serve /m)
  })

  test('of the address of a server, what may be secret is not printed', async () => {
    const env = { OLLAMA_HOST: `http://user:${CANARY}@127.0.0.1:9` }
    const ends = await Promise.all([hookloop(['models'], { env }), hookloop(['models', '--json'], { env })])
    assert.ok(!JSON.stringify(ends).includes(CANARY))
  })
})

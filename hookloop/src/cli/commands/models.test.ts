import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { providers } from '../../models/providers.ts'
import type { Available } from '../agents/available-providers.ts'
import { hookloop, serve } from '../cli.fixture.ts'

const CANARY = 'sk-canary-1b7e44a0c2'

describe('hookloop models', { concurrency: 2 }, () => {
  test('lists ready providers with an example, and what the others need', async () => {
    const { code, stdout, stderr } = await hookloop(['models'], { env: { OPENAI_API_KEY: CANARY } })
    const [ready, others] = stdout.split('\n\n').map((part) => part.split('\n'))
    assert.deepEqual([code, stderr, ready!.length, others!.length], [0, '', 2, providers.length])
    assert.match(ready![1]!, /^✓ openai +OPENAI_API_KEY +openai\/gpt-6-luna +@ai-sdk\/openai \d+\.\d+\.\d+$/)
    assert.ok(others!.includes('  anthropic: set ANTHROPIC_API_KEY'))
    assert.ok(others!.includes('  groq: npm install @ai-sdk/groq, set GROQ_API_KEY'))
    assert.match(stdout, /\n\nTry it:\n.* run "hello" --model openai\/gpt-6-luna\n$/)
  })

  test('never prints a key', async () => {
    const env = Object.fromEntries(providers.flatMap(({ keys }) => keys.map((name) => [name, CANARY])))
    const ends = await Promise.all([hookloop(['models'], { env }), hookloop(['models', '--json'], { env })])
    assert.ok(!JSON.stringify(ends).includes(CANARY))
  })

  test('prints the same as JSON with --json', async () => {
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
      example: 'google/gemini-3.5-flash-lite',
      toInstall: null,
      toSet: null,
    })
    assert.deepEqual(ollama, { host: '127.0.0.1:9', models: null })
  })

  test('prints a command line with an installed Ollama model', async () => {
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
    assert.match(stdout, /^✓ ollama +not needed +ollama\/qwen3:4b +@ai-sdk\/openai-compatible \S+$/m)
    assert.match(
      stdout,
      /\nOllama at 127\.0\.0\.1:\d+ has: qwen3:4b\n\nTry it:\n {2}.* run "hello" --model ollama\/qwen3:4b\n$/,
    )
  })

  test('prints only the host of a server address', async () => {
    const env = { OLLAMA_HOST: `http://user:${CANARY}@127.0.0.1:9` }
    const ends = await Promise.all([hookloop(['models'], { env }), hookloop(['models', '--json'], { env })])
    assert.ok(!JSON.stringify(ends).includes(CANARY))
  })
})

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { LLMock } from '@copilotkit/aimock'
import type { AgentEvent } from '../../core/state/event.ts'
import { hookloop, serve, start } from '../cli.fixture.ts'

const CANARY = 'sk-canary-5f1c0e7d9b'
const mock = new LLMock({ port: 0, logLevel: 'silent' })
const model = ['--model', 'openai/gpt-5-mini']
const compatible = ['--model', 'openai-compatible/m']
let env: NodeJS.ProcessEnv
const folder = mkdtempSync(join(tmpdir(), 'hookloop-run-'))

before(async () => {
  const usage = { input_tokens: 12, output_tokens: 34 }
  mock.onMessage('hello', { content: 'Hi there!', reasoning: 'A greeting.', usage })
  mock.onMessage('paint', { content: '\u001B[31mred\u001B[0m\ttab' })
  mock.onMessage('forbidden', { error: { message: `Incorrect API key provided: ${CANARY}` }, status: 401 })
  await mock.start()
  env = { OPENAI_BASE_URL: `${mock.url}/v1`, OPENAI_API_KEY: CANARY, OPENAI_COMPATIBLE_BASE_URL: `${mock.url}/v1` }
})
after(async () => {
  await mock.stop()
  rmSync(folder, { recursive: true })
})

describe('hookloop run', { concurrency: 2 }, () => {
  test('in a pipe prints the answer to stdout, everything else to stderr, and no colours', async () => {
    const { code, stdout, stderr } = await hookloop(['run', 'hello', ...model], { env })
    assert.deepEqual([code, stdout], [0, 'Hi there!\n'])
    assert.match(
      stderr,
      /^thinking: A greeting\.\n✓ completed · 1 step · 12 tokens in, 34 out · <\$0\.0001 · .* m?s\nsaved as \S+ · .*\n$/,
    )
  })

  test('--quiet prints the answer and nothing else, streamed or not', async () => {
    const quiet = ['run', 'hello', ...model, '--quiet']
    const ends = await Promise.all([hookloop(quiet, { env }), hookloop([...quiet, '--no-stream'], { env })])
    const silent = { code: 0, stdout: 'Hi there!\n', stderr: '' }
    assert.deepEqual(ends, [silent, silent])
  })

  test('with --json every line of stdout is an event, and the last one is the result', async () => {
    const { code, stdout, stderr } = await hookloop(['run', 'hello', ...model, '--json'], { env })
    const lines = stdout.trimEnd().split('\n')
    const events = lines.map((line) => JSON.parse(line) as AgentEvent | { type: 'result'; usage: object })
    const { usage, session, ...result } = events.at(-1) as { type: 'result'; usage: object; session: string }
    assert.deepEqual([code, stderr], [0, ''])
    assert.deepEqual([events[0]?.type, events.at(-2)?.type], ['input', 'finished'])
    assert.deepEqual(result, { type: 'result', status: 'completed', text: 'Hi there!', warnings: [] })
    assert.equal((usage as { outputTokens: number }).outputTokens, 34)
    assert.match(session, /^\w{4}-\w{4}$/)
  })

  test('a typed answer is printed as JSON, whatever text the model wrote', async () => {
    const agent = agentFile('typed.ts', typed('(answer) => ({ ...answer, size: 10n })'))
    const ways = [[], ['--quiet'], ['--no-stream']]
    const ends = await Promise.all(ways.map((way) => hookloop(['run', 'hello', '--agent', agent, ...way])))
    const answer = { city: 'Bergen', size: '10' }
    assert.deepEqual(
      ends.map(({ stdout }) => JSON.parse(stdout) as unknown),
      [answer, answer, answer],
    )
  })

  test('input can be piped in; typed input comes first', async () => {
    const asks = ['run', '--quiet', ...model]
    const [piped, both] = await Promise.all([
      hookloop([...asks, '-'], { env, input: 'hello from the pipe\n' }),
      hookloop([...asks, 'say', 'this:'], { env, input: 'hello' }),
    ])
    assert.deepEqual([piped.stdout, both.stdout], ['Hi there!\n', 'Hi there!\n'])
    assert.match(JSON.stringify(mock.getRequests().map(({ body }) => body)), /"say this:\\n\\nhello"/)
  })

  test('--file sends images as images and text files as text', async () => {
    const [image, text] = [join(folder, 'a.png'), join(folder, 'b.md')]
    writeFileSync(image, 'not really')
    writeFileSync(text, 'a text about hello')
    const { code } = await hookloop(['run', 'hello', ...compatible, '-f', image, '--file', text], { env })
    const sent = JSON.stringify(mock.getRequests().map(({ body }) => body))
    assert.equal(code, 0)
    assert.match(sent, /data:image\/png;base64,bm90IHJlYWxseQ==/)
    assert.match(sent, /b\.md:\\n\\na text about hello/)
  })

  test('without a key the run fails with 1, and the variable to set is named', async () => {
    const { code, stdout, stderr } = await hookloop(['run', 'hello', ...model], {
      env: { ...env, OPENAI_API_KEY: undefined },
    })
    assert.deepEqual([code, stdout], [1, ''])
    assert.match(stderr, /✗ failed \(MODEL_UNAUTHORIZED\)/)
    assert.equal(stderr.match(/OPENAI_API_KEY/g)?.length, 1)
  })

  test('a key is never printed, not even when the provider repeats it', async () => {
    const ways = [[], ['--json'], ['--quiet'], ['--explain']]
    const ends = await Promise.all(ways.map((way) => hookloop(['run', 'forbidden', ...model, ...way], { env })))
    assert.deepEqual(
      ends.map(({ code }) => code),
      [1, 1, 1, 1],
    )
    assert.ok(!JSON.stringify(ends).includes(CANARY))
  })

  test('a run that a limit stops ends with 3', async () => {
    const { code, stderr } = await hookloop(['run', 'hello', ...model, '--max-time', '0'], { env })
    assert.equal(code, 3)
    assert.match(stderr, /■ stopped \(timeLimit\) by guards\.maxTimeMs/)
  })
})

describe('hookloop run exits with 2, before anything is run, for', { concurrency: 2 }, () => {
  const refusals: readonly (readonly [what: string, args: readonly string[], words: RegExp])[] = [
    [
      'no model',
      ['run', 'hello'],
      /^error: No model was named\. These work on this machine:\n {2}--model openai\/gpt-6-luna\n/,
    ],
    ['no input', ['run', ...model], /^error: No input\. Examples:\n.* run "Why/],
    [
      'a model name without a provider',
      ['run', 'hello', '--model', 'gpt'],
      /^error: Unknown model "gpt"\. Write provider\/model/,
    ],
    ['a provider with a typo', ['run', 'hello', '--model', 'opnai/m'], /Did you mean openai\/m\?\n$/],
    ['a model without its provider', ['run', 'hello', '--model', 'gpt-5'], /Did you mean openai\/gpt-5\?\n$/],
    ['a directory instead of a file', ['run', 'hello', ...model, '--file', '.'], /--file \. is a directory\./],
    ['a package that is missing', ['run', 'hello', '--model', 'groq/x'], /npm install @ai-sdk\/groq\n$/],
    ['a file that is missing', ['run', 'hello', ...model, '--file', 'none.png'], /--file none\.png: file not found\./],
    ['an agent that is missing', ['run', 'hello', '--agent', 'none.ts'], /The agent file none\.ts: file not found\./],
    [
      'an invalid limit',
      ['run', 'hello', ...model, '--max-steps', 'many'],
      /'--max-steps <n>' argument 'many' is invalid\. It must be/,
    ],
    [
      'options that exclude each other',
      ['run', 'hello', ...model, '--json', '--quiet'],
      /'-q, --quiet' cannot be used with option '--json'/,
    ],
    ['an unknown option', ['run', 'hello', '--modle', 'x'], /unknown option '--modle'\n\(Did you mean --model\?\)/],
  ]
  for (const [what, args, words] of refusals) {
    test(what, async () => {
      const { code, stdout, stderr } = await hookloop(args, { env })
      assert.deepEqual([code, stdout], [2, ''])
      assert.match(stderr, words)
    })
  }

  test('piped input that is not text', async () => {
    const { code, stderr } = await hookloop(['run', '-', ...model], { env, input: new Uint8Array([0xff, 0xd8, 0xff]) })
    assert.deepEqual([code, stderr], [2, 'error: The piped input is not text. Pass images with --file.\n'])
  })
})

describe('a run that is interrupted', { concurrency: 2 }, () => {
  const slow = ['run', 'hello', '--model', 'openai-compatible/slow']

  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    test(`by ${signal} aborts the model call, prints no partial answer into a pipe, and exits with ${code}`, async () => {
      await using server = await slowServer()
      const running = start(slow, { env: { OPENAI_COMPATIBLE_BASE_URL: `http://${server.host}/v1` } })
      await server.wrote
      running.kill(signal)
      const ended = await running.ended
      assert.deepEqual([ended.code, ended.stdout], [code, ''])
      assert.match(ended.stderr, /^! .* usage is estimated.*\n■ cancelled · /)
      await server.hungUp
    })
  }

  test('is cancelled once if the signal comes twice, as under npm; a later signal exits at once', async () => {
    const agent = join(folder, 'stubborn.ts')
    writeFileSync(
      agent,
      `import { hook } from 'hookloop'
      import { scriptedModel } from 'hookloop/testing'
      process.once('SIGINT', () => (process.emit('SIGINT', 'SIGINT'), process.stdout.write('twice')))
      const stuck = () => { process.stdout.write('stuck'); return new Promise(() => setInterval(() => 0, 1000)) }
      export default { model: scriptedModel(['Done.']), use: [hook('afterExecution', stuck)] }`,
    )
    const running = start(['run', 'hello', '--agent', agent])
    await running.wrote(/stuck/)
    running.kill('SIGINT')
    await running.wrote(/twice/)
    const later = setInterval(() => running.kill('SIGINT'), 20)
    const { code } = await running.ended
    clearInterval(later)
    assert.equal(code, 130)
  })

  test('by a closed output pipe prints nothing, and exits with 141', async () => {
    await using server = await slowServer()
    const env = { OPENAI_COMPATIBLE_BASE_URL: `http://${server.host}/v1` }
    const running = start([...slow, '--json'], { env })
    await running.wrote(/word/)
    running.stopReading()
    const { code, stderr } = await running.ended
    assert.deepEqual([code, stderr], [141, ''])
    await server.hungUp
  })
})

/** An agent whose answer comes by a tool, and goes through a function. */
function typed(transform: string): string {
  return `import { scriptedModel } from 'hookloop/testing'
    import * as z from '${import.meta.resolve('zod')}'
    const toolCalls = [{ name: 'final_answer', args: { city: 'Bergen' } }]
    const output = z.object({ city: z.string() }).transform(${transform})
    export default { model: scriptedModel([{ text: 'Here it is.', toolCalls }]), output }`
}

function agentFile(name: string, code: string): string {
  const file = join(folder, name)
  writeFileSync(file, code)
  return file
}

/** A model that writes a word every few milliseconds without end, and notices when the connection is closed. */
async function slowServer() {
  const { promise: hungUp, resolve } = Promise.withResolvers<void>()
  const { promise: wrote, resolve: hasWritten } = Promise.withResolvers<void>()
  const server = await serve((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const chunk = { id: '1', object: 'chat.completion.chunk', created: 1, model: 'slow' }
    const delta = JSON.stringify({ ...chunk, choices: [{ index: 0, delta: { content: 'word ' } }] })
    let words = 0
    const timer = setInterval(() => {
      response.write(`data: ${delta}\n\n`)
      if (++words === 10) hasWritten()
    }, 10)
    response.on('close', () => {
      clearInterval(timer)
      resolve()
    })
  })
  return Object.assign(server, { hungUp, wrote })
}

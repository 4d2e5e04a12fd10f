import assert from 'node:assert/strict'
import { createOpenAI } from '@ai-sdk/openai'
import * as z from 'zod'
import type { JsonObject } from '../values/json.ts'
import type { Message } from '../core/state/message.ts'
import { tool } from '../core/agent/tool.ts'
import { createAgent } from '../create-agent.ts'
import { hook, observe } from '../core/hooks/hook.ts'
import { endedBy, rows, scenario, shownText, withUsage } from './provider-suite.fixture.ts'

// Successful calls for every provider, run and streamed. Failures are in provider-failures.test.ts.

const read = tool({
  name: 'file.read',
  description: 'Reads a file.',
  input: z.object({ path: z.string() }),
  execute: ({ path }) => `text of ${path}`,
  concurrent: true,
})

const callA = { name: 'file_read', arguments: '{"path":"a.txt"}', id: 'c1' }

scenario('a reply has text, finish reason, usage and cost', async ({ row, model, server, run }) => {
  server.next(withUsage(row, { input: 100, output: 50, cached: 30, thinking: 20 }, { content: 'It is blue.' }))
  const agent = createAgent({
    model,
    prices: { [`${row.name}/${row.modelId}`]: { input: 1, output: 2, cachedInput: 0.1 } },
  })
  const { run: ended } = await run(agent, 'What colour is the sky?')
  assert.deepEqual([ended.status, ended.text, ended.state.lastStep?.finishReason], ['completed', 'It is blue.', 'stop'])
  assert.deepEqual(ended.state.usage, {
    inputTokens: 100,
    outputTokens: 50,
    cachedInputTokens: 30,
    cacheWriteTokens: 0,
    reasoningTokens: 20,
    costUsd: (70 + 3 + 100) / 1_000_000,
    steps: 1,
    toolCalls: 0,
  })
})

scenario('a reply is streamed in deltas, and complete at the end', async ({ mode, model, server, run }) => {
  server.next({ content: 'The quick brown fox jumps over the lazy dog.' })
  const { run: ended, events } = await run(createAgent({ model }))
  assert.equal(ended.text, 'The quick brown fox jumps over the lazy dog.')
  if (mode === 'run') return
  assert.ok(events.filter((event) => event.type === 'text').length > 1)
  assert.equal(shownText(events), ended.text)
})

scenario('a call is passed to the tool and its result to the model', async ({ model, server, run, sent, calls }) => {
  server.next(calls(callA), { content: 'It says something.' })
  const { run: ended } = await run(createAgent({ model, use: [read], instructions: 'Be brief.' }), 'Look.')
  assert.equal(ended.text, 'It says something.')
  assert.deepEqual(sent(), [
    ['system: Be brief.', 'user: Look.'],
    ['system: Be brief.', 'user: Look.', 'call c1 file_read {"path":"a.txt"}', 'result c1 text of a.txt'],
  ])
})

scenario(
  'calls of one reply run concurrently, and each gets its result',
  async ({ model, server, run, sent, calls }) => {
    let [running, most] = [0, 0]
    const slow = tool({
      name: 'slow',
      description: 'Waits for the others.',
      input: z.object({ n: z.number() }),
      concurrent: true,
      async execute({ n }) {
        most = Math.max(most, ++running)
        await new Promise((resolve) => setImmediate(resolve))
        running--
        return { n }
      },
    })
    server.next(calls(...[1, 2, 3].map((n) => ({ name: 'slow', arguments: `{"n":${n}}`, id: `c${n}` }))), {
      content: 'Done.',
    })
    const { run: ended } = await run(createAgent({ model, use: [slow] }))
    assert.deepEqual([ended.text, most], ['Done.', 3])
    assert.deepEqual(sent()[1], [
      'user: Go.',
      ...[1, 2, 3].map((n) => `call c${n} slow {"n":${n}}`),
      ...[1, 2, 3].map((n) => `result c${n} {"n":${n}}`),
    ])
  },
)

scenario('the arguments of a call are streamed', async ({ mode, model, server, run, calls }) => {
  server.next(calls(callA), { content: 'Done.' })
  const { events } = await run(createAgent({ model, use: [read] }))
  const written = events.flatMap((event) => (event.type === 'toolCallDelta' ? [event] : []))
  if (mode === 'run') return assert.deepEqual(written, [])
  assert.deepEqual([...new Set(written.map(({ callId, toolName }) => `${callId} ${toolName}`))], ['c1 file.read'])
  assert.deepEqual(JSON.parse(written.map(({ delta }) => delta).join('')), { path: 'a.txt' })
})

scenario(
  'reasoning is returned, and sent back as the provider requires',
  async ({ row, model, server, run, sent, calls }) => {
    server.next({ ...calls(callA), reasoning: 'I have to look.' }, { content: 'Done.', reasoning: 'That was it.' })
    const { run: ended } = await run(createAgent({ model, use: [read] }))
    const sealed = ['openai', 'anthropic'].includes(row.name) ? ' (sealed)' : ''
    assert.deepEqual(sent()[1], [
      'user: Go.',
      `thought: I have to look.${sealed}`,
      'call c1 file_read {"path":"a.txt"}',
      'result c1 text of a.txt',
    ])
    assert.deepEqual(
      ended.state.messages.at(-1)?.content.map((part) => [part.type, 'text' in part && part.text]),
      [
        ['reasoning', 'That was it.'],
        ['text', 'Done.'],
      ],
    )
  },
)

scenario('an image and a document are sent', async ({ model, server, run, sent }) => {
  server.next({ content: 'A cat.' })
  await run(createAgent({ model }), {
    role: 'user',
    content: [
      { type: 'text', text: 'What is it?' },
      { type: 'file', mediaType: 'image/png', data: 'iVBORw0KGgo=' },
      { type: 'file', mediaType: 'image/png', data: 'data:image/png;base64,iVBORw0KGgo=' },
      { type: 'file', mediaType: 'application/pdf', data: 'JVBERi0=', filename: 'a.pdf' },
    ],
  })
  assert.deepEqual(sent(), [
    ['user: What is it?', 'user: file image/png', 'user: file image/png', 'user: file application/pdf'],
  ])
  assert.equal(JSON.stringify(server.requests[0]!.body).split('iVBORw0KGgo=').length - 1, 2)
})

scenario(
  'settings are sent to the model, and unsupported ones cause a warning',
  async ({ row, mode, model, server, run }) => {
    server.next({ content: 'Hi.' })
    const warnings: string[] = []
    const settings = { maxOutputTokens: 77, providerOptions: optionsFor[row.name]!.given, topK: 5, presencePenalty: 1 }
    const use = [observe('afterInference', (ctx) => void warnings.push(...(ctx.response.warnings ?? [])))]
    const { events } = await run(createAgent({ model, settings, use }))
    const sent = JSON.stringify(server.requests[0]!.body)
    assert.ok(sent.includes(':77') && sent.includes(optionsFor[row.name]!.sent), sent)
    const { unsupported } = optionsFor[row.name]!
    assert.ok(warnings.join('\n').includes(unsupported ?? ''), warnings.join('\n'))
    if (mode === 'stream' && unsupported !== undefined)
      assert.ok(events.some((event) => event.type === 'warning' && event.message.includes(unsupported)))
  },
)

const optionsFor: {
  readonly [row: string]: { readonly given: JsonObject; readonly sent: string; readonly unsupported?: string }
} = {
  openai: { given: { openai: { user: 'u-1' } }, sent: '"user":"u-1"', unsupported: 'topK' },
  anthropic: {
    given: { anthropic: { metadata: { userId: 'u-1' } } },
    sent: '"user_id":"u-1"',
    unsupported: 'presencePenalty',
  },
  google: { given: { google: { thinkingConfig: { thinkingBudget: 9 } } }, sent: '"thinkingBudget":9' },
  'openai-compatible': { given: { openaiCompatible: { user: 'u-1' } }, sent: '"user":"u-1"', unsupported: 'topK' },
}

scenario('a hook chooses which tool must be called', async ({ row, model, server, run }) => {
  const choices = ['required', 'none', { tool: 'file.read' }] as const
  server.next(...choices.map(() => ({ content: 'Hi.' })))
  for (const toolChoice of choices) {
    await run(createAgent({ model, use: [read, hook('beforeInference', (ctx) => ctx.withRequest({ toolChoice }))] }))
  }
  assert.deepEqual(
    server.requests.map(({ body }) => body['tool_choice'] ?? body['toolConfig']),
    choicesFor[row.name],
  )
})

const choicesFor: { readonly [row: string]: readonly unknown[] } = {
  openai: ['required', 'none', { type: 'function', name: 'file_read' }],
  anthropic: [{ type: 'any' }, { type: 'none' }, { type: 'tool', name: 'file_read' }],
  google: [
    { functionCallingConfig: { mode: 'ANY' } },
    { functionCallingConfig: { mode: 'NONE' } },
    { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['file_read'] } },
  ],
  'openai-compatible': ['required', 'none', { type: 'function', function: { name: 'file_read' } }],
}

scenario(
  'the repeated part of a prompt is marked for caching where the provider needs it',
  async ({ row, model, server, run, calls }) => {
    server.next(calls(callA), { content: 'Done.' })
    await run(createAgent({ model, use: [read], instructions: 'Be brief.', settings: { cachePrompt: true } }))
    const marked = server.requests.map(({ body }) => JSON.stringify(body).split('"cache_control"').length - 1)
    assert.deepEqual(marked, row.name === 'anthropic' ? [2, 2] : [0, 0])
  },
)

scenario(
  'OpenAI is asked not to store the conversation, whatever the provider is called',
  async ({ server, run }) => {
    const ways: readonly (readonly [string, JsonObject])[] = [
      ['openai', {}],
      ['proxy', { openai: { user: 'u-1' } }],
      ['azure', { azure: { user: 'u-1' } }],
      ['azure', { openai: { user: 'u-1' } }],
      ['openai', { openai: { store: true } }],
    ]
    const sent: unknown[] = []
    for (const [name, providerOptions] of ways) {
      server.next({ content: 'Hi.' })
      const model = createOpenAI({ name, baseURL: `${server.url}/v1`, apiKey: 'key' })('gpt-5')
      await run(createAgent({ model, settings: { providerOptions } }))
      sent.push([server.requests.at(-1)!.body['store'], server.requests.at(-1)!.body['user']])
    }
    assert.deepEqual(sent, [
      [false, undefined],
      [false, 'u-1'],
      [false, 'u-1'],
      [false, 'u-1'],
      [true, undefined],
    ])
  },
  { only: (row) => row.name === 'openai' },
)

scenario(
  'an invalid conversation is sent in a form that all providers accept',
  async ({ model, server, run, sent }) => {
    server.next({ content: 'Hi.' })
    const says = (role: Message['role'], text: string): Message => ({ role, content: [{ type: 'text', text }] })
    const messages: Message[] = [
      says('system', 'First.'),
      says('system', 'Second.'),
      says('user', 'One.'),
      { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'lost', toolName: 'read', output: 'orphan' }] },
      says('assistant', ''),
      { role: 'assistant', content: [] },
      { role: 'assistant', content: [{ type: 'reasoning', text: 'Only thinking.' }] },
      {
        role: 'assistant',
        content: [
          { type: 'tool-call', toolCallId: 'functions.read:1', toolName: 'file.read', input: { path: 'a' } },
          { type: 'tool-call', toolCallId: 'x2', toolName: 'file.read', input: 'not {json' },
        ],
      },
      says('user', 'Two.'),
      {
        role: 'tool',
        content: [{ type: 'tool-result', toolCallId: 'functions.read:1', toolName: 'file.read', output: 'late' }],
      },
      says('system', 'Be quick.'),
      says('user', ''),
      says('assistant', 'Well.'),
    ]
    await run(
      createAgent({ model, use: [read, hook('beforeInference', (ctx) => ctx.withRequest({ system: '', messages }))] }),
    )
    assert.deepEqual(sent()[0], [
      'system: First.\n\nSecond.',
      'user: One.',
      'call functions_read_1 file_read {"path":"a"}',
      'call x2 file_read {"unreadable":"not {json"}',
      'result functions_read_1 late',
      'result x2 The outcome of this call is unknown. It may have taken effect.',
      'user: Two.',
      'user: Be quick.',
      'model: Well.',
      'user: Continue.',
    ])
  },
)

scenario('a conversation whose start was removed is accepted', async ({ model, server, run, sent, calls }) => {
  server.next(calls(callA), { content: 'Done.' })
  const window = hook('beforeInference', (ctx) => ctx.withRequest({ messages: ctx.request.messages.slice(-2) }))
  await run(createAgent({ model, use: [read, window] }))
  assert.deepEqual(sent()[1], [
    'user: (Earlier messages are omitted.)',
    'call c1 file_read {"path":"a.txt"}',
    'result c1 text of a.txt',
  ])
})

scenario('a failed call is sent as an error', async ({ row, model, server, run, sent, calls }) => {
  server.next(calls({ ...callA, arguments: '{"path":7}' }), { content: 'Sorry.' })
  await run(createAgent({ model, use: [read] }))
  assert.match(sent()[1]!.at(-1)!, /^result c1 .*path/)
  if (row.name === 'anthropic') assert.match(JSON.stringify(server.requests[1]!.body), /"is_error":true/)
})

scenario('a conversation continues with another provider', async ({ row, mode, model, server, run, sent }) => {
  const others = rows.filter((other) => other !== row)
  for (const [i, other] of others.entries()) {
    const begun = createAgent({ model: other.create(server.url, 'key')(other.modelId), use: [read] })
    server.next(
      { toolCalls: [callA], reasoning: 'Hm.', ...(other.wire === 'gemini' && { finishReason: 'stop' }) },
      { content: 'One.', reasoning: 'So.' },
      { content: 'Two.' },
    )
    const first = mode === 'run' ? await begun.run('Look.') : await begun.stream('Look.').run
    const { run: ended } = await run(createAgent({ model, use: [read] }), 'And now?', { from: first })
    assert.equal(ended.text, 'Two.')
    assert.deepEqual(
      sent()[i * 3 + 2]!.filter((line) => !line.startsWith('thought')),
      ['user: Look.', 'call c1 file_read {"path":"a.txt"}', 'result c1 text of a.txt', 'model: One.', 'user: And now?'],
    )
  }
})

scenario('a truncated or filtered reply has its finish reason', async ({ row, model, server, run }) => {
  server.next(endedBy(row, 'length', 'So much'), endedBy(row, 'content_filter', 'I will'))
  const reasons = [await run(createAgent({ model })), await run(createAgent({ model }))].map(({ run: ended }) => [
    ended.text,
    ended.state.lastStep?.finishReason,
  ])
  assert.deepEqual(reasons, [
    ['So much', 'length'],
    ['I will', 'content-filter'],
  ])
})

const town = z.object({ name: z.string(), people: z.number() })

for (const use of [[], [read]]) {
  const title = `a typed answer is asked for and read${use.length === 0 ? '' : ', also while tools are offered'}`
  scenario(title, async ({ row, model, server, run, calls }) => {
    const byTool = row.name === 'openai-compatible' || (row.name === 'google' && use.length > 0)
    const answers = ['{"name":"Ulm"}', '{"name":"Ulm","people":126000}']
    for (const [i, text] of answers.entries()) {
      server.next(byTool ? calls({ name: 'final_answer', arguments: text, id: `a${i}` }) : { content: text })
    }
    const { run: ended } = await run(createAgent({ model, output: town, use }))
    assert.equal(ended.status, 'completed')
    assert.deepEqual(ended.output, { name: 'Ulm', people: 126_000 })
    const sent = JSON.stringify(server.requests[0]!.body)
    assert.match(
      sent,
      byTool ? /final_answer/ : /"(format|output_config|output_format|responseJsonSchema|responseSchema)":/,
    )
  })
}

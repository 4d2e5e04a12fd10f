import assert from 'node:assert/strict'
import { createAgent } from '../create-agent.ts'
import { failureOf, scenario, streamed } from './provider-suite.fixture.ts'

// The ways in which providers reject a request, and the code of each.

const refusals: readonly (readonly [string, number, string, string])[] = [
  ['MODEL_UNAUTHORIZED', 401, 'Incorrect API key provided.', 'authentication_error'],
  ['MODEL_UNAUTHORIZED', 403, 'Your key may not use this model.', 'permission_error'],
  [
    'MODEL_UNAUTHORIZED',
    429,
    'You exceeded your current quota, please check your plan and billing details.',
    'insufficient_quota',
  ],
  ['MODEL_CONTEXT_OVERFLOW', 400, 'prompt is too long: 210000 tokens > 200000 maximum', 'invalid_request_error'],
  [
    'MODEL_CONTEXT_OVERFLOW',
    400,
    'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000',
    'invalid_request_error',
  ],
  ['MODEL_CONTEXT_OVERFLOW', 400, "This model's maximum context length is 8192 tokens.", 'context_length_exceeded'],
  [
    'MODEL_CONTEXT_OVERFLOW',
    400,
    'The input token count (1048577) exceeds the maximum number of tokens allowed (1048575).',
    'INVALID_ARGUMENT',
  ],
  [
    'MODEL_CONTENT_FILTERED',
    400,
    'Your prompt was flagged as potentially violating our usage policy.',
    'invalid_prompt',
  ],
  ['MODEL_CONTENT_FILTERED', 400, 'Output blocked by content filtering policy', 'invalid_request_error'],
  ['MODEL_REJECTED', 400, "Unsupported parameter: 'timeout'", 'invalid_request_error'],
  ['MODEL_REJECTED', 404, 'The model does not exist.', 'not_found_error'],
  ['MODEL_OVERLOADED', 529, 'Overloaded', 'overloaded_error'],
  ['MODEL_OVERLOADED', 503, 'The model is overloaded. Please try again later.', 'UNAVAILABLE'],
]

scenario('each kind of rejection has its code', async ({ model, server, run }) => {
  const seen: unknown[] = []
  for (const [, status, message, type] of refusals) {
    server.next({ error: { message, type, code: type }, status })
    seen.push([failureOf(await run(createAgent({ model }))).code, status, message, type])
  }
  assert.deepEqual(seen, refusals)
})

scenario('a server that does not exist is unreachable', async ({ row, run }) => {
  const error = failureOf(await run(createAgent({ model: row.create('http://127.0.0.1:1', 'key')(row.modelId) })))
  assert.equal(error.code, 'MODEL_UNREACHABLE')
})

scenario(
  'an error with a success status has its code',
  async ({ mode, model, server, run }) => {
    const errors = [
      { code: 'server_error', message: 'The server had an error.', type: 'server_error' },
      { code: 429, message: 'Too much.', type: 'rate_limit_error' },
    ]
    const seen: unknown[] = []
    for (const error of errors) {
      const body = JSON.stringify({ id: 'r', type: 'error', status: 'failed', output: [], error })
      server.next(mode === 'run' ? { body } : streamed(body))
      seen.push(failureOf(await run(createAgent({ model }))).code)
    }
    assert.deepEqual(seen, ['MODEL_OVERLOADED', 'MODEL_RATE_LIMITED'])
  },
  { only: ({ wire }, mode) => wire === 'chat' || (wire !== 'gemini' && mode === 'run') },
)

scenario('a reply that is only an error fails', async ({ mode, model, server, run }) => {
  const body = JSON.stringify({ error: { code: 500, message: 'Internal error', status: 'INTERNAL' } })
  server.next(mode === 'run' ? { body } : streamed(body))
  assert.match(failureOf(await run(createAgent({ model }))).code, /^MODEL_(OVERLOADED|REPLY_INVALID)$/)
})

scenario(
  'a blocked prompt is a filtered reply',
  async ({ mode, model, server, run }) => {
    const body = JSON.stringify({ promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } })
    server.next(mode === 'run' ? { body } : streamed(body))
    const { run: ended } = await run(createAgent({ model }))
    assert.equal(ended.state.lastStep?.finishReason, 'content-filter')
  },
  { only: ({ wire }) => wire === 'gemini' },
)

scenario(
  'a refusal of the model is a filtered reply, and its text is stored',
  async ({ row, model, server, run }) => {
    const rejected = (said: string): string =>
      row.wire === 'chat'
        ? said
            .replace('"content":"I cannot.","refusal":null', '"refusal":"I cannot."')
            .replace('"content":"I', '"refusal":"I')
        : said
            .replaceAll('output_text.', 'refusal.')
            .replace(/"type":"output_text","text":|"text":(?="I)/g, '"type":"refusal","refusal":')
    server.next({ says: { content: 'I cannot.' }, body: rejected })
    const { run: ended } = await run(createAgent({ model }))
    assert.deepEqual([ended.text, ended.state.lastStep?.finishReason], ['I cannot.', 'content-filter'])
  },
  { only: ({ wire }) => wire === 'responses' || wire === 'chat' },
)

scenario(
  'an error in a stream has its code',
  async ({ row, model, server, run }) => {
    const seen: unknown[] = []
    for (const event of row.streamErrors) {
      server.next({
        says: { content: 'The quick brown fox jumps over the lazy dog.' },
        body: (said) =>
          said.slice(0, said.indexOf('\n\n', said.indexOf('The quick')) + 2) + `data: ${JSON.stringify(event)}\n\n`,
      })
      seen.push(failureOf(await run(createAgent({ model }))).code)
    }
    assert.deepEqual(seen, ['MODEL_OVERLOADED', 'MODEL_RATE_LIMITED'])
  },
  { only: (_row, mode) => mode === 'stream' },
)

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { AgentError } from '../../errors.ts'
import { retryAfterOf, toModelFailure } from './failure.ts'

// provider-failures.test.ts has what real servers return. This file has what else may be thrown.

const asked = { provider: 'acme', modelId: 'large', model: undefined }
const codeOf = async (thrown: unknown): Promise<string> => (await toModelFailure(thrown, asked)).code
const named = (name: string, fields: object = {}): Error => Object.assign(new Error('words'), { name, ...fields })

test('the name of an AI SDK error decides its code', async () => {
  const codes = await Promise.all(
    [
      'AI_LoadAPIKeyError',
      'AI_UnsupportedFunctionalityError',
      'AI_NoSuchModelError',
      'AI_TypeValidationError',
      'AI_EmptyResponseBodyError',
      'TimeoutError',
      'constructor',
    ].map((name) => codeOf(named(name))),
  )
  assert.deepEqual(codes, [
    'MODEL_UNAUTHORIZED',
    'MODEL_REJECTED',
    'MODEL_REJECTED',
    'MODEL_REPLY_INVALID',
    'MODEL_REPLY_INVALID',
    'MODEL_TIMED_OUT',
    'MODEL_FAILED',
  ])
})

test('the status decides the code, and the message where the status says too little', async () => {
  const says = (statusCode: number, responseBody = '') => codeOf(named('AI_APICallError', { statusCode, responseBody }))
  assert.deepEqual(
    await Promise.all([
      says(402),
      says(408),
      says(413),
      says(422),
      says(418, 'context size'),
      says(500, 'context window'),
    ]),
    [
      'MODEL_UNAUTHORIZED',
      'MODEL_TIMED_OUT',
      'MODEL_CONTEXT_OVERFLOW',
      'MODEL_REJECTED',
      'MODEL_CONTEXT_OVERFLOW',
      'MODEL_CONTEXT_OVERFLOW',
    ],
  )
})

test('errors in a stream are classified by their code, type or message', async () => {
  const codes = await Promise.all(
    [
      { type: 'overloaded_error', message: 'x' },
      { code: 503, message: 'x' },
      { error: { message: 'Rate limit reached' } },
      'socket hang up',
      { message: 'x', code: 7 },
    ].map(codeOf),
  )
  assert.deepEqual(codes, [
    'MODEL_OVERLOADED',
    'MODEL_OVERLOADED',
    'MODEL_RATE_LIMITED',
    'MODEL_UNREACHABLE',
    'MODEL_FAILED',
  ])
})

test('a broken connection is unreachable, however deep the cause is nested', async () => {
  const broken = new TypeError('terminated', {
    cause: Object.assign(new Error('other side closed'), { code: 'UND_ERR_SOCKET' }),
  })
  const thrown = named('AI_APICallError', { statusCode: 200, cause: broken })
  assert.equal(await codeOf(thrown), 'MODEL_UNREACHABLE')
})

test('any thrown value becomes an error with a message', async () => {
  for (const thrown of [undefined, null, 7, '', 'no', {}, [], new Error(''), Symbol('s'), { message: 4 }]) {
    const error = await toModelFailure(thrown, asked)
    assert.equal(error.code, 'MODEL_FAILED')
    assert.match(error.message, /^acme\/large: ./)
  }
})

test('an AgentError keeps its code', async () => {
  assert.equal(await codeOf(new AgentError('MODEL_NOT_INSTALLED', 'x')), 'MODEL_NOT_INSTALLED')
})

test('the request, the headers and the body are not part of the error', async () => {
  const thrown = named('AI_APICallError', {
    statusCode: 400,
    requestBodyValues: { messages: 'private words' },
    responseHeaders: { 'set-cookie': 'private words' },
    responseBody: 'private words',
    data: 'private words',
  })
  const error = await toModelFailure(thrown, asked)
  assert.ok(!inspect(error, { depth: 20, showHidden: true }).includes('private words'))
})

const known: readonly (readonly [string, object, number | undefined])[] = [
  ['seconds', { responseHeaders: { 'retry-after': '7' } }, 7_000],
  ['a part of a second', { responseHeaders: { 'retry-after': '0.25' } }, 250],
  ['milliseconds, which are more precise', { responseHeaders: { 'retry-after-ms': '120', 'retry-after': '1' } }, 120],
  ['a time in the past', { responseHeaders: { 'retry-after': 'Wed, 21 Oct 2015 07:28:00 GMT' } }, 0],
  ['a negative number', { responseHeaders: { 'retry-after': '-5' } }, 0],
  ['the body, as Google has it', { responseBody: '{"error":{"details":[{"retryDelay": "34.5s"}]}}' }, 34_500],
  ['text that is not a time', { responseHeaders: { 'retry-after': 'later' } }, undefined],
  ['nothing', { responseHeaders: {}, responseBody: 'slow down' }, undefined],
  ['no headers at all', { responseHeaders: null }, undefined],
]

test('the wait before a retry is read from headers, or from the body as Google has it', () => {
  for (const [what, thrown, expected] of known) assert.equal(retryAfterOf(thrown), expected, what)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { AgentError } from '../../errors.ts'
import { toModelFailure } from './failure.ts'

// What real servers say is in provider-failures.test.ts. This is about what else may be thrown.

const asked = { provider: 'acme', modelId: 'large', model: undefined }
const codeOf = async (thrown: unknown): Promise<string> => (await toModelFailure(thrown, asked)).code
const named = (name: string, fields: object = {}): Error => Object.assign(new Error('words'), { name, ...fields })

test('errors that say by their name what they are are believed', async () => {
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

test('a status decides, and words where it says too little', async () => {
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

test('errors in the middle of a stream are told by their code, their type or their words', async () => {
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

test('a connection that breaks is unreachable, however deep the reason lies', async () => {
  const broken = new TypeError('terminated', {
    cause: Object.assign(new Error('other side closed'), { code: 'UND_ERR_SOCKET' }),
  })
  const thrown = named('AI_APICallError', { statusCode: 200, cause: broken })
  assert.equal(await codeOf(thrown), 'MODEL_UNREACHABLE')
})

test('whatever is thrown becomes an error with words', async () => {
  for (const thrown of [undefined, null, 7, '', 'no', {}, [], new Error(''), Symbol('s'), { message: 4 }]) {
    const error = await toModelFailure(thrown, asked)
    assert.equal(error.code, 'MODEL_FAILED')
    assert.match(error.message, /^acme\/large: ./)
  }
})

test('an error that goes around in circles is told, too', async () => {
  const thrown = new Error('round')
  thrown.cause = thrown
  assert.equal(await codeOf(thrown), 'MODEL_FAILED')
})

test('our own errors keep their code', async () => {
  assert.equal(await codeOf(new AgentError('MODEL_NOT_INSTALLED', 'x')), 'MODEL_NOT_INSTALLED')
})

test('the request, the headers and the body are not kept', async () => {
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

test('long words are cut', async () => {
  const error = await toModelFailure(new Error('x'.repeat(100_000)), asked)
  assert.ok(error.message.length < 600)
})

test('who has no key is told what to do', async () => {
  const error = await toModelFailure(named('AI_APICallError', { statusCode: 401 }), asked)
  assert.match(error.message, /Is the key of acme set/)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { textMessage } from '../../core/state/message.ts'
import { toReply, type Answer } from './reply.ts'
import { ToolNames } from './tool-names.ts'

const request = { system: 'Be brief.', messages: [textMessage('user', 'Say hello to everybody.')] }
const asked = { request, names: new ToolNames([]), warnings: [] }
const usage = { inputTokens: 1, outputTokens: 1 }
const say = (answer: Partial<Answer>) =>
  toReply({ content: [{ type: 'text', text: 'Hi.' }], finishReason: 'stop', usage, ...answer }, asked)

test('token counts are read from all versions of the specification', () => {
  const nested = { inputTokens: { total: 9, cacheRead: 3, cacheWrite: 2 }, outputTokens: { total: 5, reasoning: 4 } }
  const flat = { inputTokens: 9, outputTokens: 5, cachedInputTokens: 3, reasoningTokens: 4 }
  const same = { inputTokens: 9, outputTokens: 5, cachedInputTokens: 3, reasoningTokens: 4 }
  assert.deepEqual(say({ usage: nested }).usage, { ...same, cacheWriteTokens: 2 })
  assert.deepEqual(say({ usage: flat }).usage, { ...same, cacheWriteTokens: 0 })
})

test('invalid token counts are estimated, input and output separately', () => {
  const counts = [-4, Number.NaN, Infinity, null, '9', undefined]
  const inputs = counts.map((each) => say({ usage: { inputTokens: each, outputTokens: 5 } }).usage)
  assert.ok(inputs.every(({ inputTokens, outputTokens }) => inputTokens >= 8 && outputTokens === 5))
  const outputs = counts.map((each) => say({ usage: { inputTokens: 5, outputTokens: each } }).usage)
  assert.ok(outputs.every(({ inputTokens, outputTokens }) => inputTokens === 5 && outputTokens >= 1))
})

test('missing token counts are estimated, with a warning', () => {
  const uncounted = [undefined, {}, { inputTokens: { total: undefined }, outputTokens: { total: undefined } }]
  for (const each of uncounted) {
    const { usage: estimated, warnings } = say({ usage: each })
    assert.match(warnings!.join(), /did not report token usage/)
    assert.ok(estimated.inputTokens >= 8 && estimated.outputTokens >= 1)
  }
  const zero = { inputTokens: { total: 0 }, outputTokens: { total: 0 } }
  assert.equal(say({ usage: zero }).warnings, undefined)
})

test('a reply with tool calls has the finish reason tool-calls, whatever the provider reports', () => {
  const content: Answer['content'] = [{ type: 'tool-call', toolCallId: '1', toolName: 'act', input: '{}' }]
  const reasons = ['stop', 'other', 'length', { unified: 'stop', raw: 'STOP' }].map(
    (finishReason) => say({ content, finishReason }).finishReason,
  )
  assert.deepEqual(reasons, ['tool-calls', 'tool-calls', 'length', 'tool-calls'])
})

test('a reply without content throws if its finish reason is an error or missing', () => {
  const empty: readonly Answer['finishReason'][] = [
    'error',
    'unknown',
    { unified: 'error', raw: 'MALFORMED_FUNCTION_CALL' },
    { unified: 'other', raw: undefined },
  ]
  for (const finishReason of empty) {
    assert.throws(() => say({ content: [], finishReason }), { code: 'MODEL_REPLY_INVALID' })
  }
  assert.deepEqual(say({ content: [], finishReason: 'stop' }).content, [])
})

test('reasoning without text is stored if it has provider options, and dropped otherwise', () => {
  const providerMetadata = { anthropic: { redactedData: 'x' } }
  const content: Answer['content'] = [
    { type: 'reasoning', text: '' },
    { type: 'reasoning', text: '', providerMetadata },
  ]
  assert.deepEqual(say({ content }).content, [{ type: 'reasoning', text: '', providerOptions: providerMetadata }])
})

test('files are base64 or a URL', () => {
  const file = (data: unknown) => ({ type: 'file', mediaType: 'image/png', data }) as Answer['content'][number]
  const address = 'https://example.com/a.png'
  const given = [
    'AAEC',
    new Uint8Array([0, 1, 2]),
    { type: 'data', data: 'AAEC' },
    { type: 'url', url: new URL(address) },
  ]
  const stored = say({ content: given.map(file) }).content.map((part) => part.type === 'file' && part.data)
  assert.deepEqual(stored, ['AAEC', 'AAEC', 'AAEC', address])
})

test('calls of tools that the provider runs are left out, with a warning', () => {
  const reply = say({
    content: [
      { type: 'tool-call', toolCallId: '1', toolName: 'web_search', input: '{}', providerExecuted: true },
      { type: 'tool-result', toolCallId: '1', toolName: 'web_search', result: 'x' },
      { type: 'text', text: 'Found.' },
    ],
  })
  assert.deepEqual(reply.content, [{ type: 'text', text: 'Found.' }])
  assert.match(reply.warnings!.join(), /its own tool "web_search", which hooks cannot see/)
})

test('warnings of all versions become text', () => {
  const warnings = [
    { type: 'unsupported', feature: 'seed', details: 'not for this model' },
    { type: 'unsupported-setting', setting: 'topK' },
    { type: 'other', message: 'mind the gap' },
    null,
  ]
  assert.deepEqual(say({ warnings }).warnings, [
    'seed: unsupported, not for this model',
    'topK: unsupported-setting',
    'mind the gap',
    'The provider returned a warning without a message.',
  ])
})

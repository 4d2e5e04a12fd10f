import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import fc from 'fast-check'
import type { Message, Part } from '../../core/state/message.ts'
import { toPrompt } from './prompt.ts'
import { ToolNames } from './tool-names.ts'

const text = fc.constantFrom('', 'a', 'b')
const id = fc.constantFrom('1', '2', 'functions.act:3')
const part: fc.Arbitrary<Part> = fc.oneof(
  text.map((each) => ({ type: 'text' as const, text: each })),
  text.map((each) => ({ type: 'reasoning' as const, text: each })),
  fc.constant({ type: 'file' as const, mediaType: 'image/png', data: 'AA==' }),
  id.map((toolCallId) => ({ type: 'tool-call' as const, toolCallId, toolName: 'act', input: {} })),
  id.map((toolCallId) => ({ type: 'tool-result' as const, toolCallId, toolName: 'act', output: 'ok' })),
)
const message: fc.Arbitrary<Message> = fc.record({
  role: fc.constantFrom('system', 'user', 'assistant', 'tool'),
  content: fc.array(part, { maxLength: 3 }),
})

test('any conversation is converted to one that every provider accepts', () => {
  fc.assert(
    fc.property(text, fc.array(message, { maxLength: 8 }), (system, messages) => {
      assert.deepEqual(problemsOf(promptOf(messages, { system })), [])
    }),
    { numRuns: 1_000 },
  )
})

/** What a provider would reject. */
function problemsOf(prompt: LanguageModelV4Prompt): readonly string[] {
  const turns = prompt.filter(({ role }) => role !== 'system')
  return [
    ...(prompt.slice(1).some(({ role }) => role === 'system') ? ['instructions that do not come first'] : []),
    ...(turns[0]?.role === 'user' ? [] : [`the first word is of ${turns[0]?.role}`]),
    ...(['user', 'tool'].includes(turns.at(-1)?.role ?? '') ? [] : [`the last word is of ${turns.at(-1)?.role}`]),
    ...prompt.flatMap(({ content }) => (content.length === 0 ? ['something empty'] : [])),
    ...turns.flatMap(({ role, content }, i) => {
      const parts = content as readonly { type: string; text?: string; toolCallId?: string }[]
      const calls = parts.filter(({ type }) => type === 'tool-call').map(({ toolCallId }) => toolCallId)
      const following = calls.length === 0 ? [] : (turns[i + 1]?.content as typeof parts)
      return [
        ...(parts.some((each) => each.type === 'text' && each.text === '') ? ['an empty text'] : []),
        ...(parts.every(({ type }) => type === 'reasoning') ? ['a thought and nothing else'] : []),
        ...(role === 'tool' && turns[i - 1]?.role !== 'assistant' ? ['results without calls'] : []),
        ...(following.map(({ toolCallId }) => toolCallId).join() === calls.join()
          ? []
          : ['calls without their results']),
        ...calls.flatMap((each) => (/^[A-Za-z0-9_-]+$/.test(each ?? '') ? [] : [`the id ${each}`])),
      ]
    }),
  ]
}

test('a result belongs to the latest call if ids repeat', () => {
  const call: Part = { type: 'tool-call', toolCallId: '1', toolName: 'act', input: {} }
  const result = (output: string): Message => ({
    role: 'tool',
    content: [{ type: 'tool-result', toolCallId: '1', toolName: 'act', output }],
  })
  const prompt = promptOf([
    { role: 'assistant', content: [call] },
    result('first'),
    { role: 'assistant', content: [call] },
    { role: 'assistant', content: [call] },
    result('third'),
  ])
  const results = prompt.flatMap((each) => (each.role === 'tool' ? each.content : []))
  assert.deepEqual(
    results.map((each) => 'output' in each && each.output),
    [
      { type: 'text', value: 'first' },
      { type: 'error-text', value: 'The outcome of this call is unknown. It may have taken effect.' },
      { type: 'text', value: 'third' },
    ],
  )
})

test('a JSON result stays JSON, and a failure is marked as an error', () => {
  const calls = ['1', '2'].map((toolCallId) => ({ type: 'tool-call' as const, toolCallId, toolName: 'act', input: {} }))
  const results: Part[] = [
    { type: 'tool-result', toolCallId: '1', toolName: 'act', output: { n: 1 } },
    { type: 'tool-result', toolCallId: '2', toolName: 'act', output: 'no', isError: true },
  ]
  const prompt = promptOf([
    { role: 'assistant', content: calls },
    { role: 'tool', content: results },
  ])
  const sent = prompt.flatMap((each) => (each.role === 'tool' ? each.content : []))
  assert.deepEqual(
    sent.map((each) => 'output' in each && each.output),
    [
      { type: 'json', value: { n: 1 } },
      { type: 'error-text', value: 'no' },
    ],
  )
})

const files: readonly (readonly [string, string, unknown, unknown])[] = [
  ['bytes', 'AAEC', { type: 'data', data: 'AAEC' }, 'AAEC'],
  ['bytes in an address', 'data:image/png;base64,AAEC', { type: 'data', data: 'AAEC' }, 'AAEC'],
  ['text in an address', 'data:text/plain,a%20b', { type: 'data', data: 'YSBi' }, 'YSBi'],
  [
    'an address',
    'https://example.com/a.png',
    { type: 'url', url: new URL('https://example.com/a.png') },
    new URL('https://example.com/a.png'),
  ],
]

for (const [what, data, v4, earlier] of files) {
  test(`a file is sent in the form of each version when it is ${what}`, () => {
    const messages: Message[] = [{ role: 'user', content: [{ type: 'file', mediaType: 'image/png', data }] }]
    const sent = (['v4', 'v3', 'v2'] as const).map((version) => {
      const [first] = promptOf(messages, { version })[0]!.content as readonly { data: unknown }[]
      return first!.data
    })
    assert.deepEqual(sent, [v4, earlier, earlier])
  })
}

test('the provider options of a part are sent back with it', () => {
  const providerOptions = { anthropic: { signature: 's' } }
  const prompt = promptOf([
    { role: 'user', content: [{ type: 'text', text: 'Go.' }] },
    {
      role: 'assistant',
      content: [
        { type: 'reasoning', text: '', providerOptions },
        { type: 'text', text: 'Hm.' },
      ],
    },
  ])
  assert.deepEqual(prompt[1]!.content, [
    { type: 'reasoning', text: '', providerOptions },
    { type: 'text', text: 'Hm.' },
  ])
})

type Given = { readonly system?: string; readonly version?: 'v2' | 'v3' | 'v4' }

function promptOf(messages: readonly Message[], { system = '', version = 'v4' }: Given = {}): LanguageModelV4Prompt {
  const request = { system, messages, tools: [] }
  return toPrompt(request, new ToolNames([]), { version, cache: false })
}

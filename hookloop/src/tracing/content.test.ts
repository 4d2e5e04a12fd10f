import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ReadableSpan } from '@opentelemetry/sdk-trace'
import { tool } from '../core/agent/tool.ts'
import { approval } from '../capabilities/approval.ts'
import { errorPolicy } from '../capabilities/error-policy.ts'
import { createAgent } from '../create-agent.ts'
import type { Message } from '../core/state/message.ts'
import { guard, hook } from '../core/hooks/hook.ts'
import { scriptedModel } from '../models/scripted.ts'
import { inMemory } from './in-memory.fixture.ts'

const input = { type: 'object' } as const

/** A run in which every text that could be content is a unique word. */
async function spokenRun(content: boolean): Promise<readonly ReadableSpan[]> {
  const otel = inMemory(content ? { content } : {})
  const model = scriptedModel([
    { error: 'canary-model-error' },
    {
      text: 'canary-text',
      reasoning: 'canary-reasoning',
      toolCalls: [
        { name: 'ok', args: { value: 'canary-argument' } },
        { name: 'blocked', args: { 'canary-key': 1 } },
        { name: 'failing' },
        { name: 'canary-made-up', args: { value: 'canary-made-up-argument' } },
        { name: 'asked' },
      ],
    },
    'canary-answer',
  ])
  const agent = createAgent({
    model,
    instructions: 'canary-system',
    use: [
      otel.tracing,
      tool({ name: 'ok', description: 'canary-description', input, execute: () => ({ result: 'canary-result' }) }),
      tool({ name: 'blocked', description: '', input, execute: () => '' }),
      tool({ name: 'failing', description: '', input, execute: () => Promise.reject(new Error('canary-tool-error')) }),
      tool({ name: 'asked', description: '', input, ask: true, execute: () => '' }),
      guard('beforeToolUse', (ctx) => ctx.block('canary-block'), { name: 'no', tool: 'blocked' }),
      hook('beforeToolUse', (ctx) => ctx.withArgs({ ...ctx.toolCall.args, 'canary-added': 'canary-new' }), {
        tool: 'ok',
      }),
      hook('afterToolUse', () => Promise.reject(new Error('canary-hook-error')), { onFailure: 'continue' }),
      approval(() => ({ block: 'canary-refusal' })),
      errorPolicy({ backoffMs: 0 }),
    ],
  })
  const run = await agent.run('canary-input', { metadata: { user: 'canary-metadata' } })
  assert.equal(run.text, 'canary-answer')
  const noInput = guard('onUserInput', (ctx) => ctx.block('canary-input-block'))
  await agent.with(noInput).run('canary-rejected-input')
  const stop = guard('beforeStep', (ctx) => ctx.stop('canary-stop', { value: 'canary-value' }))
  await agent.with(stop).run('canary-stopped-input')
  await createAgent({ model: scriptedModel([{ error: 'canary-fatal' }]), use: [otel.tracing] }).run('Go.')
  return otel.spans()
}

function textOf(spans: readonly ReadableSpan[]): string {
  return JSON.stringify(
    spans.map(({ name, attributes, status, events, links }) => [name, attributes, status, events, links]),
  )
}

test('no span has content by default', async () => {
  const spans = await spokenRun(false)
  assert.ok(spans.length > 20)
  assert.deepEqual(textOf(spans).match(/canary[\w-]*/g), null)
})

test('with content on, spans have messages, arguments and results, but no descriptions or metadata', async () => {
  const text = textOf(await spokenRun(true))
  const found = new Set(text.match(/canary[\w-]*/g))
  const expected = [
    'canary-system',
    'canary-input',
    'canary-model-error',
    'canary-text',
    'canary-reasoning',
    'canary-argument',
    'canary-key',
    'canary-added',
    'canary-new',
    'canary-result',
    'canary-block',
    'canary-tool-error',
    'canary-hook-error',
    'canary-made-up',
    'canary-made-up-argument',
    'canary-refusal',
    'canary-answer',
    'canary-input-block',
    'canary-rejected-input',
    'canary-stop',
    'canary-stopped-input',
    'canary-fatal',
  ]
  assert.deepEqual([...found].toSorted(), expected.toSorted())
})

test('content has the format of the conventions', async () => {
  const otel = inMemory({ content: true })
  const look = tool({ name: 'look', description: '', input, execute: () => ({ seen: true }) })
  const model = scriptedModel([{ reasoning: 'Hm.', toolCalls: [{ name: 'look', id: 'l', args: { at: 1 } }] }, 'A cat.'])
  const asked: Message = {
    role: 'user',
    content: [
      { type: 'text', text: 'What is it?' },
      { type: 'file', mediaType: 'image/png', data: 'AAAA' },
      { type: 'file', mediaType: 'image/png', data: 'https://example.com/cat.png' },
    ],
  }
  await createAgent({ model, instructions: 'Be brief.', use: [look, otel.tracing] }).run(asked)
  const { attributes } = otel.spans().filter(({ name }) => name === 'chat script')[1]!
  const parsed = (name: string): unknown => JSON.parse(attributes[`gen_ai.${name}`] as string)
  assert.deepEqual(parsed('system_instructions'), [{ type: 'text', content: 'Be brief.' }])
  assert.deepEqual(parsed('input.messages'), [
    {
      role: 'user',
      parts: [
        { type: 'text', content: 'What is it?' },
        { type: 'blob', modality: 'image', mime_type: 'image/png', size: 4 },
        { type: 'uri', modality: 'image', mime_type: 'image/png', uri: 'https://example.com/cat.png' },
      ],
    },
    {
      role: 'assistant',
      parts: [
        { type: 'reasoning', content: 'Hm.' },
        { type: 'tool_call', id: 'l', name: 'look', arguments: { at: 1 } },
      ],
    },
    { role: 'tool', parts: [{ type: 'tool_call_response', id: 'l', response: { seen: true } }] },
  ])
  assert.deepEqual(parsed('output.messages'), [
    { role: 'assistant', parts: [{ type: 'text', content: 'A cat.' }], finish_reason: 'stop' },
  ])
  const { 'gen_ai.tool.call.arguments': args, 'gen_ai.tool.call.result': result } =
    otel.span('execute_tool look').attributes
  assert.deepEqual([args, result], ['{"at":1}', '{"seen":true}'])
})

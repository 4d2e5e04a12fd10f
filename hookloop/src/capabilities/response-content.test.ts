import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tool } from '../core/agent/tool.ts'
import { createAgent } from '../create-agent.ts'
import { scriptedModel } from '../models/scripted.ts'
import { completion } from './completion.ts'
import { responseContent } from './response-content.ts'

const wantsSources = responseContent((text) => (text.includes('http') ? undefined : { continue: 'Name a source.' }))

test('an incomplete answer is sent back to the model with the reason', async () => {
  const model = scriptedModel(['It is so.', 'It is so: http://example.org'])
  const run = await createAgent({ model, use: [wantsSources] }).run('Is it so?')
  assert.equal(run.status === 'completed' && run.output, 'It is so: http://example.org')
  assert.deepEqual(model.requests[1]!.messages.at(-1), {
    role: 'user',
    content: [{ type: 'text', text: 'Name a source.' }],
  })
})

test('the verdict stop allows the stop', async () => {
  const neverDone = { name: completion().name }
  const use = [neverDone, responseContent((text) => (text.endsWith('DONE') ? 'stop' : undefined))]
  const run = await createAgent({ model: scriptedModel(['still at it', 'DONE', 'too far']), use }).run('go')
  assert.equal(run.status === 'completed' && run.final.by, 'responseContent')
  assert.equal(run.state.stepCount, 2)
})

test('text in a step with tool calls is not judged', async () => {
  const read: string[] = []
  const ping = tool({ name: 'ping', description: 'Pings.', input: { type: 'object' }, execute: () => 'pong' })
  const model = scriptedModel([{ text: 'One moment.', toolCalls: [{ name: 'ping' }] }, 'Done.'])
  const reader = responseContent((text) => {
    read.push(text)
    return undefined
  })
  await createAgent({ model, use: [ping, reader] }).run('go')
  assert.deepEqual(read, ['Done.'])
})

test('a run whose answer never improves ends at the continuation limit', async () => {
  const run = await createAgent({ model: scriptedModel(() => 'No.'), use: [wantsSources] }).run('go')
  assert.equal(run.status === 'stopped' && run.reason, 'continuationLimit')
  assert.equal(run.state.stepCount, 9)
})

test('a reader that throws stops the run: it is not completed', async () => {
  const breaks = responseContent(() => {
    throw new Error('unreadable')
  })
  const run = await createAgent({ model: scriptedModel(['x']), use: [breaks] }).run('go')
  assert.equal(run.status === 'stopped' && run.reason, 'errorForbade')
})

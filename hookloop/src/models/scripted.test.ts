import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { z } from 'zod'
import { tool } from '../core/agent/tool.ts'
import { approval } from '../capabilities/approval.ts'
import { subagents } from '../capabilities/subagents/index.ts'
import { createAgent } from '../create-agent.ts'
import type { InferenceDelta, ModelReply, ModelRequest } from '../core/state/inference.ts'
import { textMessage } from '../core/state/message.ts'
import { AgentError } from '../errors.ts'
import { guard, hook } from '../core/hooks/hook.ts'
import { memoryStore } from '../sessions/index.ts'
import type { SavedRun } from '../core/state/saved-run.ts'
import { recordDelays } from '../system/record-delays.fixture.ts'
import { scriptedModel, type ScriptedTurn } from './scripted.ts'

const request: ModelRequest = { system: '', messages: [], tools: [] }
const signal = new AbortController().signal

function say(turn: ScriptedTurn): Promise<ModelReply> {
  return scriptedModel([turn]).infer(request, { signal })
}

/** The deltas of a turn, and its reply or error. */
async function stream(turn: ScriptedTurn): Promise<{ deltas: InferenceDelta[]; end: unknown }> {
  const deltas: InferenceDelta[] = []
  const end: unknown = await scriptedModel([turn])
    .infer(request, { signal, onDelta: (delta) => deltas.push(delta) })
    .catch((error: unknown) => error)
  return { deltas, end }
}

test('a turn may have reasoning, text and tool calls, in this order', async () => {
  const { content, finishReason } = await say({
    toolCalls: [{ name: 'add', args: { a: 1 }, id: 'mine' }, { name: 'now' }],
    text: 'One moment.',
    reasoning: 'I need a sum.',
  })
  assert.equal(finishReason, 'tool-calls')
  assert.deepEqual(content, [
    { type: 'reasoning', text: 'I need a sum.' },
    { type: 'text', text: 'One moment.' },
    { type: 'tool-call', toolCallId: 'mine', toolName: 'add', input: { a: 1 } },
    { type: 'tool-call', toolCallId: 'call-1-2', toolName: 'now', input: {} },
  ])
})

test('generated call ids differ between turns and are the same each time the script runs', async () => {
  const ids = async (): Promise<unknown[]> => {
    const model = scriptedModel([{ toolCalls: [{ name: 'a' }, { name: 'a' }] }, { toolCalls: [{ name: 'a' }] }])
    const replies = [await model.infer(request, { signal }), await model.infer(request, { signal })]
    return replies.flatMap(({ content }) => content.map((part) => part.type === 'tool-call' && part.toolCallId))
  }
  const first = await ids()
  assert.equal(new Set(first).size, 3)
  assert.deepEqual(await ids(), first)
})

test('usage and finish reason come from the script, with defaults', async () => {
  const model = scriptedModel([{ text: 'x', usage: { outputTokens: 7, costUsd: 0.1 }, finishReason: 'length' }, 'y'], {
    usage: { inputTokens: 100 },
  })
  const first = await model.infer(request, { signal })
  const second = await model.infer(request, { signal })
  assert.deepEqual(first.usage, { inputTokens: 100, outputTokens: 7, costUsd: 0.1 })
  assert.equal(first.finishReason, 'length')
  assert.deepEqual(second.usage, { inputTokens: 100, outputTokens: 5 })
})

test('a text is streamed word by word, chunks unchanged, and both are complete in the reply', async () => {
  const words = await stream('  Two  words\nand more. ')
  assert.deepEqual(
    words.deltas.map((each) => each.delta),
    ['  ', 'Two  ', 'words\n', 'and ', 'more. '],
  )
  assert.deepEqual((words.end as ModelReply).content, [{ type: 'text', text: '  Two  words\nand more. ' }])
  const turn = { reasoning: 'Hm.', chunks: ['Hel', 'lo', '.'] }
  const { deltas, end } = await stream(turn)
  assert.deepEqual(deltas, [
    { type: 'reasoning', delta: 'Hm.' },
    { type: 'text', delta: 'Hel' },
    { type: 'text', delta: 'lo' },
    { type: 'text', delta: '.' },
  ])
  assert.deepEqual(end, await say(turn))
})

test('the delay is before the reply, or before each chunk of a stream', async (t) => {
  const delays = recordDelays(t)
  await say({ text: 'a b c', delayMs: 15 })
  assert.deepEqual(delays.splice(0), [15])
  await stream({ text: 'a b c', delayMs: 15 })
  assert.deepEqual(delays, [15, 15, 15])
})

test('a delay ends at once when the signal aborts', async () => {
  for (const onDelta of [undefined, () => undefined]) {
    const abort = new AbortController()
    const call = { signal: abort.signal, ...(onDelta && { onDelta }) }
    const answer = scriptedModel([{ text: 'late', delayMs: 60_000 }]).infer(request, call)
    setImmediate(() => abort.abort())
    await assert.rejects(answer, { name: 'AbortError' })
  }
})

test('a function computes its turn from the request, in a script or instead of one', async () => {
  const count = ({ messages }: ModelRequest): ScriptedTurn => `${messages.length} messages`
  const asked = { ...request, messages: [textMessage('user', 'hi')] }
  const last = scriptedModel(['first', async (given) => count(given)])
  const all = scriptedModel(count)
  const texts = []
  for (const [model, given] of [
    [last, request],
    [last, asked],
    [all, request],
    [all, asked],
  ] as const) {
    texts.push((await model.infer(given, { signal })).content)
  }
  const expected = ['first', '1 messages', '0 messages', '1 messages']
  assert.deepEqual(
    texts,
    expected.map((text) => [{ type: 'text', text }]),
  )
})

test('a call after the last turn fails with SCRIPT_EXHAUSTED', async () => {
  const model = scriptedModel(['only'])
  await model.infer(request, { signal })
  await assert.rejects(
    model.infer(request, { signal }),
    (error) => error instanceof AgentError && error.code === 'SCRIPT_EXHAUSTED' && error.value === 1,
  )
})

suite('a list as the script', () => {
  const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' })
  const script = [{ toolCalls: [{ name: 'look' }] }, 'First.', 'Second.']

  test('starts at its first turn in each new run, also in runs at the same time', async () => {
    const agent = createAgent({ model: scriptedModel(script), use: [look] })
    const runs = [await agent.run('go'), ...(await Promise.all([agent.run('go'), agent.run('go')]))]
    for (const run of runs) {
      assert.deepEqual([run.status, run.text, run.state.stepCount], ['completed', 'First.', 2])
      assert.deepEqual(run.state.messages.slice(), runs[0]!.state.messages.slice())
    }
  })

  test('continues in a run that continues a conversation, with from or in a session', async () => {
    const agent = createAgent({ model: scriptedModel(script), use: [look], store: memoryStore() })
    const first = await agent.run('go')
    assert.equal((await agent.run('and?', { from: first })).text, 'Second.')
    for (const session of ['a', 'b']) {
      await agent.run('go', { session })
      assert.equal((await agent.run('and?', { session })).text, 'Second.')
    }
  })

  test('continues when a run is resumed, live or saved', async () => {
    const asks = guard('beforeToolUse', (ctx) => ctx.ask('Really?'), { name: 'asks' })
    const agent = createAgent({ model: scriptedModel(script), use: [look, asks, approval('suspend')] })
    for (const saves of [false, true]) {
      const run = await agent.run('go')
      assert.ok(run.status === 'suspended')
      const from = saves ? (JSON.parse(JSON.stringify(run)) as SavedRun) : run
      assert.equal((await agent.resume(from, { answers: { [run.pending[0]!.id]: 'allow' } })).text, 'First.')
    }
  })

  test('is shared by a run, its subagents and its hooks, in the order of their calls', async () => {
    const spawn = { name: 'spawn_subagent', args: { subagent: 'child', prompt: 'work' } }
    const model = scriptedModel(['Asked by a hook.', { toolCalls: [spawn] }, 'Of the child.', 'Of the parent.'])
    const infers = hook('onUserInput', async (ctx) => (await ctx.infer({ prompt: 'Why?' }), ctx), { name: 'infers' })
    const child = createAgent({ model })
    const agents = { child: { description: 'Works.', agent: child } }
    const agent = createAgent({ model, use: [subagents({ agents }), infers] })
    for (const run of [await agent.run('go'), await agent.run('go')]) {
      assert.equal(run.text, 'Of the parent.')
      assert.match(JSON.stringify(run.state.messages), /Of the child\./)
    }
  })
})

test('every request is recorded in order, also failed ones', async () => {
  const model = scriptedModel([{ error: 'down' }, 'up'])
  const requests = [request, { ...request, system: 'second' }, { ...request, system: 'third' }]
  for (const each of requests) await model.infer(each, { signal }).catch(() => undefined)
  assert.deepEqual(model.requests, requests)
})

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import * as z from 'zod'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import { textMessage, textOf, type Message, type Part } from '../state/message.ts'
import { totalTokens } from '../state/usage.ts'
import type { CompactOptions } from '../hooks/compaction.ts'
import { guard, hook } from '../hooks/hook.ts'
import { scriptedModel, type ScriptedModel } from '../../models/scripted.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import { fire } from '../../testing/fire.ts'
import { recordEvents } from '../../testing/record-events.ts'
import type { Use } from '../agent/capability.ts'
import { cutAt } from './compact-conversation.ts'
import type { Run } from '../agent/run.ts'
import { tool } from '../agent/tool.ts'
import { replayedRun } from '../../sessions/replay/replayed-run.fixture.ts'

const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'a wall' })

/** Calls a tool that many times, then answers. */
function looker(steps: number): ScriptedModel {
  return scriptedModel([
    ...Array.from({ length: steps }, (_, i) => ({ text: `look ${i}`, toolCalls: [{ name: 'look' }] })),
    'done',
  ])
}

/** Compacts once, before the step with that number. */
function compactsAt(step: number, options: Partial<CompactOptions> = {}) {
  const all = { keep: 2, summarize: () => 'It looked.', ...options }
  return hook('beforeStep', (ctx) => (ctx.state.stepCount === step ? ctx.compact(all) : ctx), { name: 'short' })
}

function said(messages: Iterable<Message>): readonly string[] {
  return [...messages].map(({ role, content }) => `${role}: ${textOf(content) || content[0]?.type}`)
}

function loopNotes(run: Run): readonly (string | undefined)[] {
  return run.ledger.filter(({ mode }) => mode === 'loop').map(({ decision, message }) => `${decision}: ${message}`)
}

test('a summary replaces all but the latest messages, and a call stays with its result', async () => {
  const model = looker(3)
  const seen: string[] = []
  const summarize: CompactOptions['summarize'] = ({ messages }) => (seen.push(...said(messages)), 'It looked.')
  const agent = createAgent({ model, use: [look, compactsAt(2, { keep: 1, summarize })] })
  const { run, of } = await recordEvents(agent.stream('go'))
  assert.deepEqual(seen, ['user: go', 'assistant: look 0', 'tool: tool-result'])
  const shorter = [
    'user: Summary of the conversation up to here:\n\nIt looked.',
    'assistant: look 1',
    'tool: tool-result',
  ]
  assert.deepEqual(said(model.requests[2]!.messages), shorter)
  assert.deepEqual(said(run.state.messages).slice(0, 3), shorter)
  assert.deepEqual(
    of('compacted').map(({ before, after, by, summary, step }) => [step, before, after, by, summary]),
    [[2, 5, 3, 'short', 'It looked.']],
  )
  assert.deepEqual(loopNotes(run), ['compacted: 5 messages became 3, requested by "short"'])
})

test('the system prompt stays, and messages that stay are the same objects', async () => {
  const model = looker(3)
  const agent = createAgent({ model, instructions: 'Be brief.', use: [look, compactsAt(2)] })
  const run = await agent.run('go')
  assert.equal(model.requests[2]!.system, 'Be brief.')
  assert.equal(
    model.requests[2]!.messages.at(1),
    model.requests[1]!.messages.at(-1) && model.requests[2]!.messages.at(1),
  )
  assert.equal(run.status, 'completed')
})

test('pinned messages stay unchanged, a call with its result', async () => {
  const model = looker(4)
  const pin = ({ role, content }: Message): boolean => role === 'user' || textOf(content) === 'look 1'
  await createAgent({ model, use: [look, compactsAt(3, { pin })] }).run('go')
  assert.deepEqual(said(model.requests[3]!.messages), [
    'user: Summary of the conversation up to here:\n\nIt looked.',
    'user: go',
    'assistant: look 1',
    'tool: tool-result',
    'assistant: look 2',
    'tool: tool-result',
  ])
})

test('hooks may change the messages to summarize and the summary', async () => {
  const model = looker(3)
  const seen: string[] = []
  const summarize: CompactOptions['summarize'] = ({ messages }) => (seen.push(...said(messages)), 'S.')
  const use: readonly Use[] = [
    look,
    compactsAt(2, { summarize }),
    hook('beforeCompaction', (ctx) => ctx.withMessages(ctx.messages.filter(({ role }) => role === 'user'))),
    hook('afterCompaction', (ctx) => {
      const more = ctx.withMessages([...ctx.messages, textMessage('user', `(${ctx.summary})`)])
      return more.withState((state) => state.withMetadata('kept', ctx.summary))
    }),
  ]
  const run = await createAgent({ model, use }).run('go')
  assert.deepEqual([seen, said(model.requests[2]!.messages).at(-1)], [['user: go'], 'user: (S.)'])
  assert.equal(run.state.metadata['kept'], 'S.')
})

describe('the conversation stays unchanged, the run continues and the ledger reports it', () => {
  const broken = (): never => {
    throw new Error('out of order')
  }
  const cases: { readonly [why: string]: [readonly Use[], RegExp] } = {
    'when a guard says no before': [
      [compactsAt(2), guard('beforeCompaction', (ctx) => ctx.block('not now'), { name: 'no' })],
      /"no" blocked it: not now/,
    ],
    'when a guard says no after': [
      [compactsAt(2), guard('afterCompaction', (ctx) => ctx.block('too thin'), { name: 'no' })],
      /"no" blocked it: too thin/,
    ],
    'when a guard fails': [[compactsAt(2), guard('beforeCompaction', broken, { name: 'no' })], /out of order/],
    'when a hook fails': [[compactsAt(2), hook('afterCompaction', broken)], /out of order/],
    'when the summary fails': [[compactsAt(2, { summarize: broken })], /out of order/],
    'when the summary rejects': [[compactsAt(2, { summarize: async () => broken() })], /out of order/],
    'when the summary is empty': [[compactsAt(2, { summarize: () => '' })], /empty/],
    'when the summary is no text': [[compactsAt(2, { summarize: () => 7 as never })], /not a string/],
    'when there is nothing to sum up': [[compactsAt(2, { keep: 99 })], /nothing to summarize/],
    'when everything is pinned': [[compactsAt(2, { pin: () => true })], /nothing to summarize/],
    'when pin fails': [[compactsAt(2, { pin: broken })], /out of order/],
    'when hooks leave nothing': [
      [compactsAt(2), hook('beforeCompaction', (ctx) => ctx.withMessages([]))],
      /left nothing/,
    ],
  }
  for (const [why, [use, words]] of Object.entries(cases)) {
    test(why, async () => {
      const model = looker(3)
      const touch = hook(
        ['beforeCompaction', 'afterCompaction'],
        (ctx) => ctx.withState((s) => s.withMetadata('touched', true)),
        { priority: 9 },
      )
      const run = await createAgent({ model, use: [look, ...use, touch] }).run('go')
      assert.deepEqual(
        [run.status, model.requests[2]!.messages.length, run.state.metadata['touched']],
        ['completed', 5, undefined],
      )
      assert.match(loopNotes(run).join('\n'), words)
      assert.match(loopNotes(run).join('\n'), /^skipped: The conversation is not compacted: /)
    })
  }

  test('when the run is cancelled, which then ends as cancelled', async () => {
    const cancel = new AbortController()
    const summarize = (): Promise<string> => (setImmediate(() => cancel.abort()), new Promise(() => undefined))
    const model = looker(3)
    const run = await createAgent({ model, use: [look, compactsAt(2, { summarize })] }).run('go', {
      signal: cancel.signal,
    })
    assert.deepEqual([run.status, run.state.messages.length, model.requests.length], ['cancelled', 5, 2])
  })
})

describe('a summary by a model', () => {
  const byModel = (writer: ScriptedModel) =>
    compactsAt(2, {
      summarize: async ({ messages, infer }) => (await infer({ model: writer, messages, prompt: 'Sum up.' })).text,
    })

  test('is counted, and limits apply to it and stop the run', async () => {
    const writer = scriptedModel(['By a model.'], { modelId: 'writer' })
    const paid = await createAgent({ model: looker(3), use: [look, byModel(writer)] }).run('go')
    assert.equal(totalTokens(paid.state.usage), 5 * 15)
    const none = scriptedModel([])
    const run = await createAgent({ model: looker(3), use: [look, byModel(none), guards({ maxTokens: 30 })] }).run('go')
    assert.deepEqual([none.requests.length, run.final?.reason], [0, 'tokenLimit'])
  })

  test('is not requested again in a replay', async () => {
    const summarizer = scriptedModel(['S.'])
    await replayedRun(createAgent({ model: looker(3), use: [look, byModel(summarizer)] }), 'go')
    assert.equal(summarizer.requests.length, 1)
  })

  test('is stored in a session, and the next run continues from it', async () => {
    const store = memoryStore()
    const model = scriptedModel([
      ...Array.from({ length: 3 }, () => ({ toolCalls: [{ name: 'look' }] })),
      'done',
      'more',
    ])
    const agent = createAgent({ model, store, use: [look, byModel(scriptedModel(['S.']))] })
    const run = await agent.run('go', { session: 's' })
    assert.equal(JSON.stringify(await agent.session('s').state()), JSON.stringify(run.state))
    await agent.run('on', { session: 's' })
    assert.match(textOf(model.requests.at(-1)!.messages.at(0)!.content), /^Summary.*S\.$/s)
  })
})

test('only the first request for compaction is used', async () => {
  const model = looker(3)
  const second = hook('beforeStep', (ctx) => ctx.compact({ keep: 0, summarize: () => 'Second.' }), { priority: -1 })
  const run = await createAgent({ model, use: [look, compactsAt(0, { keep: 0 }), second] }).run('go')
  assert.deepEqual(loopNotes(run)[0], 'compacted: 1 messages became 1, requested by "short"')
})

test('a hook with an effect cannot request compaction, and fire reports a request', async () => {
  const asks = hook('beforeStep', (ctx) => ctx.compact({ keep: 3, summarize: () => 'S.' }), { name: 'e', effect: true })
  const run = await createAgent({ model: looker(0), use: [asks] }).run('go')
  assert.match(run.status === 'failed' ? run.error.message : '', /cannot compact/)
  assert.deepEqual(await fire(compactsAt(0), 'beforeStep'), { compact: { keep: 2 } })
})

// ── where the conversation is cut

const call = (id: string): Part => ({ type: 'tool-call', toolCallId: id, toolName: 'look', input: {} })
const result = (id: string): Part => ({ type: 'tool-result', toolCallId: id, toolName: 'look', output: 'x' })

test('no call is ever separated from its result, whichever messages stay', () => {
  // Conversations of steps with up to three calls, whose results may come after other messages.
  const step = fc.record({ calls: fc.integer({ min: 0, max: 3 }), between: fc.boolean(), reuse: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), fc.nat({ max: 40 }), (steps, keep) => {
      const messages = steps.flatMap(({ calls, between, reuse }, n): Message[] => {
        const ids = Array.from({ length: calls }, (_, i) => (reuse ? `same-${i}` : `${n}-${i}`))
        if (calls === 0) return [textMessage('user', `u${n}`), textMessage('assistant', `a${n}`)]
        return [
          { role: 'assistant', content: ids.map(call) },
          ...(between ? [textMessage('user', 'between')] : []),
          { role: 'tool', content: ids.map(result) },
        ]
      })
      const cut = cutAt(messages, keep)
      const idsIn = (part: readonly Message[], type: string): string[] =>
        part.flatMap(({ content }) =>
          content.flatMap((each) => (each.type === type && 'toolCallId' in each ? [each.toolCallId] : [])),
        )
      const kept = messages.slice(cut)
      assert.ok(kept.length >= Math.min(keep, messages.length))
      assert.deepEqual(idsIn(kept, 'tool-call').toSorted(), idsIn(kept, 'tool-result').toSorted())
    }),
    { numRuns: 500 },
  )
})

test('a result without a call does not prevent compaction', () => {
  const messages = [
    textMessage('user', 'a'),
    textMessage('user', 'b'),
    { role: 'tool', content: [result('lost')] } as Message,
  ]
  assert.equal(cutAt(messages, 1), 2)
})

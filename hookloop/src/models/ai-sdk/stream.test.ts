import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { tool } from '../../core/agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import type { AgentEvent } from '../../core/state/event.ts'
import type { AiSdkModel } from '../../core/state/inference.ts'
import { toJson } from '../../values/json.ts'
import { liveEffects } from '../../core/effects/effects.ts'
import { hook, observe } from '../../core/hooks/hook.ts'
import { fakeClock } from '../../testing/fake-clock.ts'
import { readArguments } from './arguments.ts'

// A model returns a reply at once, or the same reply in interleaved chunks. The result must be the same.

type Version = AiSdkModel['specificationVersion']
type Piece = { readonly type: string; readonly [key: string]: unknown }

/** A part of a reply, and its chunks when it is streamed. */
type Cut = { readonly part: Piece; readonly chunks: readonly Piece[] }

const metadata = fc.option(fc.record({ fake: fc.dictionary(fc.string(), fc.jsonValue()) }), { nil: undefined })

/** A text in chunks. Its provider metadata comes with the first, the last or any chunk. */
function written(type: 'text' | 'reasoning'): fc.Arbitrary<Cut> {
  return fc
    .record({ pieces: fc.array(fc.string({ maxLength: 8 }), { maxLength: 4 }), seal: metadata, sealAt: fc.nat(5) })
    .map(({ pieces, seal, sealAt }) => {
      const chunks = [
        { type: `${type}-start` },
        ...pieces.map((delta) => ({ type: `${type}-delta`, delta })),
        { type: `${type}-end` },
      ]
      const sealed = seal === undefined ? -1 : sealAt % chunks.length
      return {
        part: { type, text: pieces.join(''), ...(seal && { providerMetadata: seal }) },
        chunks: chunks.map((chunk, i) => (i === sealed ? { ...chunk, providerMetadata: seal } : chunk)),
      }
    })
}

const args = fc.oneof(
  fc.dictionary(fc.string(), fc.jsonValue()).map((value) => JSON.stringify(value)),
  fc.constantFrom('', '{"a":1,}', '```json\n{"a":1}\n```', '{"a":', '"{\\"a\\":1}"', '[1]', 'null'),
)

const called: fc.Arbitrary<Cut> = fc
  .record({
    input: args,
    toolName: fc.constantFrom('act_one', 'act', 'nope'),
    cuts: fc.array(fc.nat(20), { maxLength: 3 }),
    isStreamed: fc.boolean(),
    seal: metadata,
  })
  .map(({ input, toolName, cuts, isStreamed, seal }) => {
    const part = { type: 'tool-call', toolName, input, ...(seal && { providerMetadata: seal }) }
    const places = [0, ...cuts.toSorted((a, b) => a - b), Infinity]
    const deltas = places.slice(1).map((to, i) => ({ type: 'tool-input-delta', delta: input.slice(places[i], to) }))
    const before = [{ type: 'tool-input-start', toolName }, ...deltas, { type: 'tool-input-end' }]
    return { part, chunks: isStreamed ? [...before, part] : [part] }
  })

const whole: fc.Arbitrary<Cut> = fc
  .oneof(
    fc.uint8Array({ maxLength: 5 }).map((data) => ({ type: 'file', mediaType: 'image/png', data })),
    fc.base64String().map((data) => ({ type: 'file', mediaType: 'image/png', data })),
    fc.constant({ type: 'source', sourceType: 'url', id: 's', url: 'https://example.com' }),
    fc.constant({ type: 'tool-call', toolName: 'search', input: '{}', toolCallId: 'own', providerExecuted: true }),
    fc.constant({ type: 'tool-result', toolName: 'search', result: 1, toolCallId: 'own', providerExecuted: true }),
  )
  .map((part) => ({ part, chunks: [part] }))

const answers = fc.record({
  cuts: fc.array(fc.oneof(written('text'), written('reasoning'), called, whole), { maxLength: 6 }),
  /** Whether ids are reused; then only one text and one reasoning part are open at a time. */
  reusesIds: fc.boolean(),
  /** Which of the open parts continues. */
  turns: fc.infiniteStream(fc.nat(5)),
  reason: fc.constantFrom('stop', 'length', 'content-filter', 'tool-calls', 'error'),
  tokens: fc.nat(1_000),
  warnings: fc.array(fc.record({ type: fc.constant('other'), message: fc.string({ minLength: 1 }) }), { maxLength: 1 }),
  modelId: fc.option(fc.constant('fake-2'), { nil: undefined }),
})

type Answer = typeof answers extends fc.Arbitrary<infer A> ? A : never

for (const version of ['v4', 'v3', 'v2'] as const) {
  test(`${version}: a run and a stream end in the same state, and the same hooks fire in the same order`, async () => {
    await fc.assert(
      fc.asyncProperty(answers, async (answer) => {
        const [ran, streamed] = [await play(version, answer, 'run'), await play(version, answer, 'stream')]
        assert.deepEqual(streamed.left, ran.left)
        assert.deepEqual(streamed.responses, ran.responses)
      }),
      { numRuns: 100 },
    )
  })

  test(`${version}: the deltas of a streamed reply add up to its content`, async () => {
    await fc.assert(
      fc.asyncProperty(answers, async (answer) => {
        const { shown, run } = await play(version, answer, 'stream')
        fc.pre(run.state.messages.length > 1)
        const { content } = run.state.messages.at(1)!
        // Parts are interleaved, so characters are compared regardless of order.
        for (const type of ['text', 'reasoning'] as const) {
          const stored = content.flatMap((part) => (part.type === type ? [part.text] : [])).join('')
          assert.equal(letters(shown.get(type) ?? ''), letters(stored))
        }
        for (const part of content) {
          if (part.type !== 'tool-call') continue
          assert.deepEqual(toJson(readArguments(shown.get(part.toolCallId) ?? '').input), part.input)
        }
      }),
      { numRuns: 50 },
    )
  })
}

const letters = (text: string): string => text.split('').toSorted().join('')

/** One run with the reply and then a final answer, without anything random in it. */
async function play(version: Version, answer: Answer, mode: 'run' | 'stream') {
  const act = (name: string) =>
    tool({ name, description: 'Acts.', input: { type: 'object' }, execute: (input) => input as never })
  const responses: unknown[] = []
  const agent = createAgent({
    model: fakeModel(version, answer),
    use: [
      act('act.one'),
      act('act'),
      hook('afterInference', (ctx) => ctx, { name: 'sees', stream: 'after' }),
      hook('beforeToolUse', (ctx) => ctx, { name: 'passes' }),
      observe('*', (ctx) => void (ctx.trigger === 'afterInference' && responses.push(ctx.response))),
    ],
  })
  const effects = liveEffects({ clock: fakeClock(), id: 'run' })
  const events: AgentEvent[] = []
  const live = mode === 'stream' ? agent.stream('Go.', { effects }) : undefined
  for await (const event of live ?? []) events.push(event)
  const run = await (live?.run ?? agent.run('Go.', { effects }))
  const ledger = run.ledger.map(({ durationMs: _durationMs, ...entry }) => entry)
  return {
    run,
    responses,
    shown: shownIn(events),
    left: JSON.parse(JSON.stringify({ state: run.state, ledger })) as unknown,
  }
}

function shownIn(events: readonly AgentEvent[]): ReadonlyMap<string, string> {
  const shown = new Map<string, string>()
  const first = events.findIndex((event) => event.type === 'responded')
  for (const event of events.slice(0, first === -1 ? events.length : first)) {
    if (event.type !== 'text' && event.type !== 'reasoning' && event.type !== 'toolCallDelta') continue
    const what = event.type === 'toolCallDelta' ? event.callId : event.type
    shown.set(what, (shown.get(what) ?? '') + event.delta)
  }
  return shown
}

/** A model that returns the reply and then a final answer, in the form of versions 2 to 4 of the specification. */
function fakeModel(version: Version, answer: Answer): AiSdkModel {
  const cuts = answer.cuts.map((cut, i) =>
    numbered(cut, { version, id: `c${i}`, textId: answer.reusesIds ? 'same' : `t${i}` }),
  )
  const last: Cut = { part: { type: 'text', text: 'Done.' }, chunks: [{ type: 'text-delta', id: '0', delta: 'Done.' }] }
  let asked = 0
  const next = () => (asked++ === 0 ? { cuts, reason: answer.reason } : { cuts: [last], reason: 'stop' })
  const ending = (reason: string) => ({
    finishReason: inWords(version, reason),
    usage: usageIn(version, answer.tokens),
  })
  const { warnings, modelId } = answer
  return {
    specificationVersion: version,
    provider: 'fake.chat',
    modelId: 'fake-1',
    doGenerate() {
      const { cuts, reason } = next()
      return Promise.resolve({
        content: cuts.map(({ part }) => part),
        warnings,
        ...(modelId !== undefined && { response: { modelId } }),
        ...ending(reason),
      })
    },
    doStream() {
      const { cuts, reason } = next()
      const chunks = [
        { type: 'stream-start', warnings },
        ...(modelId === undefined ? [] : [{ type: 'response-metadata', modelId }]),
        ...interleaved(cuts, answer),
        { type: 'finish', ...ending(reason) },
      ]
      return Promise.resolve({ stream: ReadableStream.from(chunks) })
    },
  }
}

/** A part with its id. A text and a reasoning part may have the same id. */
function numbered(
  { part, chunks }: Cut,
  { version, id, textId }: { version: Version; id: string; textId: string },
): Cut {
  const isCall = part.type === 'tool-call'
  const named = (piece: Piece): Piece => {
    if (piece.type === 'tool-call') return { toolCallId: id, ...piece }
    if (piece.type === 'file' && version === 'v4') return { ...piece, data: { type: 'data', data: piece['data'] } }
    return isCall || /-(start|delta|end)$/.test(piece.type) ? { ...piece, id: isCall ? id : textId } : piece
  }
  return { part: named(part), chunks: chunks.map(named) }
}

/** The chunks of parts that start one after the other and are interleaved. */
function interleaved(cuts: readonly Cut[], { turns, reusesIds }: Answer): readonly Piece[] {
  const chunks: Piece[] = []
  let open: { readonly type: string; readonly rest: Piece[] }[] = []
  const finish = (type: string): void => {
    chunks.push(...open.filter((each) => each.type === type).flatMap(({ rest }) => rest.splice(0)))
    open = open.filter(({ rest }) => rest.length > 0)
  }
  for (const { part, chunks: own } of cuts) {
    if (reusesIds && /^(text|reasoning)$/.test(part.type)) finish(part.type)
    chunks.push(own[0]!)
    open = [...open, { type: part.type, rest: own.slice(1) }].filter(({ rest }) => rest.length > 0)
    for (let n = turns.next().value as number; n > 0 && open.length > 0; n--) {
      chunks.push(open[(turns.next().value as number) % open.length]!.rest.shift()!)
      open = open.filter(({ rest }) => rest.length > 0)
    }
  }
  for (const { rest } of open) chunks.push(...rest)
  return chunks
}

function inWords(version: Version, reason: string): unknown {
  return version === 'v2' ? reason : { unified: reason, raw: reason }
}

function usageIn(version: Version, tokens: number): unknown {
  if (version === 'v2') return { inputTokens: tokens, outputTokens: 2, cachedInputTokens: 1, reasoningTokens: 1 }
  return { inputTokens: { total: tokens, cacheRead: 1 }, outputTokens: { total: 2, reasoning: 1 } }
}

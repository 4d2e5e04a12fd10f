import assert from 'node:assert/strict'
import { setImmediate as soon, setTimeout as delay } from 'node:timers/promises'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { retry } from '../../capabilities/retry.ts'
import { createAgent } from '../../create-agent.ts'
import type { AgentEvent } from '../state/event.ts'
import type { LanguageModel, ModelReply } from '../state/inference.ts'
import { liveEffects, type EffectsOptions } from '../effects/effects.ts'
import { AgentError } from '../../errors.ts'
import { guard, hook, type StreamPolicy } from '../hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { recordEvents } from '../../testing/record-events.ts'
import type { Use } from '../agent/capability.ts'
import type { Run } from '../agent/run.ts'
import { replayedRun } from '../../sessions/replay/replayed-run.fixture.ts'

const window = { stream: 'window' } as const

type Piece = { readonly type: 'text' | 'reasoning'; readonly delta: string }
type Answer = { readonly pieces: readonly Piece[]; readonly pause?: number; readonly end?: () => void | Promise<void> }

/** A model that streams exactly these chunks, and yields to the event loop after every few of them. */
function writing({ pieces, pause = 3, end }: Answer): LanguageModel {
  return {
    provider: 'test',
    modelId: 'writer',
    async infer(_request, { onDelta }): Promise<ModelReply> {
      for (const [i, piece] of pieces.entries()) {
        onDelta?.(piece)
        if (i % pause === 0) await soon()
      }
      await end?.()
      return { content: joined(pieces), finishReason: 'stop' }
    },
  }
}

function joined(pieces: readonly Piece[]): ModelReply['content'] {
  const parts: { type: Piece['type']; text: string }[] = []
  for (const { type, delta } of pieces) {
    if (parts.at(-1)?.type === type) parts.at(-1)!.text += delta
    else parts.push({ type, text: delta })
  }
  return parts
}

function cut(text: string, sizes: readonly number[], type: Piece['type'] = 'text'): readonly Piece[] {
  const pieces: Piece[] = []
  for (let at = 0, i = 0; at < text.length; at += sizes[i++ % sizes.length]!) {
    pieces.push({ type, delta: text.slice(at, at + sizes[i % sizes.length]!) })
  }
  return pieces
}

/** The streamed text, once more from the beginning after each retraction. */
function shown(events: readonly AgentEvent[]): readonly string[] {
  const versions = ['']
  for (const event of events) {
    if (event.type === 'retracted') versions.push('')
    if (event.type === 'text' || event.type === 'reasoning') versions[versions.length - 1] += event.delta
  }
  return versions
}

async function watch(model: LanguageModel, ...use: readonly Use[]) {
  const { events, run } = await recordEvents(createAgent({ model, use }).stream('go'))
  return { events, run, versions: shown(events) }
}

/** Effects that report their events at once. */
function noting(log: unknown[]): EffectsOptions {
  return { ...liveEffects(), emit: (event) => void log.push(event) }
}

function whole({ state, status }: Run): unknown {
  return [status, state.messages, state.execution?.steps.map(({ text, finishReason }) => [text, finishReason])]
}

const words = (count: number): string => Array.from({ length: count }, (_, i) => `word${i}`).join(' ')

// ── text that a guard withholds is not streamed

/** Recognized only when it is complete. */
const SECRET = /<[a-z]{18,98}>/
const paces = { 'at once': () => undefined, soon: () => Promise.resolve(), later: () => soon() }
const filler = fc.string({ unit: fc.constantFrom('a', 'b', 'z', ' ', '\n', '.'), maxLength: 900 })
const sizes = fc.array(fc.integer({ min: 1, max: 150 }), { minLength: 1, maxLength: 9 })
const body = fc.string({ unit: fc.constantFrom('a', 'b', 'z'), minLength: 18, maxLength: 98 })

for (const [pace, answer] of Object.entries(paces)) {
  const secrets = guard(
    'afterInference',
    (ctx) => {
      const text = ctx.response.content.map((part) => ('text' in part ? part.text : '')).join('')
      const judged = SECRET.test(text) ? ctx.block('A secret.') : ctx
      const waiting = answer()
      return waiting === undefined ? judged : waiting.then(() => judged)
    },
    { ...window, name: 'secrets' },
  )

  suite(`with a guard that decides ${pace}`, () => {
    test('no character of a secret is ever streamed, however the answer is split into chunks', async () => {
      await fc.assert(
        fc.asyncProperty(filler, body, filler, sizes, fc.integer({ min: 1, max: 9 }), async (a, b, c, cuts, pause) => {
          const { versions, run } = await watch(writing({ pieces: cut(`${a}<${b}>${c}`, cuts), pause }), secrets)
          const note = versions.at(-1)!
          assert.deepEqual([run.status, note], ['stopped', '[withheld by "secrets": A secret.]'])
          for (const version of versions.slice(0, -1)) assert.ok(a.startsWith(version), version.slice(a.length))
        }),
        { numRuns: 120 },
      )
    })

    test('no character of a secret in the reasoning is ever streamed', async () => {
      await fc.assert(
        fc.asyncProperty(filler, body, filler, sizes, async (a, b, c, cuts) => {
          const pieces = [...cut(`${a}<${b}>`, cuts, 'reasoning'), ...cut(c, cuts)]
          const { versions } = await watch(writing({ pieces }), secrets)
          for (const version of versions.slice(0, -1)) assert.ok(a.startsWith(version), version.slice(a.length))
        }),
        { numRuns: 40 },
      )
    })

    test('an answer without a secret is streamed once, complete and unchanged', async () => {
      await fc.assert(
        fc.asyncProperty(filler, filler, sizes, fc.integer({ min: 1, max: 9 }), async (a, b, cuts, pause) => {
          const pieces = [...cut(a, cuts, 'reasoning'), ...cut(b, cuts)]
          const { versions, run } = await watch(writing({ pieces, pause }), secrets)
          assert.deepEqual([versions, run.text], [[`${a}${b}`], b])
        }),
        { numRuns: 60 },
      )
    })

    test('the run ends as it does without streaming', async () => {
      await fc.assert(
        fc.asyncProperty(filler, fc.option(body), filler, sizes, async (a, b, c, cuts) => {
          const model = writing({ pieces: cut(`${a}${b === null ? '' : `<${b}>`}${c}`, cuts) })
          const [watched, unseen] = [
            await watch(model, secrets),
            await createAgent({ model, use: [secrets] }).run('go'),
          ]
          assert.deepEqual(whole(watched.run), whole(unseen))
        }),
        { numRuns: 30 },
      )
    })
  })
}

test('text that a hook appends does not release the beginning of a secret', async () => {
  const secret = `<${'s'.repeat(60)}>`
  const add = hook(
    'afterInference',
    (ctx) => ctx.withResponse({ text: `${ctx.response.text}${'-'.repeat(300)}` }),
    window,
  )
  const no = guard('afterInference', (ctx) => (SECRET.test(ctx.response.text) ? ctx.block('No.') : ctx), window)
  const pieces = cut(`${'a'.repeat(400)}${secret}${'b'.repeat(300)}`, [450])
  const { versions } = await watch(writing({ pieces, pause: 1 }), add, no)
  for (const version of versions) assert.doesNotMatch(version, /<s/)
})

// ── what is streamed, and when

const policies: readonly (readonly [readonly StreamPolicy[], 'nothing' | 'some' | 'all'])[] = [
  [[], 'all'],
  [['after'], 'all'],
  [['window'], 'some'],
  [['window', 'after'], 'some'],
  [['after', 'window'], 'some'],
  [['hold'], 'nothing'],
  [['window', 'hold'], 'nothing'],
  [['hold', 'after', 'window'], 'nothing'],
]
for (const [each, expected] of policies) {
  test(`with ${each.join(' and ') || 'no hook'} at afterInference, ${expected} is streamed`, async () => {
    const log: AgentEvent[] = []
    const text = words(300)
    let early = ''
    const end = () => soon().then(() => void (early = shown(log)[0]!))
    const use = each.map((stream) => guard('afterInference', (ctx) => ctx, { stream }))
    const agent = createAgent({ model: writing({ pieces: cut(text, [10]), end }), use })
    const run = await agent.stream('go', { effects: noting(log) }).run
    const how = early === '' ? 'nothing' : early === text ? 'all' : 'some'
    assert.deepEqual([how, text.startsWith(early), shown(log), run.text], [expected, true, [text], text])
    if (expected === 'some') assert.ok(early.length > text.length / 2 && early.length <= text.length - 200)
  })
}

test('a call is sent when it is executed, not while it is streamed', async () => {
  const log: (AgentEvent | { type: 'judged' })[] = []
  const model: LanguageModel = {
    provider: 'test',
    modelId: 'caller',
    async infer({ messages }, { onDelta }) {
      if (messages.length > 1) return { content: [{ type: 'text', text: 'Done.' }], finishReason: 'stop' }
      const call = { callId: 'c1', toolName: 'work' }
      for (const delta of ['{"a":', '1}']) {
        onDelta?.({ type: 'text', delta: words(60) })
        onDelta?.({ type: 'toolCallDelta', ...call, delta })
        await soon()
      }
      const calls = [{ type: 'tool-call', toolCallId: 'c1', toolName: 'work', input: { a: 1 } }] as const
      return { content: [{ type: 'text', text: words(60).repeat(2) }, ...calls], finishReason: 'tool-calls' }
    },
  }
  const look = guard(
    'afterInference',
    (ctx) => {
      if (ctx.response.finishReason === 'tool-calls') log.push({ type: 'judged' })
      return ctx
    },
    window,
  )
  await createAgent({ model, use: [look] }).stream('go', { effects: noting(log) }).run
  const order = log.filter(({ type }) => ['judged', 'toolCallDelta', 'toolStarted', 'toolFinished'].includes(type))
  assert.deepEqual(order.map((event) => (event.type === 'toolCallDelta' ? event.delta : event.type)).slice(0, 2), [
    'judged',
    '{"a":1}',
  ])
})

// ── hooks that transform

const replacements = { 'as long': '*'.repeat(20), longer: '[taken out by a rule]', shorter: '[gone]', nothing: '' }
for (const [size, replacement] of Object.entries(replacements)) {
  test(`a hook that redacts secrets applies to the stream: ${size} in their place`, async () => {
    let looks = 0
    const redact = hook(
      'afterInference',
      async (ctx) => {
        assert.ok(++looks < 1_000, 'it judges forever') // and ends the process
        await soon()
        return ctx.withResponse({ text: ctx.response.text.replaceAll(/<[a-z]{18}>/g, replacement) })
      },
      window,
    )
    const text = Array.from({ length: 40 }, (_, i) => `${words(i % 7)} <${'s'.repeat(18)}> `).join('')
    const pieces = cut(text, [7, 31, 3])
    const { versions, run } = await watch(writing({ pieces, pause: 1 }), redact)
    const clean = text.replaceAll(/<[a-z]{18}>/g, replacement)
    await delay(20) // if it continues, a hook judges that should not
    assert.ok(looks < text.length / 50, `${looks} looks at ${text.length} characters`)
    assert.deepEqual([versions, run.text], [[clean], clean])
  })
}

test('a hook that rewrites everything each time is never streamed as a mixture of its results', async () => {
  const made: string[] = []
  const count = hook(
    'afterInference',
    (ctx) => {
      made.push(`${ctx.response.text.length} characters: ${ctx.response.text}`)
      return ctx.withResponse({ text: made.at(-1)! })
    },
    window,
  )
  const { versions, run } = await watch(writing({ pieces: cut(words(200), [25]), pause: 1 }), count)
  assert.deepEqual([versions.length, versions.at(-1), run.text], [2, made.at(-1), made.at(-1)])
  assert.ok(made.some((text) => text.startsWith(versions[0]!)))
})

// ── guards that fail, are slow, or decide differently later

test('after a guard failed on a part of the answer, nothing is streamed until it has judged the complete answer', async () => {
  const text = words(300)
  let failed = false
  const moody = guard(
    'afterInference',
    (ctx) => (!failed && ctx.response.text.length > 900 ? ((failed = true), assert.fail('once')) : ctx),
    window,
  )
  const { versions, events } = await watch(writing({ pieces: cut(text, [10]) }), moody)
  const last = events.flatMap((event) => (event.type === 'text' ? [event.delta.length] : [])).at(-1)!
  assert.deepEqual(versions, [text])
  assert.ok(last > text.length - 900 && last < text.length, `${last} of ${text.length}`)
})

test('a guard that fails on the complete answer withholds it, and the streamed text is retracted', async () => {
  const broken = guard('afterInference', (ctx) => (ctx.response.finishReason === 'stop' ? assert.fail('no') : ctx), {
    ...window,
    name: 'broken',
  })
  const { versions, run } = await watch(writing({ pieces: cut(words(300), [10]) }), broken)
  assert.deepEqual([run.status, versions.length], ['stopped', 2])
  assert.match(versions[1]!, /^\[withheld by "broken"/)
})

test('a guard that still judges when the answer ends causes no repeated and no late text', async () => {
  const slow = guard('afterInference', (ctx) => delay(ctx.response.finishReason === 'other' ? 30 : 0, ctx), window)
  const text = words(300)
  const model = scriptedModel([
    { text, toolCalls: [{ name: 'nothing' }] },
    { text: 'Done.', delayMs: 60 },
  ])
  assert.deepEqual((await watch(model, slow)).versions, [`${text}Done.`])
})

test('after a retry in the middle, the new answer is streamed from its beginning', async () => {
  const [first, second] = [words(200), words(150).toUpperCase()]
  const error = new AgentError('MODEL_UNREACHABLE', 'cut')
  const model = scriptedModel([
    { text: first, delayMs: 1, error },
    { text: second, delayMs: 1 },
  ])
  const look = guard('afterInference', async (ctx) => ctx, window)
  const { versions, run } = await watch(model, look, retry({ backoffMs: 0 }))
  assert.deepEqual([versions.length, versions[1], run.text], [2, second, second])
  assert.ok(versions[0]!.length > 100 && first.startsWith(versions[0]!))
})

test('a cancel in the middle ends the stream and the model call', async () => {
  const model = scriptedModel([{ text: words(5_000), delayMs: 1 }])
  const look = guard('afterInference', async (ctx) => ctx, window)
  const live = createAgent({ model, use: [look] }).stream('go', { signal: AbortSignal.timeout(120) })
  const { run, of } = await recordEvents(live)
  assert.deepEqual([run.status, of('finished').length], ['cancelled', 1])
})

// ── cost, ledger and replay

test('the cost of judging a stream is linear in its length', async () => {
  let [looks, characters] = [0, 0]
  const look = guard('afterInference', (ctx) => ((looks++, (characters += ctx.response.text.length)), ctx), window)
  const text = 'x'.repeat(200_000)
  await watch(writing({ pieces: cut(text, [20]), pause: 1 }), look)
  assert.ok(looks < 200 && characters < 30 * text.length, `${looks} looks at ${characters} characters`)
})

test('checks of partial answers are not in the ledger', async () => {
  let looks = 0
  const look = guard('afterInference', (ctx) => (looks++, ctx.spend({ costUsd: 1 }).stop('Seen.')), {
    ...window,
    name: 'look',
  })
  const { run } = await watch(writing({ pieces: cut(words(300), [10]) }), look)
  assert.ok(looks > 1)
  assert.equal(run.ledger.filter((entry) => entry.hook === 'look').length, 1)
})

/** A guard with a short timeout that times out on request. */
function late(isLate: (finishReason: string) => boolean): Use {
  const never = new Promise<never>(() => undefined)
  const judge = guard('afterInference', async (ctx) => (isLate(ctx.response.finishReason) ? never : ctx), {
    ...window,
    name: 'late',
    timeoutMs: 20,
  })
  return judge
}

for (const when of ['other', 'stop']) {
  test(`a guard that timed out ${when === 'stop' ? 'at the end' : 'on the way'} does so in a replay`, async () => {
    const model = scriptedModel([{ text: words(200), delayMs: 1 }])
    const run = await replayedRun(createAgent({ model, use: [late((reason) => reason === when)] }), 'go', {
      deltas: true,
    })
    assert.equal(run.status, when === 'stop' ? 'stopped' : 'completed')
  })
}

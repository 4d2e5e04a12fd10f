import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as soon } from 'node:timers/promises'
import { approval } from '../../capabilities/approval.ts'
import { errorPolicy } from '../../capabilities/error-policy.ts'
import { createAgent } from '../../create-agent.ts'
import { toResponse, type InferenceResponse, type LanguageModel } from '../state/inference.ts'
import { hook } from '../hooks/hook.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import { recordEvents, type EventRecorder } from '../../testing/record-events.ts'
import type { Run } from '../agent/run.ts'
import { tool, type Tool } from '../agent/tool.ts'

type Make = Partial<Parameters<typeof tool>[0]>

const make = (how: Make = {}): Tool =>
  tool({ name: 'work', description: 'Works.', input: { type: 'object' }, execute: () => 'worked', ...how })
const work: ScriptedTurn = { toolCalls: [{ name: 'work' }] }
const saying = (text: string): InferenceResponse =>
  toResponse({ content: [{ type: 'text', text }], finishReason: 'stop' })

const twice = hook('aroundInference', async (_ctx, next) => {
  try {
    return await next()
  } catch {
    return next()
  }
})

/** The text that a reader displays after each event that changes it. */
function screens({ events }: EventRecorder<string>): readonly string[] {
  const seen = ['']
  for (const event of events) {
    if (event.type === 'text') seen.push(seen.at(-1)! + event.delta)
    if (event.type === 'retracted') seen.push('')
  }
  return seen
}

test('a streamed answer that an around hook replaces is retracted, and its replacement is sent', async () => {
  const redact = hook('aroundInference', async (_ctx, next) => (await next(), saying('[redacted]')))
  const agent = createAgent({ model: scriptedModel([{ chunks: ['my secret ', 'is 42'] }]), use: [redact] })
  const seen = screens(await recordEvents(agent.stream('hi')))
  assert.deepEqual(seen, ['', 'my secret ', 'my secret is 42', '', '[redacted]'])
})

test('a partial answer that failed is retracted before its replacement is sent', async () => {
  const cached = hook('aroundInference', (_ctx, next) => next().catch(() => saying('cached')))
  const agent = createAgent({ model: scriptedModel([{ chunks: ['half an '], error: 'lost' }]), use: [cached] })
  assert.deepEqual(screens(await recordEvents(agent.stream('hi'))), ['', 'half an ', '', 'cached'])
})

/** A model whose calls reply with three chunks each, all "a" or all "b", when the test says so. */
function steered(): LanguageModel & { send(text: string): void; end(text: string): void } {
  const calls = new Map<string, { send: () => void; end: () => void }>()
  return {
    provider: 'test',
    modelId: 'steered',
    send: (text) => calls.get(text)!.send(),
    end: (text) => calls.get(text)!.end(),
    infer(_request, { onDelta }) {
      const text = calls.size === 0 ? 'a' : 'b'
      const { promise, resolve } = Promise.withResolvers<InferenceResponse>()
      calls.set(text, {
        send: () => onDelta?.({ type: 'text', delta: text }),
        end: () => resolve(saying(text.repeat(3))),
      })
      return promise
    },
  }
}

for (const [winner, won, lost] of [
  ['first', 'a', 'b'],
  ['second', 'b', 'a'],
] as const) {
  test(`of two concurrent attempts only one is streamed at a time, and the ${winner} one when it wins`, async () => {
    for (const order of [
      [won, won, lost, won],
      [lost, won, won, lost, won],
    ]) {
      const model = steered()
      const race = hook('aroundInference', async (_ctx, next) => {
        const attempts = [next(), next()]
        await soon()
        for (const text of order) {
          model.send(text)
          await soon()
        }
        model.end(won)
        return Promise.race(attempts)
      })
      const later = hook('afterExecution', async (ctx) => {
        model.send(lost)
        await soon()
        return ctx
      })
      const seen = screens(await recordEvents(createAgent({ model, use: [race, later] }).stream('hi')))
      assert.ok(
        seen.every((text) => /^(a*|b*)$/.test(text)),
        seen.join(),
      )
      assert.equal(seen.at(-1), won.repeat(3))
    }
  })
}

/** A model whose first call can send text after it has replied or failed. It does so when the second call starts. */
function chatty(script: readonly ScriptedTurn[]): LanguageModel & { sendLate(): void } {
  const model = scriptedModel(script)
  let sendLate = (): void => undefined
  return {
    ...model,
    sendLate: () => sendLate(),
    infer(request, call) {
      if (model.requests.length === 0) sendLate = () => call.onDelta?.({ type: 'text', delta: 'LATE' })
      else sendLate()
      return model.infer(request, call)
    },
  }
}

test('text that a model sends after its reply is ignored', async () => {
  const model = chatty(['ok'])
  const late = hook('afterExecution', (ctx) => (model.sendLate(), ctx))
  const seen = screens(await recordEvents(createAgent({ model, use: [late] }).stream('hi')))
  assert.deepEqual(seen, ['', 'ok'])
})

test('text that a failed attempt sends later is not part of the next answer', async () => {
  const script = [{ error: 'lost' }, { chunks: ['all ', 'well'] }]
  const wrapped = createAgent({ model: chatty(script), use: [twice] })
  const retried = createAgent({ model: chatty(script), use: [errorPolicy({ backoffMs: 0 })] })
  for (const agent of [wrapped, retried]) {
    const recorded = await recordEvents(agent.stream('hi'))
    assert.deepEqual([screens(recorded).at(-1), recorded.run.text], ['all well', 'all well'])
  }
})

test('no event comes after finished, however late a tool reports its progress', async () => {
  let report = (): void => undefined
  const late = make({ execute: (_args, run) => void (report = () => run.progress('late')) })
  const stream = createAgent({ model: scriptedModel([work, 'ok']), use: [late] }).stream('hi')
  await stream.run
  report()
  const types = (await recordEvents(stream)).types
  assert.deepEqual([types.at(-1), types.includes('toolProgress')], ['finished', false])
})

test('a resumed run streams as well: the answers first, then resumed, finished last', async () => {
  const agent = createAgent({
    model: scriptedModel([work, 'all done']),
    use: [make({ ask: true }), approval('suspend')],
  })
  const run = await agent.run('hi')
  const answers = { [pendingOf(run)[0]!]: 'allow' as const }
  const recorded = await recordEvents(agent.resumeStream(run, { answers }))
  const { types } = recorded
  assert.deepEqual([types[0], types[1], types.at(-1)], ['answered', 'resumed', 'finished'])
  assert.equal(screens(recorded).at(-1), 'all done')
})

const pendingOf = (run: Run): readonly string[] =>
  run.status === 'suspended' ? run.pending.map(({ id }) => id) : assert.fail(run.status)

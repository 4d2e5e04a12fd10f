import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { suite, test } from 'node:test'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import type { AgentState } from '../state/agent-state.ts'
import type { AgentEvent } from '../state/event.ts'
import { textOf } from '../state/message.ts'
import { guard, hook, observe, type Hook } from '../hooks/hook.ts'
import { scriptedModel, type Script, type ScriptedTurn } from '../../models/scripted.ts'
import { recordEvents } from '../../testing/record-events.ts'
import type { Agent } from './agent.ts'
import type { Use } from './capability.ts'
import { tool } from './tool.ts'

const callWork: ScriptedTurn = { toolCalls: [{ name: 'work' }] }
const work = tool({
  name: 'work',
  description: 'Works.',
  input: { type: 'object' },
  execute: (_args, run) => (run.progress({ done: 0.5 }), 'worked'),
})

function agentOf(script: Script, ...use: readonly Use[]): Agent {
  return createAgent({ model: scriptedModel(script), use: [work, ...use] })
}

/** Only the events with text. */
function shown(events: readonly AgentEvent[]): readonly string[] {
  return events.flatMap((event) => {
    if (event.type === 'text' || event.type === 'reasoning') return [event.delta]
    return event.type === 'retracted' ? [`(${event.why})`] : []
  })
}

/** Fails instead of hanging. */
async function soon<T>(work_: Promise<T>): Promise<T> {
  const timeout = new AbortController()
  const late = delay(30_000, undefined, { signal: timeout.signal }).then(() => assert.fail('it hangs'))
  late.catch(() => undefined)
  try {
    return await Promise.race([work_, late])
  } finally {
    timeout.abort()
  }
}

async function collect<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

// ── events

test('a stream reports the complete run, in order', async () => {
  const { types } = await recordEvents(agentOf([{ ...callWork, text: 'Let me see.' }, 'Done.']).stream('go'))
  const told = types.filter((type) => type !== 'hook')
  const step = ['stepStarted', 'inferenceStarted', 'text', 'responded', 'stepFinished']
  const tools = ['toolStarted', 'toolProgress', 'toolFinished']
  const words = ['text', 'text', 'text', 'toolCallDelta']
  assert.deepEqual(told, [
    'input',
    'started',
    ...step.toSpliced(4, 0, ...tools).toSpliced(2, 1, ...words),
    ...step,
    'finished',
  ])
})

test('events have the data of their subject', async () => {
  const recorded = await recordEvents(agentOf([callWork, 'Done.']).stream('go'))
  const [finished] = recorded.of('finished')
  const [tooled] = recorded.of('toolFinished')
  assert.deepEqual(
    recorded.of('toolProgress').map((event) => event.update),
    [{ done: 0.5 }],
  )
  assert.deepEqual([tooled?.call.name, tooled?.execution.output], ['work', 'worked'])
  assert.deepEqual(
    recorded.of('stepFinished').map((event) => [event.step, event.outcome.shouldContinue]),
    [
      [0, true],
      [1, false],
    ],
  )
  assert.deepEqual(
    recorded
      .of('stepFinished')
      .map(({ step, kind, finishReason, usage, toolCalls }) => [step, kind, finishReason, usage, toolCalls]),
    recorded.run.state
      .execution!.steps.slice()
      .map(({ index, type, finishReason, usage, toolCalls }) => [index, type, finishReason, usage, toolCalls.length]),
  )
  assert.deepEqual(finished?.record, recorded.run.status === 'completed' && recorded.run.final)
})

test('hook events are the entries of the ledger: hooks that decided, changed, warned or failed', async () => {
  const vote = guard('afterStep', (ctx) => ctx.allowContinuation('fine'), { name: 'vote' })
  const changes = hook('beforeStep', (ctx) => ctx.withState((state) => state.withMessage('Hurry.')), {
    name: 'changes',
  })
  const fails = observe('beforeToolUse', () => assert.fail('broken'), { name: 'fails' })
  const silent = guard('beforeStep', (ctx) => ctx, { name: 'silent' })
  const { of, run } = await recordEvents(agentOf([callWork, 'Done.'], vote, changes, fails, silent).stream('go'))
  const entries = of('hook').map(({ entry }) => entry)
  assert.deepEqual(entries, run.ledger)
  const names = ['changes', 'fails', 'vote', 'changes', 'vote', 'completion']
  assert.equal(entries.map((entry) => entry.hook).join(), names.join())
})

test('the stream of a run that needs approval ends with suspended and the pending approvals', async () => {
  const ask = guard('beforeToolUse', (ctx) => ctx.ask('sure?'))
  const recorded = await recordEvents(agentOf([callWork], ask, approval('suspend')).stream('go'))
  const [asked] = recorded.of('asked')
  const [suspended] = recorded.of('suspended')
  assert.deepEqual([recorded.types.at(-1), asked?.approval.message], ['suspended', 'sure?'])
  assert.deepEqual(suspended?.pending, [asked?.approval])
})

test('a stream and a run of the same script have the same result', async () => {
  const script: Script = [{ ...callWork, text: 'Let me see.' }, 'All is well.']
  const [streamed, plain] = await Promise.all([agentOf(script).stream('go').run, agentOf(script).run('go')])
  assert.deepEqual([streamed.text, [...streamed.state.messages]], [plain.text, [...plain.state.messages]])
})

// ── streamed text

const answer: ScriptedTurn = { chunks: ['All ', 'is ', 'well.'] }
const pass = (stream?: 'hold' | 'after'): Hook =>
  hook('afterInference', (ctx) => ctx, { name: `pass ${stream ?? ''}`, ...(stream && { stream }) })
const change = hook('afterInference', (ctx) => ctx.withResponse({ text: 'Redacted.' }), {
  name: 'change',
  stream: 'after',
})
const withhold = guard('afterInference', (ctx) => ctx.block('secret'), { name: 'withhold', stream: 'after' })

const streams: readonly (readonly [string, readonly Use[], readonly string[]])[] = [
  ['text is streamed at once when no hook judges answers', [], ['All ', 'is ', 'well.']],
  ['a hook on afterInference holds the text until it has passed it', [pass()], ['All is well.']],
  ["so does one that says stream: 'hold'", [pass('hold')], ['All is well.']],
  ['so does a guard', [guard('afterInference', (ctx) => ctx)], ['All is well.']],
  ["stream: 'after' lets the text be seen before the hook", [pass('after')], ['All ', 'is ', 'well.']],
  ['of several hooks the strictest decides', [pass('after'), pass('hold')], ['All is well.']],
  [
    'text that a hook changes afterwards is retracted',
    [change],
    ['All ', 'is ', 'well.', '(a hook changed or withheld the answer)', 'Redacted.'],
  ],
  [
    'text that a guard withholds afterwards is retracted',
    [withhold],
    ['All ', 'is ', 'well.', '(a hook changed or withheld the answer)', '[withheld by "withhold": secret]'],
  ],
]
for (const [title, use, expected] of streams) {
  test(title, async () => {
    const { events } = await recordEvents(agentOf([answer, answer], ...use).stream('go'))
    assert.deepEqual(shown(events), expected)
  })
}

test('text that is withheld is never streamed', async () => {
  const hold = guard('afterInference', (ctx) => ctx.block('no'), { name: 'hold' })
  const { events } = await recordEvents(agentOf([answer, answer], hold).stream('go'))
  assert.deepEqual(shown(events), ['[withheld by "hold": no]'])
})

test('text is held back while a guard judges it, and comes before the step is finished', async () => {
  const seen: string[] = []
  const slow = guard('afterInference', async (ctx) => (await delay(5), seen.push('judged'), ctx))
  for await (const event of agentOf([answer], slow).stream('go')) {
    if (event.type === 'text' || event.type === 'responded') seen.push(event.type)
  }
  assert.deepEqual(seen, ['judged', 'text', 'responded'])
})

test('the text of a failed attempt is retracted before the next attempt', async () => {
  const again = hook('aroundInference', async (_ctx, next) => {
    try {
      return await next()
    } catch {
      return next()
    }
  })
  const script: Script = [{ chunks: ['All '], error: 'lost' }, answer]
  const { events, run } = await recordEvents(agentOf(script, again).stream('go'))
  assert.deepEqual(shown(events), ['All ', '(another attempt starts)', 'All ', 'is ', 'well.'])
  assert.equal(run.text, 'All is well.')
})

test('the text of a failed call is retracted, whether onError retries or not', async () => {
  const retry = hook('onError', (ctx) => ctx.retry())
  const script: Script = [{ chunks: ['All '], error: 'lost' }, answer]
  const retried = await recordEvents(agentOf(script, retry).stream('go'))
  const failed = await recordEvents(agentOf(script).stream('go'))
  assert.deepEqual(shown(retried.events), ['All ', '(the model call failed)', 'All ', 'is ', 'well.'])
  assert.deepEqual([shown(failed.events), failed.run.status], [['All ', '(the model call failed)'], 'failed'])
})

// ── consumers of a stream

test('a slow reader misses no event and does not delay the run', async () => {
  const live = agentOf([callWork, callWork, 'Done.']).stream('go')
  const run = await live.run
  assert.equal(run.status, 'completed')
  const events: AgentEvent[] = []
  for await (const event of live) {
    await delay(1)
    events.push(event)
  }
  assert.deepEqual([events[0]?.type, events.at(-1)?.type], ['input', 'finished'])
})

test('the run of an unread stream continues to its end', async () => {
  assert.equal((await soon(agentOf([callWork, 'Done.']).stream('go').run)).status, 'completed')
})

test('a reader that asks for several events at once gets them in order', async () => {
  const live = agentOf([{ text: 'Done.', delayMs: 5 }]).stream('go')
  const events = live[Symbol.asyncIterator]()
  const three = await soon(Promise.all([events.next(), events.next(), events.next()]))
  assert.deepEqual(
    three.map(({ value }) => (value as AgentEvent).seq),
    [1, 2, 3],
  )
})

test('a stream that cannot start rejects, for its reader and for its run', async () => {
  const live = agentOf(['Done.']).stream(17 as never)
  await assert.rejects(live.run, { code: 'INPUT_INVALID' })
  await assert.rejects(collect(live), { code: 'INPUT_INVALID' })
})

// ── one state per step

function iterated(script: Script, ...use: readonly Use[]): Promise<readonly AgentState[]> {
  return soon(collect(agentOf(script, ...use).iterate('go')))
}

test('a run of N steps that ends by itself yields N states', async () => {
  for (const steps of [1, 2, 5]) {
    const states = await iterated([...Array.from({ length: steps - 1 }, () => callWork), 'Done.'])
    assert.deepEqual(
      states.map((state) => state.stepCount),
      Array.from({ length: steps }, (_, i) => i + 1),
    )
  }
})

test('a step in which the model failed is yielded as the last', async () => {
  const states = await iterated([callWork, { error: 'lost' }])
  assert.deepEqual(
    states.map((state) => state.execution?.status),
    ['running', 'failed'],
  )
})

test('a step does not start before the consumer requests it', async () => {
  const model = scriptedModel([callWork, callWork, 'Done.'])
  const live = createAgent({ model, use: [work] }).iterate('go')
  const asked: number[] = [model.requests.length]
  for await (const state of live) {
    await delay(5)
    asked.push(model.requests.length)
    assert.equal(state.stepCount, model.requests.length)
  }
  assert.deepEqual(asked, [0, 1, 2, 3])
})

suite('awaiting the run of an iteration never deadlocks', () => {
  const script: Script = [callWork, callWork, 'Done.']

  test('before iterating, and without', async () => {
    assert.equal((await soon(agentOf(script).iterate('go').run)).status, 'completed')
  })

  test('after it has ended, and then reading the states', async () => {
    const live = agentOf(script).iterate('go')
    await soon(live.run)
    assert.equal((await soon(collect(live))).length, 3)
  })

  test('while iterating, awaited in the loop', async () => {
    const live = agentOf(script).iterate('go')
    const seen: string[] = []
    const reading = async (): Promise<void> => {
      for await (const state of live) seen.push(`${state.stepCount} ${(await live.run).status}`)
    }
    await soon(reading())
    assert.deepEqual(seen, ['1 completed', '2 completed', '3 completed'])
  })
})

test('breaking out pauses the run after the current step, and resume continues it', async () => {
  const model = scriptedModel([callWork, callWork, 'Done.'])
  const agent = createAgent({ model, use: [work] })
  const live = agent.iterate('go')
  for await (const state of live) if (state.stepCount === 2) break
  const paused = await soon(live.run)
  assert.deepEqual([paused.status, paused.state.stepCount, model.requests.length], ['suspended', 2, 2])
  const resumed = await agent.resume(JSON.parse(JSON.stringify(paused)) as typeof paused)
  assert.deepEqual([resumed.status, resumed.state.stepCount, model.requests.length], ['completed', 3, 3])
})

test('an error in the loop body pauses the run, too', async () => {
  const live = agentOf([callWork, 'Done.']).iterate('go')
  const reading = async (): Promise<void> => {
    for await (const state of live) throw new Error(`after ${state.stepCount}`)
  }
  await assert.rejects(reading(), /after 1/)
  assert.equal((await soon(live.run)).status, 'suspended')
})

test('breaking out at the last state leaves the run as it ended', async () => {
  const live = agentOf(['Done.']).iterate('go')
  for await (const state of live) if (state.execution?.status === 'completed') break
  assert.equal((await soon(live.run)).status, 'completed')
})

// ── concurrent runs

test('200 concurrent runs of one agent are independent', async () => {
  const seen = hook('beforeToolUse', async (ctx) => {
    await delay(1)
    return ctx.withState((state) => state.withMetadata('last', ctx.toolCall.id))
  })
  const model = scriptedModel(({ messages }) => {
    const input = textOf(messages.at(0)!.content)
    return messages.length < 5 ? { toolCalls: [{ name: 'work', id: `${input}-${messages.length}` }] } : `Done ${input}.`
  })
  const agent = createAgent({ model, use: [work, seen] })
  const inputs = Array.from({ length: 200 }, (_, i) => `job ${i}`)
  const runs = await Promise.all(inputs.map((input) => agent.run(input)))
  assert.deepEqual(
    runs.map(({ text, state, ledger }) => [
      text,
      state.metadata['last'],
      state.messages.length,
      new Set(ledger.map((entry) => entry.call)).size,
    ]),
    inputs.map((input) => [`Done ${input}.`, `${input}-3`, 6, 3]),
  )
  assert.equal(new Set(runs.map(({ state }) => state.execution!.id)).size, 200)
})

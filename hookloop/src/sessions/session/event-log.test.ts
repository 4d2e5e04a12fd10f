import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import type { Agent } from '../../core/agent/agent.ts'
import type { Use } from '../../core/agent/capability.ts'
import { hook, observe } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import type { AgentEvent } from '../../core/state/event.ts'
import type { LanguageModel } from '../../core/state/inference.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { answerApproval } from './approvals.ts'
import { killPoints } from '../stores/kills.fixture.ts'
import { dyingStore, toolEnd } from './dying-store.fixture.ts'
import { checkStory, eventsIn } from './event-log.fixture.ts'
import { drive, eventfulAgent } from './eventful-run.fixture.ts'
import { watchSession } from '../log/watch-session.ts'

const look = tool({
  name: 'look',
  description: 'Looks.',
  input: { type: 'object' },
  concurrent: true,
  execute: (_args, { progress }) => {
    progress('half')
    return 'seen'
  },
})

const call = {
  text: 'Let me look.',
  toolCalls: [
    { name: 'look', id: 'a' },
    { name: 'look', id: 'b' },
  ],
}

function looking(store: SessionStore, ...use: readonly Use[]): Agent {
  return createAgent({ model: scriptedModel([call, 'Done.']), store, use: [look, ...use] })
}

async function collect(events: AsyncIterable<AgentEvent>): Promise<readonly AgentEvent[]> {
  const all: AgentEvent[] = []
  for await (const event of events) all.push(event)
  return all
}

const typesOf = (events: readonly AgentEvent[]): readonly string[] => events.map(({ type }) => type)
/** Without its number and its duration, which only the turn itself has. */
function unplaced(event: AgentEvent): unknown {
  const { seq: _seq, durationMs: _took, at: _at, ...rest } = event as AgentEvent & { durationMs?: number }
  return rest
}
const plain = (events: readonly AgentEvent[]): unknown => JSON.parse(JSON.stringify(events))

suite('the event log of a session', () => {
  test('has the events of a stream with the same numbers', async () => {
    const store = memoryStore()
    const streamed = await collect(looking(store).stream('Go.', { session: 's' }))
    const logged = await eventsIn(store, 's')
    assert.deepEqual(logged, plain(streamed))
    checkStory(logged)
    assert.ok(logged.every(({ session, run }) => session === 's' && run === logged[0]!.run))
  })

  test('continues over runs, and has the answers and results of an earlier turn, but not how they came about', async () => {
    const store = memoryStore()
    const reasoned = { ...call, reasoning: 'Think.' }
    const agent = createAgent({ model: scriptedModel([reasoned, 'One.', 'Two.']), store, use: [look] })
    const first = await collect(agent.stream('1', { session: 's' }))
    const second = await collect(agent.stream('2', { session: 's' }))
    assert.ok(second[0]!.seq > first.at(-1)!.seq)
    const logged = await eventsIn(store, 's')
    const kept = ['input', 'responded', 'toolStarted', 'toolFinished', 'stepFinished', 'finished']
    const expected = [...first.filter(({ type }) => kept.includes(type)), ...second]
    const [last] = second as [AgentEvent]
    assert.deepEqual(logged.map(unplaced), expected.map(unplaced))
    assert.deepEqual(plain(logged.filter(({ seq }) => seq >= last.seq)), plain(second))
    checkStory(logged)
    const seen = await Promise.all(
      logged.map(({ seq }) => collect(watchSession(store, 's', { after: seq, follow: false }))),
    )
    assert.deepEqual(
      seen,
      logged.map((_, i) => logged.slice(i + 1)),
    )
  })

  test('has the answer of an approver in another process, and the run that resumes with it', async () => {
    const store = memoryStore()
    const asks = tool({ name: 'pay', description: '', input: { type: 'object' }, ask: true, execute: () => 'paid' })
    const agent = createAgent({
      model: scriptedModel([{ toolCalls: [{ name: 'pay', id: 'p' }] }, 'Paid.']),
      store,
      use: [asks, approval('suspend')],
    })
    const run = await agent.run('Pay.', { session: 's' })
    assert.ok(run.status === 'suspended')
    const { id } = run.pending[0]!
    await answerApproval(store, { session: 's', approval: id, answer: 'allow', by: 'ann' })
    await agent.resume('s')
    const logged = await eventsIn(store, 's')
    checkStory(logged)
    const told = typesOf(logged).filter((type) =>
      ['asked', 'suspended', 'answered', 'resumed', 'toolStarted', 'finished'].includes(type),
    )
    assert.deepEqual(told, ['asked', 'suspended', 'answered', 'resumed', 'toolStarted', 'finished'])
    const answered = logged.find(({ type }) => type === 'answered')
    assert.deepEqual(answered, { ...answered, approval: id, answer: 'allow', by: 'ann', step: 0 })
    assert.equal(new Set(logged.map((event) => event.run)).size, 1)
  })

  test('says that the session was rewound, and has the new answer in another run', async () => {
    const store = memoryStore()
    const session = createAgent({ model: scriptedModel(['One.', 'Two.']), store }).session('s')
    await session.send('Hello.')
    await session.rewind()
    await session.resume()
    const logged = await eventsIn(store, 's')
    const told = logged.filter(({ type }) => ['input', 'rewound', 'resumed', 'responded', 'finished'].includes(type))
    assert.deepEqual(typesOf(told), ['input', 'responded', 'finished', 'rewound', 'input', 'responded', 'finished'])
    const runs = told.map(({ run }) => run)
    assert.deepEqual([new Set(runs).size, runs[3] === runs[0]], [2, true])
  })

  test('has what hooks did when the session started and ended', async () => {
    const store = memoryStore()
    const notes = hook(
      ['onSessionStart', 'onSessionEnd'],
      (ctx) => ctx.withState((state) => state.withMetadata(ctx.trigger, 1)),
      {
        name: 'notes',
      },
    )
    const watches = observe('onSessionStart', () => undefined, { name: 'watches' })
    const session = looking(store, notes, watches).session('s')
    await session.send('Go.')
    await session.end()
    const logged = await eventsIn(store, 's')
    const triggers = logged.flatMap((event) =>
      event.type === 'hook' && event.entry.hook === 'notes' ? [[event.entry.trigger, event.run]] : [],
    )
    const [{ run }] = logged as [AgentEvent]
    assert.deepEqual(triggers, [
      ['onSessionStart', run],
      ['onSessionEnd', run],
    ])
    assert.deepEqual([logged[0]!.type, logged[1]!.type, logged.at(-1)!.type], ['hook', 'input', 'hook'])
  })

  test('has a new input that ends a run which waits', async () => {
    const store = memoryStore()
    const asks = tool({ name: 'pay', description: '', input: { type: 'object' }, ask: true, execute: () => 'paid' })
    const model = scriptedModel([{ toolCalls: [{ name: 'pay', id: 'p' }] }, 'Instead.'])
    const agent = createAgent({ model, store, use: [asks, approval('suspend')] })
    await agent.run('Pay.', { session: 's' })
    const streamed = await collect(agent.stream('No, wait.', { session: 's', onNewInput: 'block' }))
    const logged = await eventsIn(store, 's')
    assert.deepEqual(
      typesOf(logged).filter((type) => ['input', 'suspended', 'resumed', 'finished'].includes(type)),
      ['input', 'suspended', 'resumed', 'finished', 'input', 'finished'],
    )
    assert.deepEqual(logged.slice(-streamed.length), plain(streamed))
  })
})

/** A model that writes each piece of its answer when the one before is in the log. */
function slowModel(store: SessionStore, pieces: readonly string[]): LanguageModel {
  return {
    provider: 'test',
    modelId: 'slow',
    async infer(_request, { onDelta }) {
      for (const delta of onDelta === undefined ? [] : pieces) {
        const isLogged = waitFor(store, (event) => event.type === 'text' && event.delta === delta)
        onDelta!({ type: 'text', delta })
        await isLogged
      }
      return { content: [{ type: 'text', text: pieces.join('') }], finishReason: 'stop' }
    },
  }
}

async function waitFor(store: SessionStore, isIt: (event: AgentEvent) => boolean): Promise<void> {
  for await (const event of watchSession(store, 's', { after: Infinity })) if (isIt(event)) return
}

suite('after a crash at any write', () => {
  const countWrites = async (work: (store: SessionStore) => Promise<unknown>): Promise<number> => {
    const store = dyingStore(memoryStore(), { at: Infinity, stored: true })
    await work(store)
    return store.writes()
  }

  test('an answer that was being written is retracted, and follows as a whole', async () => {
    const agentOf = (store: SessionStore): Agent => createAgent({ model: slowModel(store, ['a ', 'b ', 'c']), store })
    const writes = await countWrites((store) => agentOf(store).run('Go.', { session: 's', deltas: true }))
    assert.ok(writes >= 4, `${writes}`)
    let retracted = 0
    for (let at = 1; at <= writes; at++) {
      for (const stored of [true, false]) {
        const store = memoryStore()
        const dying = dyingStore(store, { at, stored })
        await Promise.race([agentOf(dying).run('Go.', { session: 's', deltas: true }), dying.died])
        if ((await store.read('s'))?.lines.length !== 0) {
          const again = agentOf(store)
          const isOver = (await eventsIn(store, 's')).some(({ type }) => type === 'finished')
          if (!isOver) await again.resume('s', { deltas: at % 2 === 0 })
          const logged = await eventsIn(store, 's')
          checkStory(logged)
          assert.equal(logged.at(-1)!.type, 'finished')
          if (typesOf(logged).includes('retracted')) retracted++
        }
      }
    }
    assert.ok(retracted >= 4, `${retracted}`)
  })

  test('the events of an eventful run have no gap and no repeat, and nothing is missing', async () => {
    const world = { note: () => undefined }
    const whole = memoryStore()
    await drive(eventfulAgent(whole, world), whole)
    const expected = told(await eventsIn(whole, 'eventful'))
    const writes = await countWrites((store) => drive(eventfulAgent(store, world), store))
    for (const at of killPoints(Array.from({ length: writes }, (_, i) => i + 1))) {
      const store = memoryStore()
      for (const death of [
        { at, stored: at % 2 === 0 },
        { at: 3, stored: true },
      ]) {
        const dying = dyingStore(store, death)
        await Promise.race([drive(eventfulAgent(dying, world), dying), dying.died])
      }
      await drive(eventfulAgent(store, world), store)
      const logged = await eventsIn(store, 'eventful')
      checkStory(logged)
      const missing = expected.filter((each) => !told(logged).includes(each))
      assert.deepEqual(
        missing.filter((each) => !/wire|outcomeUnknown/.test(each)),
        [],
        `write ${at}`,
      )
    }
  })

  test('the stream of a resumed run has the numbers of the log, and nothing that is repeated', async () => {
    const store = memoryStore()
    const dying = dyingStore(store, { at: toolEnd, stored: false })
    await Promise.race([looking(dying).run('Go.', { session: 's' }), dying.died])
    const before = await eventsIn(store, 's')
    const streamed = await collect(looking(store).resumeStream('s'))
    const logged = new Map((await eventsIn(store, 's')).map((event) => [event.seq, event]))
    assert.equal(streamed[0]!.type, 'resumed')
    assert.deepEqual(
      streamed.map(({ seq }) => logged.get(seq)?.type),
      typesOf(streamed),
    )
    assert.ok(streamed.every(({ seq }) => seq > before.at(-1)!.seq))
    assert.equal(streamed.at(-1)!.seq, Math.max(...logged.keys()))
  })
})

/** What happened, without times and ids that may differ. */
function told(events: readonly AgentEvent[]): readonly string[] {
  return events.flatMap((event) => {
    if (event.type === 'toolFinished') return [`${event.type} ${event.call.id}`]
    if (event.type === 'stepFinished' || event.type === 'responded') return [`${event.type} ${event.step}`]
    return ['input', 'started', 'finished'].includes(event.type) ? [event.type] : []
  })
}

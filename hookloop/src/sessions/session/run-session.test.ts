import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setImmediate as soon } from 'node:timers/promises'
import type { Use } from '../../core/agent/capability.ts'
import { tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import type { AgentEvent } from '../../core/state/event.ts'
import { liveEffects } from '../../core/effects/effects.ts'
import { guard, hook } from '../../core/hooks/hook.ts'
import { scriptedModel, type ScriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import { fakeClock, type FakeClock } from '../../testing/fake-clock.ts'
import { dyingStore, toolBegin, type Death } from './dying-store.fixture.ts'
import { readSession } from '../log/read-session.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'

const call = (name: string, args = {}): ScriptedTurn => ({ toolCalls: [{ name, args }] })

/** A model that takes a turn for each answer that is there already. */
function byTurn(turns: readonly ScriptedTurn[], modelId = 'script'): ScriptedModel {
  const turnOf = (count: number): ScriptedTurn => turns[count] ?? 'Done.'
  return scriptedModel(({ messages }) => turnOf(messages.filter(({ role }) => role === 'assistant').length), {
    modelId,
  })
}

function acts(done: string[], during: () => unknown = () => undefined) {
  return tool({
    name: 'act',
    description: 'Acts.',
    input: { type: 'object' },
    execute: async ({ on = '' }, { idempotencyKey }) => {
      done.push(idempotencyKey)
      await during()
      return on
    },
  })
}

function scene(store: SessionStore, { turns = [call('act'), call('act')], use = [] as readonly Use[] } = {}) {
  const done: string[] = []
  const model = byTurn(turns)
  return { done, model, agent: createAgent({ model, store, use: [acts(done), ...use] }) }
}

async function kept(store: SessionStore, id = 's') {
  return readSession((await store.read(id))!.lines, id)
}

/** Lets a run in a session die at a write. What it did is what the given agent does. */
async function cutOff(
  store: SessionStore,
  death: Death,
  make: (store: SessionStore) => Promise<unknown>,
): Promise<void> {
  const dying = dyingStore(store, death)
  await Promise.race([make(dying), dying.died])
}

test('a conversation continues from run to run, and its usage is added up', async () => {
  const store = memoryStore()
  const { agent } = scene(store, { turns: ['One.', 'Two.'] })
  await agent.run('First.', { session: 's' })
  const run = await agent.run('Second.', { session: 's', metadata: { user: 'ann' } })
  assert.deepEqual(
    run.state.messages.map(({ role }) => role),
    ['user', 'assistant', 'user', 'assistant'],
  )
  assert.deepEqual([run.state.usage.steps, run.state.executionCount, run.state.metadata['user']], [2, 2, 'ann'])
  assert.equal(JSON.stringify((await kept(store)).state), JSON.stringify(run.state))
})

test('D03: a session takes one run at a time', async () => {
  const { agent } = scene(memoryStore())
  const both = await Promise.allSettled([agent.run('A.', { session: 's' }), agent.run('B.', { session: 's' })])
  const [won, lost] = both.toSorted((a, b) => (a.status < b.status ? -1 : 1))
  assert.equal(won?.status === 'fulfilled' && won.value.status, 'completed')
  assert.equal(lost?.status === 'rejected' && (lost.reason as { code: string }).code, 'SESSION_BUSY')
})

const refusals: { readonly [what: string]: readonly [code: string, run: (store: SessionStore) => Promise<unknown>] } = {
  'resuming a session that is not there': ['SESSION_UNKNOWN', (store) => scene(store).agent.resume('none')],
  'resuming one of which nothing is left to do': [
    'RESUME_NOT_SUSPENDED',
    async (store) => {
      const { agent } = scene(store)
      await agent.run('Go.', { session: 'ended' })
      return agent.resume('ended')
    },
  ],
  'going on from a run in a session': [
    'AGENT_INVALID_OPTION',
    async (store) => {
      const { agent } = scene(store)
      return agent.run('Go.', { session: 'from', from: await agent.run('Go.') })
    },
  ],
  'D08: an id with a control character': [
    'SESSION_ID_INVALID',
    (store) => scene(store).agent.run('x', { session: 'a\nb' }),
  ],
  'D08: an id that is no id': ['SESSION_ID_INVALID', (store) => scene(store).agent.resume('\u001B[2J')],
  'an empty id': ['SESSION_ID_INVALID', (store) => scene(store).agent.run('x', { session: '' })],
  'an agent without a store': [
    'AGENT_INVALID_OPTION',
    () => createAgent({ model: byTurn([]) }).run('Go.', { session: 's' }),
  ],
  'metadata that are not JSON': [
    'JSON_INVALID',
    (store) => scene(store).agent.run('Go.', { session: 'm', metadata: { at: new Date() } as never }),
  ],
}

suite('is rejected before anything runs:', () => {
  for (const [what, [code, run]] of Object.entries(refusals)) {
    test(what, async () => {
      const store = memoryStore()
      await assert.rejects(run(store), { name: 'AgentError', code })
      const empty = (await store.list()).filter(({ id }) => id !== 'ended')
      assert.deepEqual(empty, [])
    })
  }
})

test('a session whose input was blocked accepts another input', async () => {
  const store = memoryStore()
  const polite = guard('onUserInput', (ctx) =>
    JSON.stringify(ctx.input).includes('please') ? ctx : ctx.block('Say please.'),
  )
  const { agent, model } = scene(store, { turns: ['Here.'], use: [polite] })
  const refused = await agent.run('Give!', { session: 's' })
  assert.deepEqual([refused.status, model.requests.length, (await kept(store)).open], ['stopped', 0, undefined])
  assert.equal((await agent.run('Give, please.', { session: 's' })).text, 'Here.')
})

test('a session that waits or was interrupted rejects input and says how to resume', async () => {
  const store = memoryStore()
  const { agent } = scene(store, { use: [approval({ answer: 'suspend', tools: ['act'] })] })
  await agent.run('Go.', { session: 'waits' })
  await cutOff(store, { at: toolBegin, stored: true }, (dying) => scene(dying).agent.run('Go.', { session: 'cut' }))
  for (const session of ['waits', 'cut']) {
    const way = new RegExp(`agent.resume\\('${session}'`)
    await assert.rejects(agent.run('More.', { session }), { code: 'STATE_SUSPENDED', message: way })
  }
})

// ── going on

// ── time

function timed(store: SessionStore, clock: FakeClock, { ms, max }: { ms: number; max: number }) {
  const turns = [call('act'), call('act'), call('act')]
  const use = [acts([], () => clock.advance(ms)), guards({ maxTimeMs: max })]
  return createAgent({ model: byTurn(turns), store, use })
}

test('D21: the time in which no process works on a run is not counted, however often it is interrupted', async () => {
  for (let at = 1; at <= 5; at++) {
    for (const again of [1, 2]) {
      const store = memoryStore()
      let startAt = 1_000
      const begin = (over: SessionStore) => {
        const clock = fakeClock({ startAt })
        startAt += 10_000_000
        return { agent: timed(over, clock, { ms: 300, max: 1_000 }), effects: liveEffects({ clock }) }
      }
      await cutOff(store, { at, stored: true }, (dying) => {
        const { agent, effects } = begin(dying)
        return agent.run('Go.', { session: 's', effects })
      })
      if ((await kept(store)).open === undefined) continue
      await cutOff(store, { at: again, stored: true }, (dying) => {
        const { agent, effects } = begin(dying)
        return agent.resume('s', { effects })
      })
      if ((await kept(store)).open === undefined) continue
      const { agent, effects } = begin(store)
      const run = await agent.resume('s', { effects })
      assert.equal(run.status, 'completed', `cut off at ${at}, then at ${again}`)
    }
  }
})

test('the time spent waiting for approval is not counted', async () => {
  const store = memoryStore()
  const asks = approval({ answer: 'suspend', tools: ['act'] })
  const clock = fakeClock({ startAt: 5 })
  const agent = timed(store, clock, { ms: 300, max: 1_000 }).with(asks)
  let run = await agent.run('Go.', { session: 's', effects: liveEffects({ clock }) })
  while (run.status === 'suspended') {
    await clock.advance(86_400_000)
    const answers = Object.fromEntries(run.pending.map(({ id }) => [id, 'allow' as const]))
    run = await agent.resume('s', { answers, effects: liveEffects({ clock }) })
  }
  assert.equal(run.status, 'completed')
})

// ── watching

test('a run in a session is streamed, and so is the rest of an interrupted run', async () => {
  const store = memoryStore()
  const types = async (events: AsyncIterable<AgentEvent>): Promise<readonly string[]> => {
    const seen: string[] = []
    for await (const { type } of events) seen.push(type)
    return seen
  }
  const whole = await types(scene(store).agent.stream('Go.', { session: 'whole' }))
  await cutOff(store, { at: toolBegin, stored: true }, (dying) => scene(dying).agent.run('Go.', { session: 'cut' }))
  const rest = await types(scene(store).agent.resumeStream('cut'))
  assert.deepEqual([whole[0], whole.at(-1), rest[0], rest.at(-1)], ['input', 'finished', 'resumed', 'finished'])
  assert.ok(rest.includes('toolFinished') && rest.length < whole.length)
})

test('leaving an iteration pauses the session, which is resumed by its id', async () => {
  const store = memoryStore()
  const { agent, done } = scene(store)
  for await (const state of agent.iterate('Go.', { session: 's' })) {
    assert.equal(state.stepCount, 1)
    break
  }
  while ((await store.read('s'))?.head['status'] !== 'suspended') await new Promise(setImmediate)
  const { open } = await kept(store)
  assert.deepEqual([open?.pending, done.length], [[], 1])
  const again = scene(store)
  const run = await again.agent.resume('s')
  assert.deepEqual([run.status, again.done.length, run.state.stepCount], ['completed', 1, 3])
})

test('a session whose process has ended is listed as interrupted, with the steps and tokens of its last checkpoint', async () => {
  const store = memoryStore()
  const heads: (readonly unknown[])[] = []
  const list = async (): Promise<void> => {
    await soon()
    const head = (await store.list())[0]!.head
    heads.push([head['status'], head['steps'], head['tokens'], head['title']])
  }
  const dying = dyingStore(store, { at: /"t":"begin".*"step":1/, stored: true })
  const { agent } = scene(dying, {
    use: [hook('afterInference', async (ctx) => (await list(), ctx), { name: 'lists' })],
  })
  await Promise.race([agent.run('Act twice.', { session: 's' }), dying.died])
  await list()
  assert.deepEqual(heads[0], ['running', 0, 0, 'Act twice.'])
  assert.deepEqual(heads.at(-1), ['interrupted', 1, 15, 'Act twice.'])
  await scene(store).agent.resume('s')
  await list()
  assert.deepEqual(heads.at(-1), ['completed', 3, 45, 'Act twice.'])
})

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test, type TestContext } from 'node:test'
import type { Use } from '../../core/agent/capability.ts'
import { tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { summarization } from '../../capabilities/summarization/summarization.ts'
import { createAgent } from '../../create-agent.ts'
import { AgentError } from '../../errors.ts'
import { hook } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { textOf } from '../../core/state/message.ts'
import { readSession } from '../log/read-session.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { startPostgres } from '../stores/postgres.fixture.ts'
import { postgresStore } from '../stores/postgres-store.ts'
import { sqliteStore } from '../stores/sqlite-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { answerApproval, listApprovals } from './approvals.ts'
import { dyingStore } from './dying-store.fixture.ts'
import { forkSession, listPoints } from './fork-session.ts'
import { rewindSession } from './rewind-session.ts'
import { start } from './session-processes.fixture.ts'

const folder = mkdtempSync(join(tmpdir(), 'hookloop-rewind-'))
const server = await startPostgres()
const connection = { connectionString: server.connectionString }
after(async () => {
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** An agent that answers each message with `re: <message>`. "work" calls a tool first, and "pay" one that asks. */
function echo(store: SessionStore, { done = [] as string[], use = [] as readonly Use[] } = {}) {
  const acting = (name: string, ask: boolean) =>
    tool({
      name,
      description: '',
      input: { type: 'object' },
      ask,
      execute: () => {
        done.push(name)
        return `did ${name}`
      },
    })
  const model = scriptedModel(({ messages }) => {
    const all = messages.slice()
    const input = textOf(
      all.findLast(({ role, content }) => role === 'user' && !textOf(content).startsWith('['))!.content,
    )
    const isCalled = all.at(-1)!.role === 'tool'
    return !isCalled && /^(work|pay)$/.test(input) ? { toolCalls: [{ name: input }] } : `re: ${input}`
  })
  return createAgent({ model, store, use: [acting('work', false), acting('pay', true), approval('suspend'), ...use] })
}

/** The text of the conversation, without calls and their results. */
async function said(store: SessionStore, id = 's'): Promise<readonly string[]> {
  const { state } = readSession((await store.read(id))!.lines, id)
  return state!.messages
    .slice()
    .map(({ content }) => textOf(content))
    .filter((text) => text !== '')
}

async function talk(store: SessionStore): Promise<void> {
  for (const text of ['one', 'two', 'three']) await echo(store).run(text, { session: 's' })
}

/** What failed, except because the session is locked. */
function failures(settled: readonly PromiseSettledResult<unknown>[]): readonly unknown[] {
  const reasons = settled.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []))
  return reasons.filter((reason) => !(reason instanceof AgentError && reason.code === 'SESSION_BUSY'))
}

const whole = ['one', 're: one', 'two', 're: two', 'three', 're: three']

/** Each returns two stores that share their sessions, as two processes have them. */
const stores: { readonly [name: string]: () => readonly [SessionStore, SessionStore] } = {
  memory: () => {
    const store = memoryStore()
    return [store, store]
  },
  SQLite: () => {
    const place = join(mkdtempSync(join(folder, 'sqlite-')), 'sessions.db')
    return [sqliteStore(place), sqliteStore(place)]
  },
  Postgres: () => [postgresStore(connection), postgresStore(connection)],
}

/** Closed at the end of the test. */
function opened(t: TestContext, open: () => readonly [SessionStore, SessionStore]) {
  const both = open()
  t.after(async () => {
    for (const store of new Set(both)) await store.close()
  })
  return both
}

for (const [name, open] of Object.entries(stores)) {
  describe(`a session in a ${name} store`, () => {
    test('that is rewound twice at once has the conversation of one of the two points', async (t) => {
      const [first, second] = opened(t, open)
      await talk(first)
      const points = (await listPoints(first, 's')).map(({ seq }) => seq)
      const both = await Promise.allSettled([
        rewindSession(first, 's', { at: points[0]! }),
        rewindSession(second, 's', { at: points[1]! }),
      ])
      assert.deepEqual(failures(both), [])
      const now = await said(first)
      assert.ok(now.length === 2 || now.length === 4, now.join())
      assert.deepEqual(now, whole.slice(0, now.length))
      await echo(second).run('next', { session: 's' })
      assert.deepEqual(await said(first), [...now, 'next', 're: next'])
      await first.delete('s')
    })

    test('that is rewound while a message arrives has both in one order, or one of them', async (t) => {
      for (const isFirst of [true, false]) {
        const [one, two] = opened(t, open)
        await talk(one)
        const [point] = (await listPoints(one, 's')).map(({ seq }) => seq)
        const acts = [() => rewindSession(one, 's', { at: point! }), () => echo(two).run('next', { session: 's' })]
        const both = await Promise.allSettled((isFirst ? acts : acts.toReversed()).map((act) => act()))
        assert.deepEqual(failures(both), [])
        const now = (await said(one)).join()
        const start = whole.slice(0, 2)
        const possible = [start, whole, [...start, 'next', 're: next'], [...whole, 'next', 're: next']]
        assert.ok(
          possible.some((each) => each.join() === now),
          now,
        )
        await one.delete('s')
      }
    })
  })
}

for (const kind of ['sqlite', 'postgres'] as const) {
  test(`processes that rewind a session in a ${kind} store at once leave a session that can be continued`, async () => {
    const base = mkdtempSync(join(folder, `${kind}-processes-`))
    const place = { sqlite: join(base, 'sessions.db'), postgres: server.connectionString }[kind]
    const open = { sqlite: sqliteStore, postgres: () => postgresStore(connection) }[kind]
    const store = open(place)
    await talk(store)
    const at = { kind, place, world: join(base, 'world') }
    const processes = [1, 2, 3].map(() => start(at, ['rewind', 's', '10']))
    await Promise.all(processes.map(({ ended }) => ended))
    assert.deepEqual(
      processes.map(({ lines, errors }) => [lines.at(-1), errors()]),
      processes.map(() => ['10 rewinds', '']),
    )
    assert.deepEqual(await said(store), whole.slice(0, 4))
    assert.equal((await echo(store).resume('s')).text, 're: three')
    await store.close()
  })
}

test('an open run is dropped by a rewind, whenever its process died, and is not continued later', async () => {
  const dropped = new Set<string>()
  for (let [at, isDead] = [1, true]; isDead; at++) {
    const inner = memoryStore()
    await talk(inner)
    const [point] = (await listPoints(inner, 's')).map(({ seq }) => seq)
    const dying = dyingStore(inner, { at, stored: true })
    const run = echo(dying).run('work', { session: 's' })
    isDead = await Promise.race([run.then(() => false), dying.died.then(() => true)])
    await rewindSession(inner, 's', { at: point! })
    assert.deepEqual(await said(inner), whole.slice(0, 2))
    assert.equal(readSession((await inner.read('s'))!.lines, 's').open, undefined)
    const done: string[] = []
    await echo(inner, { done }).run('four', { session: 's' })
    assert.deepEqual([await said(inner), done], [[...whole.slice(0, 2), 'four', 're: four'], []])
    dropped.add(String(isDead))
  }
  assert.deepEqual([...dropped], ['true', 'false'])
})

test('an answer is regenerated after a crash, whenever the process died', async () => {
  for (let [at, isDead] = [1, true]; isDead; at++) {
    const inner = memoryStore()
    await talk(inner)
    const dying = dyingStore(inner, { at, stored: true })
    const run = echo(dying).run('work', { session: 's' })
    isDead = await Promise.race([run.then(() => false), dying.died.then(() => true)])
    await rewindSession(inner, 's')
    const done: string[] = []
    assert.equal((await echo(inner, { done }).resume('s')).text, 're: work')
    assert.deepEqual([await said(inner), done], [[...whole, 'work', 're: work'], ['work']])
  }
})

test('an approval of a run that was dropped by a rewind can no longer be answered', async () => {
  const store = memoryStore()
  await talk(store)
  const done: string[] = []
  await echo(store, { done }).run('pay', { session: 's' })
  const [asked] = await listApprovals(store)
  const [point] = await listPoints(store, 's')
  await rewindSession(store, 's', { at: point!.seq })
  await assert.rejects(answerApproval(store, { session: 's', approval: asked!.id, answer: 'allow' }))
  await assert.rejects(echo(store, { done }).resume('s'))
  await echo(store, { done }).run('four', { session: 's' })
  assert.deepEqual([await said(store), done], [[...whole.slice(0, 2), 'four', 're: four'], []])
})

test('a rewind whose process dies is complete or has not happened, and the session continues', async () => {
  for (const stored of [true, false]) {
    for (let [at, isDead] = [1, true]; isDead; at++) {
      const inner = memoryStore()
      await talk(inner)
      const dying = dyingStore(inner, { at, stored })
      const rewinding = rewindSession(dying, 's', { message: 'other' })
      isDead = await Promise.race([rewinding.then(() => false), dying.died.then(() => true)])
      const { open } = readSession((await inner.read('s'))!.lines, 's')
      if (open === undefined) assert.deepEqual(await said(inner), whole)
      else assert.equal((await echo(inner).resume('s')).text, 're: other')
      await echo(inner).run('next', { session: 's' })
      const start = open === undefined ? whole : [...whole.slice(0, 4), 'other', 're: other']
      assert.deepEqual(await said(inner), [...start, 'next', 're: next'])
    }
  }
})

test('a fork of a session that was rewound has the message that is to be answered', async () => {
  const store = memoryStore()
  await talk(store)
  await rewindSession(store, 's', { message: 'other' })
  await forkSession(store, 's', { as: 'copy' })
  assert.equal((await echo(store).resume('copy')).text, 're: other')
  assert.equal((await echo(store).resume('s')).text, 're: other')
  await forkSession(store, 's', { as: 'later' })
  assert.deepEqual(await said(store, 'copy'), [...whole.slice(0, 4), 'other', 're: other'])
  assert.deepEqual(await said(store, 'later'), await said(store, 's'))
  const [first] = await listPoints(store, 's')
  await forkSession(store, 's', { as: 'earlier', at: first!.seq })
  assert.deepEqual(await said(store, 'earlier'), whole.slice(0, 2))
})

describe('after a summary', () => {
  /** Everything but the latest message is summarized before each step. */
  const summarizing = summarization({
    maxMessageTokens: 10,
    maxBufferTokens: 10,
    countTokens: () => 10,
    summarize: ({ messages }) => `so far ${messages.length} messages`,
  })

  test('a session is rewound to a point before it, with the complete conversation', async () => {
    const store = memoryStore()
    await talk(store)
    const points = await listPoints(store, 's')
    const agent = echo(store, { use: [summarizing] })
    await agent.run('four', { session: 's' })
    assert.match((await said(store))[0]!, /so far \d messages/)
    await rewindSession(store, 's', { at: points[2]!.seq })
    assert.deepEqual(await said(store), whole)
    await echo(store).run('five', { session: 's' })
    assert.deepEqual(await said(store), [...whole, 'five', 're: five'])
  })

  test('the answer to the message whose run wrote it is regenerated', async () => {
    const store = memoryStore()
    await talk(store)
    await echo(store, { use: [summarizing] }).run('four', { session: 's' })
    await rewindSession(store, 's')
    await echo(store).resume('s')
    assert.deepEqual(await said(store), [...whole, 'four', 're: four'])
  })

  for (const [what, replace] of [
    [
      'rewound',
      async (store: SessionStore, at: number) => (await rewindSession(store, 's', { at, message: 'other' }), 's'),
    ],
    ['forked', (store: SessionStore, at: number) => forkSession(store, 's', { at, message: 'other', as: 'copy' })],
  ] as const) {
    test(`a message that it contains is replaced when the session is ${what}`, async () => {
      const store = memoryStore()
      await talk(store)
      // The summary is written in the second step, and the message of the run is in it.
      await echo(store, { use: [summarizing] }).run('work', { session: 's' })
      const last = (await listPoints(store, 's')).at(-1)!
      const id = await replace(store, last.seq)
      await echo(store).resume(id)
      assert.deepEqual(await said(store, id), [...whole, 'other', 're: other'])
    })
  }
})

test('a message is replaced, and not the text that a hook has added after it', async () => {
  const store = memoryStore()
  const adds = hook('beforeStep', (ctx) => ctx.withState((state) => state.withMessage('[context]')), { name: 'adds' })
  await talk(store)
  await echo(store, { use: [adds] }).run('four', { session: 's' })
  const last = (await listPoints(store, 's')).at(-1)!
  await forkSession(store, 's', { at: last.seq, message: 'other', as: 'copy' })
  await rewindSession(store, 's', { at: last.seq, message: 'other' })
  for (const id of ['s', 'copy']) {
    await echo(store).resume(id)
    assert.deepEqual(await said(store, id), [...whole, 'other', 're: other'])
  }
})

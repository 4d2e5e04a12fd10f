import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Use } from '../../core/agent/capability.ts'
import { tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { summarization } from '../../capabilities/summarization/summarization.ts'
import { createAgent } from '../../create-agent.ts'
import { hook } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { textOf } from '../../core/state/message.ts'
import { readSession } from '../log/read-session.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { answerApproval, listApprovals } from './approvals.ts'
import { forkSession, listPoints } from './fork-session.ts'
import { rewindSession } from './rewind-session.ts'

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

const whole = ['one', 're: one', 'two', 're: two', 'three', 're: three']

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

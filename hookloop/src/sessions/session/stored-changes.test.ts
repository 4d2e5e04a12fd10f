import assert from 'node:assert/strict'
import { setImmediate as soon } from 'node:timers/promises'
import { suite, test } from 'node:test'
import type { Session } from '../../core/agent/session.ts'
import { tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { hook } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { textOf } from '../../core/state/message.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'

/** A store whose writes take time, and how many of them were not finished whenever a session was released. */
function slowStore() {
  const inner = memoryStore()
  const unfinished: number[] = []
  const store: SessionStore = {
    ...inner,
    async open(id, options) {
      const writer = await inner.open(id, options)
      let writing = 0
      return {
        ...writer,
        async append(...what) {
          writing++
          await soon()
          await writer.append(...what)
          writing--
        },
        async release() {
          unfinished.push(writing)
          await writer.release()
        },
      }
    },
  }
  return { store, unfinished }
}

/** An agent whose hooks count how often a session starts and ends, and that pays on request if that is allowed. */
function clerk(store: SessionStore) {
  const counts = (['onSessionStart', 'onSessionEnd'] as const).map((trigger) =>
    hook(trigger, (ctx) =>
      ctx.withState((state) => state.withMetadata(trigger, ((state.metadata[trigger] as number | undefined) ?? 0) + 1)),
    ),
  )
  const pay = tool({ name: 'pay', description: 'Pays.', input: { type: 'object' }, ask: true, execute: () => 'paid' })
  const model = scriptedModel(({ messages }) => {
    const last = messages.at(-1)!
    return last.role === 'user' && textOf(last.content) === 'Pay.' ? { toolCalls: [{ name: 'pay' }] } : 'Done.'
  })
  return createAgent({ model, store, use: [pay, approval('suspend'), ...counts] })
}

/** Sends a message that needs approval, and resumes it with another handle of the session. */
async function resumedElsewhere(store: SessionStore, session: Session): Promise<Session> {
  const run = await session.send('Pay.')
  assert.equal(run.status, 'suspended')
  const other = clerk(store).session(session.id)
  await other.resume({ answers: { [run.pending[0]!.id]: 'allow' } })
  return other
}

suite('what changes in a session between two runs is stored before the session is released', () => {
  const changes: { readonly [what: string]: (session: Session, store: SessionStore) => Promise<unknown> } = {
    'metadata of the application': (session) => session.writeMetadata('user', 'ann'),
    'what hooks change when it starts': (session) => session.send('One.'),
    'what hooks change when it starts with an open run': async (session, store) =>
      (await resumedElsewhere(store, session)).send('Two.'),
    'what hooks change when it ends': (session) => session.send('One.').then(() => session.end()),
    'that it is cleared': (session) => session.send('One.').then(() => session.clear()),
    'that it is cleared before its first message': (session) => session.clear(),
  }
  const expected: { readonly [what: string]: object } = {
    'metadata of the application': { user: 'ann' },
    'what hooks change when it starts': { onSessionStart: 1 },
    'what hooks change when it starts with an open run': { onSessionStart: 2 },
    'what hooks change when it ends': { onSessionStart: 1, onSessionEnd: 1 },
    'that it is cleared': { onSessionStart: 2, onSessionEnd: 1 },
    'that it is cleared before its first message': { onSessionStart: 1 },
  }
  for (const [what, change] of Object.entries(changes)) {
    test(what, async () => {
      const { store, unfinished } = slowStore()
      const session = clerk(store).session('s')
      await change(session, store)
      assert.ok(unfinished.length > 0 && unfinished.every((count) => count === 0))
      const { metadata } = (await clerk(store).session('s').state())!
      assert.deepEqual(
        Object.fromEntries(Object.entries(metadata).filter(([key]) => /^(user|onSession)/.test(key))),
        expected[what],
      )
    })
  }
})

test('what hooks change when a session starts with an open run is stored with that run, also if it waits again', async () => {
  const store = memoryStore()
  const run = await clerk(store).session('s').send('Pay.')
  assert.equal(run.status, 'suspended')
  const other = clerk(store).session('s')
  const starts = async (): Promise<unknown> => (await other.state())!.metadata['onSessionStart']
  assert.equal((await other.resume())?.status, 'suspended')
  await assert.rejects(other.send('Two.'), { code: 'STATE_SUSPENDED' })
  assert.equal(await starts(), 1)
  await other.resume({ answers: { [run.pending[0]!.id]: 'allow' } })
  await other.send('Two.')
  assert.equal(await starts(), 2)
})

test('a session that is suspended is suspended once, with its reason, and starts when it is resumed', async () => {
  for (const reason of ['lunch', undefined]) {
    const store = memoryStore()
    const session = clerk(store).session('s')
    await session.send('One.')
    await session.suspend(reason)
    await session.suspend('again')
    const records = (await store.read('s'))!.lines.map((line) => JSON.parse(line) as { t: string; reason?: string })
    const suspensions = records.filter(({ t }) => t === 'suspended')
    assert.deepEqual(
      suspensions.map((record) => ('reason' in record ? record.reason : 'none')),
      [reason ?? 'none'],
    )
    const other = clerk(store).session('s')
    assert.equal(await other.resume(), undefined)
    assert.equal((await other.state())!.metadata['onSessionStart'], 2)
  }
})

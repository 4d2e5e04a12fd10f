import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { setImmediate as soon } from 'node:timers/promises'
import { runInNewContext } from 'node:vm'
import type { Agent } from '../../core/agent/agent.ts'
import type { Run } from '../../core/agent/run.ts'
import { tool } from '../../core/agent/tool.ts'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { memoryStore } from './memory-store.ts'
import type { SessionStore, SessionWriter } from './store.ts'

const never = new Promise<never>(() => undefined)

/** A store whose writers are changed. */
function storeWith(change: (writer: SessionWriter) => Partial<SessionWriter>): SessionStore {
  const store = memoryStore()
  const open: SessionStore['open'] = async (id, options) => {
    const writer = await store.open(id, options)
    return {
      head: writer.head,
      length: writer.length,
      append: (lines, more) => writer.append(lines, more),
      onStop: (listener) => writer.onStop(listener),
      release: () => writer.release(),
      ...change(writer),
    }
  }
  return { ...store, open }
}

/** A store that never answers some of its calls. */
const silent: { readonly [what: string]: () => SessionStore } = {
  open: () => ({ ...memoryStore(), open: () => never }),
  read: () => ({ ...memoryStore(), read: () => never }),
  'its first write': () => storeWith(() => ({ append: () => never })),
  'a later write': () => {
    let writes = 0
    return storeWith((writer) => ({ append: (...args) => (++writes < 3 ? writer.append(...args) : never) }))
  },
}

function agentOn(store: SessionStore): Agent {
  const act = tool({ name: 'act', description: 'Acts.', input: { type: 'object' }, execute: () => 'done' })
  const model = scriptedModel(() => ({ toolCalls: [{ name: 'act' }] }))
  return createAgent({ model, store, use: [act, guards({ maxTimeMs: 60_000 })] })
}

/** Waits for work while timers fire as fast as they can, and returns how much time that took by the timers. */
async function timed<T>(t: TestContext, start: () => Promise<T>): Promise<{ readonly ms: number; readonly ended: T }> {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const ended: T[] = []
  const working = start().then((result) => ended.push(result))
  for (let ms = 0; ; ms += 500) {
    for (let turn = 0; turn < 10; turn++) await soon()
    if (ended.length > 0) return { ms, ended: ended[0]! }
    assert.ok(ms < 600_000, 'it does not end')
    t.mock.timers.tick(500)
    await Promise.race([working, soon()])
  }
}

/** The error of a run, whether it started or not. */
async function failure(running: Promise<Run>): Promise<{ readonly code: unknown; readonly message: string }> {
  const run = await running.catch((error: unknown) => ({ status: 'failed' as const, error: error as Error }))
  return run.status === 'failed' ? (run.error as never) : { code: run.status, message: '' }
}

suite('a store that never answers does not keep a run alive', () => {
  for (const [what, store] of Object.entries(silent)) {
    test(`after its time limit: ${what}`, async (t) => {
      const agent = agentOn(store())
      const { ms, ended } = await timed(t, () => failure(agent.run('Go.', { session: 's' })))
      assert.deepEqual([ended.code, ms >= 60_000 && ms <= 71_000], ['STORE_FAILED', true], `${ms} ms`)
      assert.match(ended.message, /The store has not answered, and the run has reached its time limit/)
    })

    test(`after it was cancelled: ${what}`, async (t) => {
      const agent = agentOn(store())
      const user = new AbortController()
      const { ms, ended } = await timed(t, () => {
        setImmediate(() => user.abort())
        return failure(agent.run('Go.', { session: 's', signal: user.signal }))
      })
      assert.deepEqual([ended.code, ms <= 11_000], ['STORE_FAILED', true], `${ms} ms`)
      assert.match(ended.message, /The store has not answered, and the run was cancelled/)
    })
  }

  test('that has ended, when its session is not released', async (t) => {
    const agent = createAgent({ model: scriptedModel(['Done.']), store: storeWith(() => ({ release: () => never })) })
    const { ms, ended } = await timed(t, () => agent.run('Go.', { session: 's' }))
    assert.deepEqual([ended.status, ms <= 6_000], ['completed', true])
  })
})

test('a session that is opened after its run has given up is released', async (t) => {
  const store = memoryStore()
  const opened = Promise.withResolvers<void>()
  const late: SessionStore['open'] = (id, options) => opened.promise.then(() => store.open(id, options))
  const agent = agentOn({ ...store, open: late })
  await timed(t, () => failure(agent.run('Go.', { session: 's' })))
  opened.resolve()
  await soon()
  assert.equal((await store.open('s')).length, 0)
})

test('a write is awaited also if the store has promises of its own', async () => {
  const Other = runInNewContext('Promise') as PromiseConstructor
  let stored = 0
  const store = storeWith((writer) => ({
    append: (...args) =>
      Other.resolve(soon()).then(() => {
        stored++
        return writer.append(...args)
      }),
  }))
  const run = await createAgent({ model: scriptedModel(['Done.']), store }).run('Go.', { session: 's' })
  const writes = stored
  for (let turn = 0; turn < 20; turn++) await soon()
  assert.deepEqual([run.status, stored > 0, stored], ['completed', true, writes])
})

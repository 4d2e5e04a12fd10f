import assert from 'node:assert/strict'
import { after, suite, test } from 'node:test'
import pg from 'pg'
import { tool } from '../core/agent/tool.ts'
import { approval } from '../capabilities/approval.ts'
import { createAgent } from '../create-agent.ts'
import { guard } from '../core/hooks/hook.ts'
import { scriptedModel } from '../models/scripted.ts'
import { readRuns } from '../sessions/log/read-runs.ts'
import { postgresStore } from '../sessions/stores/postgres-store.ts'
import { startPostgres } from '../sessions/stores/postgres.fixture.ts'
import { textOf } from '../core/state/message.ts'
import { freePort } from '../system/network/free-port.fixture.ts'
import { engines, type EngineName } from './fleet.fixture.ts'
import type { Fleet } from './fleet.ts'
import { Network } from './network.fixture.ts'
import { fleet as fleetOnPostgres } from './postgres/fleet.ts'
import { serveSessions as serveOnPostgres } from './postgres/serve-sessions.ts'
import { fleet as fleetOnRestate } from './restate/fleet.ts'
import { startRestate } from './restate/restate.fixture.ts'
import { serveSessions as serveOnRestate } from './restate/serve-sessions.ts'

/** A worker in this process, and clients of it. Its agent calls a tool once, and then repeats the message. */
async function scene(engine: EngineName) {
  const database = await startPostgres()
  const { connectionString } = database
  const store = postgresStore({ connectionString })
  const calls: string[] = []
  const held = new Map<string, { readonly started: () => void; readonly end: Promise<void> }>()
  const act = tool({
    name: 'act',
    description: 'Acts.',
    input: { type: 'object' },
    execute: async (_args, { state }) => {
      const text = textOf(state.messages.find(({ role }) => role === 'user')!.content)
      calls.push(text)
      held.get(text)?.started()
      await held.get(text)?.end
      return 'done'
    },
  })
  const model = scriptedModel(({ messages }) => {
    const last = messages.at(-1)!
    const input = messages.slice().findLast(({ role }) => role === 'user')!
    return last.role === 'user' ? { toolCalls: [{ name: 'act' }] } : `You said ${textOf(input.content)}`
  })
  const ask = guard('beforeToolUse', (ctx) => (ctx.state.metadata['asks'] === true ? ctx.ask('Really?') : ctx), {
    name: 'ask',
  })
  const agent = createAgent({ model, store, use: [act, ask, approval('suspend')] })
  const closing: (() => Promise<unknown>)[] = []
  const common = { store, calls, connectionString, hold, close }
  if (engine === 'postgres') {
    const worker = await serveOnPostgres({ agent, connectionString })
    const client = async (over?: Network): Promise<Fleet> => {
      const made = await fleetOnPostgres({ connectionString: over?.connectionString ?? connectionString, store })
      closing.push(() => made.close())
      return made
    }
    closing.push(() => worker.close())
    return { ...common, client, network: () => Network.to(database.socket) }
  }
  const restate = await startRestate()
  const port = await freePort()
  const at = { port, host: '127.0.0.1', admin: restate.admin, address: `http://127.0.0.1:${port}` }
  const worker = await serveOnRestate({ agent, ...at, onLog: () => undefined })
  closing.push(() => worker.close().then(() => restate.stop()))
  const client = async (over?: Network): Promise<Fleet> =>
    fleetOnRestate({ ingress: over === undefined ? restate.ingress : `http://${over.host}`, store })
  return { ...common, client, network: () => Network.to(Number(new URL(restate.ingress).port)) }

  /** Calls of the tool for a message do not end until they are released. */
  function hold(text: string): { readonly started: Promise<void>; readonly release: () => void } {
    const [start, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    held.set(text, { started: start.resolve, end: end.promise })
    return { started: start.promise, release: end.resolve }
  }

  async function close(): Promise<void> {
    for (const each of closing) await each()
    await store.close()
    await database.stop()
  }
}

for (const engine of engines)
  suite(`workers on ${engine}`, async () => {
    const { store, calls, connectionString, hold, client, network, close } = await scene(engine)
    after(close)
    const [one, two, three] = [await client(), await client(), await client()]
    const statusesOf = async (id: string) => (await readRuns(store, id)).map(({ status }) => status)
    const callsOf = (text: string): number => calls.filter((each) => each === text).length

    test('drive each of 80 turns that three clients send to 8 sessions at the same time once', async () => {
      const sends = Array.from({ length: 80 }, async (_, i) => {
        const sent = await [one, two, three][i % 3]!.send(`busy-${i % 8}`, `${i}`, { turn: `${i}` })
        return sent.result()
      })
      for (const [i, { status, text }] of (await Promise.all(sends)).entries())
        assert.deepEqual([status, text], ['completed', `You said ${i}`])
      for (let i = 0; i < 8; i++) assert.deepEqual(await statusesOf(`busy-${i}`), Array<string>(10).fill('completed'))
    })

    test('take sessions and turns with any characters in their ids, and the same turn is the same run', async () => {
      const odd = [
        '@:|/ü',
        'a/../b',
        '%2F',
        '%',
        ' a ',
        '?x=1#y',
        "'; DROP TABLE x; --",
        'a\\b',
        '日本 🙂',
        'x'.repeat(256),
      ]
      for (const [i, id] of [...odd, '...', 'a.b:c'].entries()) {
        const turn = i % 2 === 0 ? id : `${id.slice(0, 250)}\n.`
        for (const each of [one, two]) {
          const sent = await each.send(id, id, { turn })
          assert.equal((await sent.result()).text, `You said ${id}`)
        }
        assert.deepEqual([await statusesOf(id), callsOf(id)], [['completed'], 1])
      }
      for (const turn of ['..', '.', '/']) {
        for (const each of [one, two]) await (await each.send('dots', 'Hi', { turn })).result()
      }
      assert.equal((await statusesOf('dots')).length, 3)
    })

    test('never get a session or a turn that cannot be stored', async () => {
      for (const id of ['', 'a\nb', '\0', '\ud800', 'x'.repeat(257)]) {
        const invalid = { code: 'SESSION_ID_INVALID' }
        await assert.rejects(one.send(id, 'Hi'), invalid)
        await assert.rejects(one.resume(id), invalid)
        await assert.rejects(one.stop(id), invalid)
        await assert.rejects(one.answer(id, { approval: 'a', answer: 'allow' }), invalid)
      }
      for (const turn of ['', '\ud800', 'x'.repeat(257)])
        await assert.rejects(one.send('s', 'Hi', { turn }), { code: 'AGENT_INVALID_OPTION', message: /"turn" must be/ })
      if (engine === 'restate')
        for (const id of ['.', '..']) await assert.rejects(one.send(id, 'Hi'), { code: 'SESSION_ID_INVALID' })
    })

    test('take long messages, and texts that a database cannot store as they are', async () => {
      const texts = ['x'.repeat(5_000_000), 'ü'.repeat(2_500_000), 'a\0b', 'a\ud800b', '\\u0000']
      for (const [i, text] of texts.entries()) {
        const sent = await one.send(`odd ${i}`, text, { metadata: { text: text.slice(0, 3) } })
        assert.ok((await sent.result()).text === `You said ${text}`, `text ${i}`)
      }
    })

    test('take one of two different answers to a question', async () => {
      for (let i = 0; i < 4; i++) {
        const id = `asked-${i}`
        const { pending } = await (await one.send(id, id, { metadata: { asks: true } })).result()
        const how = { approval: pending[0]!.id }
        const answers = await Promise.allSettled([
          two.answer(id, { ...how, answer: 'allow', by: 'ann' }),
          three.answer(id, { ...how, answer: { block: 'No.' }, by: 'bob' }),
        ])
        for await (const { type } of one.watch(id)) if (type === 'finished') break
        assert.deepEqual(answers.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
        const [allowed] = answers
        assert.deepEqual([callsOf(id), await statusesOf(id)], [allowed.status === 'fulfilled' ? 1 : 0, ['completed']])
      }
    })

    test('end a run once that is stopped and answered at the same time', async () => {
      for (let i = 0; i < 4; i++) {
        const id = `stopped-${i}`
        const { pending } = await (await one.send(id, id, { metadata: { asks: true } })).result()
        const [, answered] = await Promise.allSettled([
          two.stop(id, { by: 'bob' }),
          three.answer(id, { approval: pending[0]!.id, answer: 'allow' }),
        ])
        for await (const { type } of one.watch(id)) if (type === 'finished') break
        const [status, ...others] = await statusesOf(id)
        assert.deepEqual(others, [])
        if (callsOf(id) === 0) assert.equal(status, 'cancelled')
        else assert.equal(answered.status, 'fulfilled')
      }
    })

    test('drive a turn once whose client loses the engine while it sends, and sends it again', async () => {
      const way = await network()
      const far = await client(way)
      for (let i = 0; i < 8; i++) {
        const id = `lost-${i}`
        const sending = far.send(id, id, { turn: 't' }).catch((error: { readonly code: string }) => error.code)
        for (let turn = 0; turn < i; turn++) await new Promise(setImmediate)
        way.reset()
        const first = await sending
        assert.ok(typeof first !== 'string' || first === 'STORE_FAILED', JSON.stringify(first))
        assert.equal((await (await one.send(id, id, { turn: 't' })).result()).status, 'completed')
        assert.deepEqual([callsOf(id), await statusesOf(id)], [1, ['completed']])
      }
      way.close()
    })

    test('finish a run when the database has connections again after all of them were used', async () => {
      const { started, release } = hold('exhausted')
      const sent = await one.send('exhausted', 'exhausted')
      await started
      const taken: pg.Client[] = []
      const takeAll = async (): Promise<void> => {
        for (;;) {
          const next = new pg.Client({ connectionString })
          next.on('error', () => undefined)
          if ((await next.connect().catch(() => 'none')) === 'none') return
          taken.push(next)
        }
      }
      await takeAll()
      const own = taken.map((each) => (each as unknown as { readonly processID: number }).processID)
      await taken[0]!.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> ALL ($1)', [own])
      await takeAll()
      release()
      await Promise.all(taken.map((each) => each.end()))
      assert.equal((await sent.result()).status, 'completed')
      assert.deepEqual(await statusesOf('exhausted'), ['completed'])
      assert.equal(callsOf('exhausted'), 1)
    })
  })

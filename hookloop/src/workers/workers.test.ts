import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, afterEach, suite, test, type TestContext } from 'node:test'
import type { UIMessage } from 'ai'
import pg from 'pg'
import { isSoak, kills } from '../sessions/stores/kills.fixture.ts'
import type { AgentEvent } from '../core/state/event.ts'
import type { Approval } from '../core/state/tool-call.ts'
import { TestChat } from '../serve/chat-server.fixture.ts'
import { toNodeListener } from '../serve/node-listener.ts'
import { serve } from '../serve/serve.ts'
import { engines, TestFleet, until, type TestWorker } from './fleet.fixture.ts'

/** Starting a worker takes seconds. */
const deaths = isSoak ? kills : 2
/** Sessions that the worker itself has driven until they wait, and all that wait: the others are copies in the database. */
const [DRIVEN, WAITING] = isSoak ? [2_000, 10_000] : [100, 500]

for (const engine of engines) {
  suite(`workers on ${engine}`, async () => {
    const fleet = await TestFleet.start(engine, { agent: 'worker' })
    afterEach(() => fleet.killAll())
    after(() => fleet.stop())

    test('drive a turn to its end, and the same turn is the same run', async () => {
      await fleet.worker()
      const sent = await fleet.sessions.send('one', 'one', { turn: 't', agent: 'worker' })
      const result = await sent.result()
      const again = await (await fleet.sessions.send('one', 'one', { turn: 't', agent: 'worker' })).result()
      assert.deepEqual([result.status, result.text, again], ['completed', 'Done.', result])
      assert.equal(fleet.calls().length, 4)
      const greeted = await (await fleet.sessions.send('greeted', 'Hi', { agent: 'greeter' })).result()
      assert.equal(greeted.text, 'Hello.')
      await assert.rejects(
        fleet.sessions.send('no-agent', 'Hi', { agent: 'unknown' }).then((each) => each.result()),
        { code: 'AGENT_INVALID_OPTION', message: /No agent of this worker takes .* unknown. It has worker, greeter/ },
      )
    })

    test('resume a run when its question is answered, and hold nothing in the meantime', async () => {
      const first = await fleet.worker()
      const sent = await fleet.sessions.send('asks', 'asks', { agent: 'worker', metadata: { asks: true } })
      const result = await sent.result()
      assert.ok(result.status === 'suspended')
      await fleet.kill(first)
      await fleet.worker()
      let { pending } = result
      while (pending.length > 0) {
        const events = fleet.sessions.watch('asks', { after: Infinity })
        await fleet.sessions.answer('asks', { approval: pending[0]!.id, answer: 'allow', by: 'jane' })
        pending = await nextQuestion(events)
      }
      assert.deepEqual(await fleet.outcome('asks'), {
        status: 'completed',
        ends: 1,
        results: ['ok', 'ok', 'ok', 'ok'],
      })
    })

    test('stop a run on request, also one that waits for an answer', async () => {
      await fleet.worker({ TOOL_MS: '60000' })
      const before = fleet.calls().length
      const sent = await fleet.sessions.send('stopped', 'stopped', { agent: 'worker' })
      await until('the next call', () => fleet.calls().length > before)
      await fleet.sessions.stop('stopped', { by: 'jane', reason: 'Wrong branch.' })
      const { status, final } = await sent.result()
      assert.deepEqual([status, final?.message.includes('jane')], ['cancelled', true])
      const asking = await fleet.sessions.send('asking', 'asking', { agent: 'worker', metadata: { asks: true } })
      assert.equal((await asking.result()).status, 'suspended')
      await fleet.sessions.stop('asking')
      assert.equal((await fleet.outcome('asking')).status, 'cancelled')
      await fleet.sessions.stop('asking') // nothing runs
    })

    test('block a question when it expires, and continue the run', async () => {
      await fleet.worker({ EXPIRES_MS: '1' })
      const events = fleet.sessions.watch('expires')
      const options = { agent: 'worker', metadata: { asks: true } }
      const result = await (await fleet.sessions.send('expires', 'expires', options)).result()
      assert.equal(result.status, 'suspended')
      for await (const { type } of events) if (type === 'finished') break
      const { status, results } = await fleet.outcome('expires')
      assert.deepEqual([status, results], ['completed', ['blocked', 'blocked', 'blocked', 'blocked']])
    })

    test('hand their runs over at the end of a step when they are asked to end, and take turns in order', async () => {
      const worker = await fleet.worker({ HOLD: '1' })
      const before = fleet.calls().length
      const first = await fleet.sessions.send('drained', 'drained', { agent: 'worker' })
      await until('the next call', () => fleet.calls().length > before)
      const second = await fleet.sessions.send('drained', 'drained', { agent: 'worker' })
      const ended = fleet.drain(worker)
      await fleet.worker()
      assert.equal(await ended, 0)
      assert.deepEqual([(await first.result()).status, (await second.result()).status], ['completed', 'completed'])
      const calls = fleet.calls().slice(before)
      assert.deepEqual(
        calls.map(({ step }) => step),
        [0, 1, 2, 3, 0, 1, 2, 3],
      )
      assert.ok(new Set(calls.map(({ pid }) => pid)).size === 2, 'both workers took part')
    })

    test('lose no run and repeat no call when workers are killed', async () => {
      const before = fleet.calls().length
      const count = isSoak ? 5 * kills : 30
      const workers = await Promise.all([fleet.worker(), fleet.worker(), fleet.worker()])
      const ids = Array.from({ length: count }, (_, i) => `killed-${i}`)
      const sent = await Promise.all(ids.map((id) => fleet.sessions.send(id, id, { agent: 'worker' })))
      for (let killed = 0; killed < deaths; killed++) {
        const reached = before + ((killed + 1) * 2 * count) / (deaths + 1)
        await until('the next call', () => fleet.calls().length >= reached)
        await fleet.kill(workers.shift()!)
        workers.push(await fleet.worker())
      }
      const results = await Promise.all(sent.map((each) => each.result()))
      assert.deepEqual(new Set(results.map(({ status }) => status)), new Set(['completed']))
      const calls = fleet.calls().slice(before)
      assert.equal(new Set(calls.map(({ key }) => key)).size, calls.length, 'a call was made twice')
      for (const id of ids) {
        const { ends, results: outcomes } = await fleet.outcome(id)
        const made = calls.filter(({ session }) => session === id).length
        const unknown = outcomes.filter((status) => status === 'outcomeUnknown').length
        assert.deepEqual([ends, outcomes.length], [1, 4], id)
        assert.ok(made >= 4 - unknown && made <= 4, `${id}: ${made} calls, ${unknown} unknown`)
      }
    })

    test(`hold nothing for ${WAITING} sessions that wait for an answer, and resume the one that is answered`, async () => {
      const database = new pg.Client({ connectionString: fleet.database.connectionString })
      await database.connect()
      const worker = await fleet.worker()
      const options = { agent: 'worker', metadata: { asks: true } }
      const ask = async (id: string): Promise<string> => {
        const result = await (await fleet.sessions.send(id, id, options)).result()
        assert.equal(result.status, 'suspended')
        return result.pending[0]!.id
      }
      await ask('original')
      await database.query(COPY, ['original', WAITING - DRIVEN])
      await database.end()
      const approvals = new Map<string, string>()
      const ids = Array.from({ length: DRIVEN - 1 }, (_, i) => `driven-${i}`).values()
      const askAll = async (): Promise<void> => {
        for (const id of ids) approvals.set(id, await ask(id))
      }
      await Promise.all(Array.from({ length: 20 }, askAll))
      const now = await holdings(worker)
      assert.equal(now.running, 0)
      assert.ok(now.resources.length < DRIVEN / 2, `it holds ${now.resources.join(', ')}`)

      const [id, approval] = [...approvals][0]!
      const events = fleet.sessions.watch(id, { after: Infinity })
      await fleet.sessions.answer(id, { approval, answer: 'allow', by: 'jane' })
      for await (const { type } of events) if (type === 'suspended') break
      assert.deepEqual((await fleet.outcome(id)).results.slice(0, 1), ['ok'])
    })

    test('let a web server stream what they do, and two tabs on different servers see the same', async (t) => {
      await fleet.worker()
      const chat = new TestChat(await webServer(t, fleet, false), { id: 'plain' })
      await chat.sendMessage({ text: 'plain' })
      assert.deepEqual([chat.texts, chat.states.length], [['plain', 'Done.'], 4])
      const { url } = await webServer(t, fleet, false)
      const loaded = await fetch(`${url}/api/chat/plain`, { headers: { 'x-user': 'ann' } })
      const other = new TestChat({ url }, { id: 'plain', messages: (await loaded.json()) as UIMessage[] })
      assert.deepEqual([other.texts, other.states], [chat.texts, chat.states])
    })

    test('ask through a web server, and continue when the page has answered', async (t) => {
      const first = await fleet.worker()
      const chat = new TestChat(await webServer(t, fleet, true), { id: 'asked' })
      await chat.sendMessage({ text: 'asked' })
      await fleet.kill(first)
      await fleet.worker()
      for (let answered = 1; answered <= 4; answered++) {
        await chat.addToolApprovalResponse({ id: chat.questions[0]!, approved: true })
        const isAnswered = (): boolean => chat.questions.length === 1 || answered === 4
        await chat.until(() => chat.status === 'error' || (chat.status === 'ready' && isAnswered()))
        assert.equal(chat.error, undefined)
      }
      assert.equal(chat.texts.at(-1), 'Done.')
      assert.deepEqual(new Set(chat.states), new Set(['output-available']))
    })

    test('stop a run on request of a page', async (t) => {
      await fleet.worker({ TOOL_MS: '60000' })
      const server = await webServer(t, fleet, false)
      const chat = new TestChat(server, { id: 'stopped' })
      const sent = chat.sendMessage({ text: 'stopped' })
      await chat.until(() => chat.messages.length > 1 && chat.states.includes('input-available'))
      const stopped = await fetch(`${server.url}/api/chat/stopped/stop`, {
        method: 'POST',
        headers: { 'x-user': 'ann', 'content-type': 'application/json' },
        body: '{}',
      })
      assert.equal(stopped.status, 204)
      await sent
      assert.equal(chat.status, 'ready')
    })
  })
}

async function nextQuestion(events: AsyncIterable<AgentEvent>): Promise<readonly Approval[]> {
  for await (const event of events) {
    if (event.type === 'suspended') return event.pending
    if (event.type === 'finished') return []
  }
  return []
}

/** A web server that runs no agent. `asks`: whether tool calls need an approval. */
async function webServer(t: TestContext, fleet: TestFleet, asks: boolean): Promise<{ readonly url: string }> {
  const user = (request: Request): string | undefined => request.headers.get('x-user') ?? undefined
  const handle = serve(fleet.sessions, { user, metadata: () => ({ asks }) })
  const server = createServer(toNodeListener(handle)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

/** What a worker holds now. */
async function holdings(worker: TestWorker) {
  const known = worker.reports.length
  const all = () => worker.reports.slice(known).flatMap((each) => (each.type === 'holds' ? [each] : []))
  worker.kill('SIGUSR2')
  await until('the worker says what it holds', () => all().length > 0)
  return all()[0]!
}

/** Copies a session as often as the second parameter says. */
const COPY = `
  WITH original AS (SELECT * FROM hookloop.sessions WHERE id = $1),
  copies AS (
    INSERT INTO hookloop.sessions (id, epoch, head, length, updated_at, status, agent)
    SELECT 'copy-' || n, epoch, head, length, updated_at, status, agent FROM original, generate_series(1, $2) AS n RETURNING key
  ), lines AS (
    INSERT INTO hookloop.lines (session, n, content)
    SELECT copies.key, n, content FROM copies, original, hookloop.lines AS stored WHERE stored.session = original.key
  )
  INSERT INTO hookloop.pieces (session, seq, content)
  SELECT copies.key, seq, content FROM copies, original, hookloop.pieces AS stored WHERE stored.session = original.key`

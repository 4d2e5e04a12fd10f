import assert from 'node:assert/strict'
import { after, afterEach, suite, test } from 'node:test'
import { isSoak, kills } from '../sessions/stores/kills.fixture.ts'
import type { AgentEvent } from '../core/state/event.ts'
import type { Approval } from '../core/state/tool-call.ts'
import { engines, TestFleet, until } from './fleet.fixture.ts'

/** Starting a worker takes seconds. */
const deaths = isSoak ? kills : 4

for (const engine of engines) {
  suite(`workers on ${engine}`, async () => {
    const fleet = await TestFleet.start(engine)
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
  })
}

async function nextQuestion(events: AsyncIterable<AgentEvent>): Promise<readonly Approval[]> {
  for await (const event of events) {
    if (event.type === 'suspended') return event.pending
    if (event.type === 'finished') return []
  }
  return []
}

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { after, afterEach, mock, suite, test } from 'node:test'
import pg from 'pg'
import { newLockOwner } from '../sessions/stores/lock-owner.ts'
import { engines, TestFleet, until, type TestWorker } from './fleet.fixture.ts'
import { Network } from './network.fixture.ts'

const TEN_MINUTES = 600_000
const [AHEAD, BEHIND] = [{ CLOCK_MS: String(TEN_MINUTES) }, { CLOCK_MS: String(-TEN_MINUTES) }]
/** Of a worker that gets lost in its first call. Other workers take its run over when its lease has expired. */
const SHORT_LEASE = { LEASE_MS: '1000' }

// Most of the time is spent on waiting, so the engines are tested at the same time.
suite('takeover', { concurrency: engines.length }, () => {
  for (const engine of engines) {
    suite(`a run on ${engine}`, { concurrency: 1 }, async () => {
      const fleet = await TestFleet.start(engine)
      const networks: Network[] = []
      afterEach(async () => {
        await fleet.killAll()
        for (const network of networks.splice(0)) network.close()
      })
      after(() => fleet.stop())

      /** Sends a message that one worker takes. Resolves in its first call, which does not end. */
      const start = async (id: string, worker: TestWorker) => {
        const sent = await fleet.sessions.send(id, id, { agent: 'worker' })
        await until('the first call', () => callsOf(id).length === 1)
        assert.equal(worker.reports.filter(({ type }) => type === 'started').length, 1)
        return sent
      }
      const callsOf = (id: string) => fleet.calls().filter(({ session }) => session === id)

      /** The first call was interrupted, the others were made once, by the workers that took over. */
      const checkTakenOver = async (id: string) => {
        assert.deepEqual(await fleet.outcome(id), {
          status: 'completed',
          ends: 1,
          results: ['outcomeUnknown', 'ok', 'ok', 'ok'],
        })
        const calls = callsOf(id)
        assert.deepEqual([calls.map(({ step }) => step), new Set(calls.map(({ key }) => key)).size], [[0, 1, 2, 3], 4])
      }

      /** On Restate several: a connection to their port may lead to the one that is lost, and is then tried again. */
      const startOthers = (clock: { readonly CLOCK_MS: string }) =>
        Promise.all(Array.from({ length: engine === 'restate' ? 2 : 1 }, () => fleet.worker(clock)))

      /** The last worker that is left takes a turn. */
      const checkWorks = async (id: string, others: readonly TestWorker[]) => {
        await Promise.all(others.map((worker) => fleet.kill(worker)))
        const sent = await fleet.sessions.send(id, id, { agent: 'worker' })
        assert.equal((await sent.result()).status, 'completed')
        assert.deepEqual((await fleet.outcome(id)).results, ['ok', 'ok', 'ok', 'ok'])
      }

      test('is taken over from a worker that is paused for longer than its lease, which is fenced when it comes back and then works again', async () => {
        const paused = await fleet.worker({ ...SHORT_LEASE, ...BEHIND, HOLD: '1' })
        const sent = await start('paused', paused)
        paused.kill('SIGSTOP')
        const others = await startOthers(AHEAD)
        assert.equal((await sent.result()).status, 'completed')
        paused.kill('SIGCONT')
        paused.kill('SIGURG') // its call ends
        await until('the worker is fenced', () => hasFailed(paused, 'SESSION_FENCED'))
        await checkTakenOver('paused')
        await checkWorks('after-pause', others)
      })

      for (const cut of ['silence', 'reset'] as const) {
        const how = cut === 'silence' ? 'without an error' : 'after a reset'
        test(`is taken over from a worker that no longer reaches the database, ${how}, and which works again when it does`, async () => {
          const network = await Network.to(fleet.database.socket)
          networks.push(network)
          const lost = await fleet.worker(
            { ...SHORT_LEASE, ...AHEAD, HOLD: '1' },
            { database: network.connectionString },
          )
          const sent = await start(cut, lost)
          network.silence()
          if (cut === 'reset') network.reset()
          lost.kill('SIGURG') // its call ends, and it cannot store that
          const others = await startOthers(BEHIND)
          assert.equal((await sent.result()).status, 'completed')
          await until('the worker cannot store its call', () => hasFailed(lost, 'STORE_FAILED'))
          network.replace()
          await checkTakenOver(cut)
          await checkWorks(`after-${cut}`, others)
        })
      }

      test('is not taken over before its lease has expired by a process whose clock differs', async () => {
        const worker = await fleet.worker({ HOLD: '1' })
        const sent = await start('clock', worker)
        for (const shiftMs of [TEN_MINUTES, -TEN_MINUTES]) {
          mock.timers.enable({ apis: ['Date'], now: Date.now() + shiftMs })
          try {
            await assert.rejects(fleet.store.open('clock'), { code: 'SESSION_BUSY' })
          } finally {
            mock.timers.reset()
          }
        }
        worker.kill('SIGURG')
        assert.equal((await sent.result()).status, 'completed')
      })

      test('that waits for an answer is denied it when it expires, by the clock of the engine', async () => {
        const first = await fleet.worker({ ...AHEAD, EXPIRES_MS: '1' })
        const events = fleet.sessions.watch('expires')
        const options = { agent: 'worker', metadata: { asks: true } }
        const sent = await fleet.sessions.send('expires', 'expires', options)
        assert.equal((await sent.result()).status, 'suspended')
        await fleet.worker({ ...BEHIND, EXPIRES_MS: '1' })
        await fleet.drain(first)
        for await (const { type } of events) if (type === 'finished') break
        const { status, results } = await fleet.outcome('expires')
        assert.deepEqual([status, results], ['completed', ['blocked', 'blocked', 'blocked', 'blocked']])
      })

      test('that waits for an answer waits for as long as it may, if the clock of the worker that asked is behind', async () => {
        await fleet.worker({ ...BEHIND, EXPIRES_MS: String(TEN_MINUTES / 2) })
        const options = { agent: 'worker', metadata: { asks: true } }
        const sent = await fleet.sessions.send('waits', 'waits', options)
        assert.equal((await sent.result()).status, 'suspended')
        assert.equal(
          (await (await fleet.sessions.send('next', 'next', { agent: 'worker' })).result()).status,
          'completed',
        )
        const { status, results } = await fleet.outcome('waits')
        assert.deepEqual([status, results], ['suspended', []])
      })

      test('is taken over by its lease from a worker that was killed and whose process ids others cannot see', async () => {
        const apart = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc']
        const user = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']
        const through = [...apart, ...user]
        const isAllowed = spawnSync(through[0]!, [...through.slice(1), 'true']).status === 0
        if (!isAllowed)
          console.error('NOTE: this system allows no process namespaces. The worker was paused instead of killed.')
        const first = await fleet.worker({ ...SHORT_LEASE, HOLD: '1' }, isAllowed ? { through } : {})
        const sent = await start('apart', first)
        const owner = await ownerOf('apart')
        if (isAllowed) {
          await fleet.kill(first)
          assert.notDeepEqual(placeOf(owner), placeOf(newLockOwner()))
          assert.equal(await ownerOf('apart'), owner, 'it did not release the session')
        } else first.kill('SIGSTOP')
        await fleet.worker({}, isAllowed ? { through } : {})
        assert.equal((await sent.result()).status, 'completed')
        await checkTakenOver('apart')
      })

      const ownerOf = async (id: string): Promise<string> => {
        const client = new pg.Client({ connectionString: fleet.database.connectionString })
        await client.connect()
        const { rows } = await client.query<{ owner: string }>('SELECT owner FROM hookloop.sessions WHERE id = $1', [
          id,
        ])
        await client.end()
        return rows[0]!.owner
      }
    })
  }
})

/** The host, the boot and the process namespace of a lock owner. */
function placeOf(owner: string): readonly string[] {
  return owner.split(' ').slice(0, 3)
}

/** Whether a worker has tried to drive a turn and could not. */
function hasFailed({ reports }: TestWorker, code: string): boolean {
  return reports.some((each) => each.type === 'retried' && each.error?.code === code)
}

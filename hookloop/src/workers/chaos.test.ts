import assert from 'node:assert/strict'
import { after, suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { isSoak } from '../sessions/stores/kills.fixture.ts'
import { engines, TestFleet, until, type TestWorker } from './fleet.fixture.ts'
import { Network } from './network.fixture.ts'

// Runs while everything fails, at moments and in an order that a seed decides: HOOKLOOP_TEST_SEED, which is printed.

const seed = Number(process.env['HOOKLOOP_TEST_SEED'] ?? 1)
const RUNS = isSoak ? 1_000 : 40
const ROUNDS = isSoak ? 20 : 1
const WORKERS = 3
/** How many runs are in progress at a time. */
const OPEN = 10
const LEASE_MS = 2_000
/** In the long form, calls last so long that most failures interrupt some. */
const TOOL_MS = isSoak ? '800' : '100'
/** How long a worker is paused or cut off: longer than its lease, or also until the queue has replaced it. */
const [AWAY_MS, REPLACED_MS] = [2 * LEASE_MS, 18_000]

type Place = { readonly worker: TestWorker; readonly network: Network }

for (const engine of engines) {
  suite(`workers on ${engine}`, async () => {
    const fleet = await TestFleet.start(engine)
    after(() => fleet.stop())

    test('lose no run, make no call twice and report only interrupted calls as unknown when workers, engine, database and network fail', async () => {
      const random = generator(seed)
      const toWorkers = await Network.to(fleet.port)
      const places: Place[] = []
      const all: TestWorker[] = []
      /** Workers that failed, or whose database did. */
      const hurt = new Set<number>()
      const startWorker = async (): Promise<void> => {
        const network = await Network.to(fleet.database.socket)
        const place = { database: network.connectionString, host: toWorkers.host }
        const worker = await fleet.worker({ LEASE_MS: String(LEASE_MS), TOOL_MS }, place)
        places.push({ worker, network })
        all.push(worker)
      }
      const any = (): Place => {
        const place = places[Math.floor(random() * places.length)]!
        hurt.add(place.worker.pid!)
        return place
      }
      const awayMs = (): number => (isSoak && random() < 0.25 ? REPLACED_MS : AWAY_MS)
      const failures: { readonly [name: string]: () => Promise<void> } = {
        'kill a worker': async () => {
          const { worker, network } = places.splice(places.indexOf(any()), 1)[0]!
          await fleet.kill(worker)
          network.close()
          await startWorker()
        },
        'pause a worker': async () => {
          const { worker } = any()
          worker.kill('SIGSTOP')
          await pause(awayMs())
          worker.kill('SIGCONT')
        },
        'reset the connections of a worker': async () => any().network.reset(),
        'cut the network of a worker': async () => {
          const { network } = any()
          network.silence()
          await pause(awayMs())
          network.heal()
        },
        'kill the database': async () => {
          for (const { worker } of places) hurt.add(worker.pid!)
          await fleet.database.kill()
        },
        ...(fleet.restate !== undefined && {
          'kill the engine': () => fleet.restate!.kill(),
          'reset the connections of the engine to workers': async () => toWorkers.reset(),
          'cut the network between the engine and workers': async () => {
            toWorkers.silence()
            await pause(awayMs())
            if (random() < 0.5) toWorkers.heal()
            else toWorkers.replace()
          },
        }),
      }

      await startWorker() // the first one registers the service
      await Promise.all(Array.from({ length: WORKERS - 1 }, startWorker))
      let [ended, failed] = [0, 0]
      const ids = Array.from({ length: RUNS }, (_, i) => `chaos-${i}`)
      const waiting = ids.values()
      const drive = async (): Promise<void> => {
        for (const id of waiting) {
          assert.equal(await runToEnd(id), 'completed')
          ended += 1
        }
      }
      /** As a client does: what was not accepted is sent again, as the same turn. */
      const runToEnd = async (id: string): Promise<string> => {
        for (;;) {
          const sent = await fleet.sessions.send(id, id, { agent: 'worker', turn: 'one' }).catch(isOutage)
          if (sent !== undefined) return (await sent.result()).status
          await pause(50)
        }
      }
      const order = Array.from({ length: ROUNDS }, () => shuffled(Object.keys(failures), random)).flat()
      const fail = async (): Promise<void> => {
        for (const [i, name] of order.entries()) {
          const moment = ((i + random()) / order.length) * 4 * RUNS // as many calls as have been made
          await until(`call ${moment}`, () => fleet.calls().length >= moment || ended === RUNS)
          if (ended === RUNS) break
          await failures[name]!()
          failed += 1
        }
      }
      try {
        await Promise.all([fail(), ...Array.from({ length: OPEN }, drive)])
      } catch (error) {
        console.error(`The seed was ${seed}. The failures were: ${order.join(', ')}.`)
        throw error
      }

      const calls = fleet.calls()
      assert.equal(new Set(calls.map(({ key }) => key)).size, calls.length, 'a call was made twice')
      // A worker that gets no processor time for long enough loses its lease too.
      for (const { pid, reports } of all)
        if (reports.some((each) => each.type === 'retried' && each.error?.code === 'SESSION_FENCED')) hurt.add(pid!)
      let unknown = 0
      for (const id of ids) {
        const { status, ends, results } = await fleet.outcome(id)
        assert.deepEqual([status, ends, results.length], ['completed', 1, 4], id)
        for (const [step, result] of results.entries()) {
          const made = calls.filter((each) => each.session === id && each.step === step)
          if (result === 'ok') assert.equal(made.length, 1, `${id}, step ${step}`)
          else {
            unknown += 1
            assert.equal(result, 'outcomeUnknown', `${id}, step ${step}`)
            assert.ok(
              made.length <= 1 && made.every(({ pid }) => hurt.has(pid)),
              `${id}, step ${step}: not interrupted`,
            )
          }
        }
      }
      const fenced = all.flatMap(({ reports }) =>
        reports.filter((each) => each.type === 'retried' && each.error?.code === 'SESSION_FENCED'),
      ).length
      console.error(
        `Seed ${seed} on ${engine}: ${RUNS} runs, ${failed} failures, ${all.length} workers, ${calls.length} calls, ` +
          `${unknown} unknown, ${fenced} fenced.`,
      )
      for (const { network } of [...places, { network: toWorkers }]) network.close()
    })
  })
}

/** Sending rejects while the engine cannot be reached. */
function isOutage(error: unknown): undefined {
  if ((error as { readonly code?: unknown }).code !== 'STORE_FAILED') throw error
}

/** Numbers from 0 to 1 that a seed decides. */
function generator(from: number): () => number {
  let state = from >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

function shuffled<T>(values: readonly T[], random: () => number): readonly T[] {
  return values
    .map((value) => ({ value, place: random() }))
    .toSorted((a, b) => a.place - b.place)
    .map(({ value }) => value)
}

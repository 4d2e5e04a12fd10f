import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { AgentEvent } from '../../core/state/event.ts'
import { killPoints } from '../stores/kills.fixture.ts'
import { postgresStore } from '../stores/postgres-store.ts'
import { startPostgres } from '../stores/postgres.fixture.ts'
import { sqliteStore } from '../stores/sqlite-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { checkStory, eventsIn } from './event-log.fixture.ts'
import { folder, start, type Place } from './session-processes.fixture.ts'

const STREAM = { STREAM: '1' }

async function newPlace(
  kind: Place['kind'],
  name: string,
): Promise<{ readonly place: Place; readonly store: SessionStore }> {
  const path = join(folder, `${name}-${kind}`)
  const { place, store } = kind === 'postgres' ? await newDatabase() : { place: path, store: sqliteStore(path) }
  after(() => store.close())
  return { place: { kind, place, world: `${path}.log` }, store }
}

async function newDatabase(): Promise<{ readonly place: string; readonly store: SessionStore }> {
  const server = await startPostgres()
  after(() => server.stop())
  return { place: server.connectionString, store: postgresStore({ connectionString: server.connectionString }) }
}

/** A process that follows the events of sessions. `until` returns those of one, once it has all of them. */
function follow(place: Place, ids: readonly string[]) {
  const { process: child, lines, errors, ended } = start(place, ['follow', ids.join()])
  const eventsOf = (id: string): readonly AgentEvent[] =>
    lines.flatMap((line) => (line.startsWith(`${id} `) ? [JSON.parse(line.slice(id.length + 1)) as AgentEvent] : []))
  return {
    stop: async (): Promise<void> => {
      child.kill('SIGKILL')
      await ended
    },
    async until(id: string, isLast: (event: AgentEvent) => boolean): Promise<readonly AgentEvent[]> {
      for (;;) {
        const events = eventsOf(id)
        if (events.some(isLast)) return events
        assert.equal(child.exitCode, null, errors())
        await pause(10)
      }
    },
  }
}

for (const kind of ['sqlite', 'postgres'] as const) {
  test(`another process follows sessions in a ${kind} store that are killed at any write and resumed, without a gap or a repeat`, async () => {
    const { place, store } = await newPlace(kind, 'killed')
    const points = killPoints(Array.from({ length: 18 }, (_, i) => i + 1))
    const ids = points.map((at) => `killed-${at}`)
    const follower = follow(place, ids)
    after(follower.stop)
    let killed = 0
    await Promise.all(
      [0, 1].map(async (half) => {
        for (const at of points.filter((_at, i) => i % 2 === half)) {
          for (const [KILL_AT, KILL_HOW] of [
            [at, 'after'],
            [1 + (at % 4), 'before'],
          ] as const) {
            const child = start(place, ['end', `killed-${at}`], { ...STREAM, KILL_AT: String(KILL_AT), KILL_HOW })
            if ((await child.ended) === 'SIGKILL') killed++
          }
        }
      }),
    )
    const last = start(place, ['end', ids.join()], STREAM)
    assert.equal(await last.ended, 0, last.errors())
    assert.ok(killed >= points.length, `${killed} kills`)
    let retracted = 0
    for (const id of ids) {
      const followed = await follower.until(id, ({ type }) => type === 'finished')
      checkStory(followed)
      assert.deepEqual(followed, await eventsIn(store, id))
      if (followed.some(({ type }) => type === 'retracted')) retracted++
    }
    assert.ok(retracted > 0, 'no process was killed while an answer was written')
  })
}

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { readSession } from '../log/read-session.ts'
import { postgresStore } from '../stores/postgres-store.ts'
import { isSoak, killPoints, kills } from '../stores/kills.fixture.ts'
import { startPostgres } from '../stores/postgres.fixture.ts'
import { checkWorld } from './session-world.fixture.ts'
import { doneIn, folder, start, type Place } from './session-processes.fixture.ts'
import { sqliteStore } from '../stores/sqlite-store.ts'
import type { SessionStore } from '../stores/store.ts'

const WORKERS = ['left', 'right'] as const

type Kill = { readonly atWrite: number; readonly how: 'before' | 'after' } | { readonly afterMs: number }

/** Half of them at a write to the store, the others at a random time. */
function randomKills(count: number): readonly Kill[] {
  return Array.from({ length: count }, (_, i): Kill => {
    if (i % 2 === 0) return { afterMs: Math.random() * 20 }
    return { atWrite: 1 + Math.floor(Math.random() * 24), how: i % 4 === 1 ? 'before' : 'after' }
  })
}

/** Kills processes that run sessions one after the other, then lets one process finish what was started. */
async function killAll(place: Place, name: string, kills: readonly Kill[]): Promise<void> {
  let first = 0
  const begin = (env: NodeJS.ProcessEnv = {}) => start(place, ['work', name, String(first)], env)
  for (const kill of kills) {
    const child = 'atWrite' in kill ? begin({ KILL_AT: String(kill.atWrite), KILL_HOW: kill.how }) : begin()
    if ('afterMs' in kill) {
      await child.spoke
      await pause(kill.afterMs)
      child.process.kill('SIGKILL')
    }
    assert.equal(await child.ended, 'SIGKILL', child.errors())
    first = Math.max(first, ...child.lines.slice(1).map((line) => Number(line) + 1))
  }
  const last = begin()
  while (last.lines.length < 2 && last.process.exitCode === null) await pause(5)
  last.process.kill('SIGKILL')
  await last.ended
}

async function killTest(place: Place, store: SessionStore): Promise<string> {
  await Promise.all(WORKERS.map((name) => killAll(place, name, randomKills(Math.ceil(kills / WORKERS.length)))))
  const { sessions, unknown, open } = await checkWorld(place, store)
  assert.ok(open <= WORKERS.length, `${open} sessions were left behind`)
  assert.ok(sessions > kills / 10, `only ${sessions} sessions ended`)
  assert.ok(!isSoak || unknown > 0, 'no kill hit a call')
  return `${sessions} sessions, ${unknown} outcomes unknown`
}

let places = 0

function newPlace(): { readonly place: Place; readonly store: SessionStore } {
  const place = join(folder, `${places++}.db`)
  const store = sqliteStore(place)
  after(() => store.close())
  return { place: { kind: 'sqlite', place, world: `${place}.log` }, store }
}

test(`D01, D04, D22: ${kills} kills of processes that work on sessions in SQLite lose no result and repeat no call`, async (t) => {
  const { place, store } = newPlace()
  t.diagnostic(await killTest(place, store))
})

test(`D01, D04, D22: ${kills} kills of processes that work on sessions in Postgres lose no result and repeat no call`, async (t) => {
  const server = await startPostgres()
  const { connectionString } = server
  const store = postgresStore({ connectionString })
  after(async () => {
    await store.close()
    await server.stop()
  })
  t.diagnostic(await killTest({ kind: 'postgres', place: connectionString, world: join(folder, 'pg.log') }, store))
})

test('D01, D04: a session whose process is killed at any write to SQLite is resumed, and no call is repeated', async () => {
  const { place, store } = newPlace()
  const writes = Array.from({ length: 26 }, (_, i): Kill => ({ atWrite: i + 1, how: i % 2 === 0 ? 'before' : 'after' }))
  const chosen = killPoints(writes)
  await killAll(place, 'each', chosen)
  const { sessions } = await checkWorld(place, store)
  assert.ok(sessions >= chosen.length / 3, `only ${sessions} sessions ended`)
})

test('D03: of several processes that resume a session one does, and the others get SESSION_BUSY', async () => {
  const { place, store } = newPlace()
  const cut = start(place, ['run', 'wanted'], { KILL_AT: '3', KILL_HOW: 'before' })
  assert.equal(await cut.ended, 'SIGKILL')
  const gate = `${place.world}.open`
  const all = [1, 2, 3].map(() => start(place, ['resume', 'wanted'], { WAIT_FOR: gate }))
  let over = 0
  const two = new Promise((resolve) => all.forEach(({ ended }) => void ended.then(() => ++over === 2 && resolve(over))))
  await Promise.race([two, pause(120_000, undefined, { ref: false })])
  writeFileSync(gate, '')
  await Promise.all(all.map(({ ended }) => ended))
  const said = all.map(({ lines }) => lines.join()).toSorted()
  assert.deepEqual(said, ['SESSION_BUSY', 'SESSION_BUSY', 'suspended 1'])
  const done = doneIn(place).map(({ what }) => what)
  const { open } = readSession((await store.read('wanted'))!.lines)
  assert.equal(open?.pending?.length, 1)
  assert.equal(new Set(done).size, done.length)
})

test('D06: an approval is requested by one process, answered by another and the run resumed by a third', async () => {
  const { place } = newPlace()
  const said = async (...args: readonly string[]): Promise<string> => {
    const child = start(place, args)
    await child.ended
    return child.lines.join()
  }
  const heard = [await said('run', 'asks'), await said('answer', 'asks', '"allow"'), await said('resume', 'asks')]
  assert.deepEqual(heard, ['suspended 1', 'answered', 'completed 0'])
  assert.equal(await said('resume', 'asks'), 'RESUME_NOT_SUSPENDED')
  const paid = doneIn(place).filter(({ what }) => what === 'pay!').length
  assert.equal(paid, 1)
})

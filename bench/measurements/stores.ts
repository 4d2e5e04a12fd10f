import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryStore, postgresStore, sqliteStore, type SessionStore } from 'hookloop/sessions'
import pg from 'pg'
import { startPostgres } from '../../hookloop/src/sessions/stores/postgres.fixture.ts'
import { spread, type Measurement } from '../measurement.ts'

// One record of 300 characters after the other, each stored before the next: what a run waits for when it is recorded. The
// Postgres server is one on this machine that does not wait for the disk.

const RECORD = JSON.stringify({ seq: 1, type: 'end', key: 'run/0/tool/1', value: 'x'.repeat(246) })
const ROUNDS = 20

export const measurement: Measurement = {
  about: 'records in each session store',
  rows: { 'stores.*.recordsPerSec': { label: 'records/s in a store, *' } },
  measure: async () => ({ stores: await measureStores() }),
}

type StoreFigures = {
  /** Of the fastest tenth of the rounds, and of their median. */
  readonly recordsPerSec: number
  readonly medianRecordsPerSec: number
  /** What a record takes up when the store is closed; a memory has no such size. */
  readonly bytesPerRecord: number | null
}

type Target = {
  readonly store: SessionStore
  readonly perRound: number
  readonly size?: () => number | Promise<number>
}

/** By store; without Postgres where no server can be started. */
async function measureStores(): Promise<Record<string, StoreFigures>> {
  const folder = mkdtempSync(join(tmpdir(), 'hookloop-bench-'))
  const inFolder = (name: string): string => join(folder, name)
  const postgres = await startPostgres().catch(() => undefined)
  try {
    const figures: Record<string, StoreFigures> = {
      memory: await measure({ store: memoryStore(), perRound: 5_000 }),
      sqlite: await measure({
        store: sqliteStore(inFolder('normal.db')),
        perRound: 2_000,
        size: () => statSync(inFolder('normal.db')).size,
      }),
      sqliteFull: await measure({
        store: sqliteStore(inFolder('full.db'), { durability: 'full' }),
        perRound: 100,
        size: () => statSync(inFolder('full.db')).size,
      }),
    }
    if (postgres === undefined) return figures
    const { connectionString } = postgres
    return {
      ...figures,
      postgres: await measure({
        store: postgresStore({ connectionString }),
        perRound: 200,
        size: () => sizeOfTable(connectionString),
      }),
    }
  } finally {
    await postgres?.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measure({ store, perRound, size }: Target): Promise<StoreFigures> {
  const writer = await store.open('bench', { create: true })
  const times: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const started = performance.now()
    for (let i = 0; i < perRound; i++) {
      const stored = writer.append([RECORD])
      if (stored !== undefined) await stored
    }
    times.push((performance.now() - started) / 1000)
  }
  await store.close()
  const { fast, median } = spread(times)
  const perSec = (seconds: number): number => Math.round(perRound / seconds)
  return {
    recordsPerSec: perSec(fast),
    medianRecordsPerSec: perSec(median),
    bytesPerRecord: size === undefined ? null : Math.round((await size()) / (ROUNDS * perRound)),
  }
}

async function sizeOfTable(connectionString: string): Promise<number> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  const { rows } = await client.query<{ size: string }>(`SELECT pg_total_relation_size('hookloop.lines') AS size`)
  await client.end()
  return Number(rows[0]!.size)
}

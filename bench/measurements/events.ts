import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { createAgent } from 'hookloop'
import { memoryStore, sqliteStore, watchSession, type SessionStore } from 'hookloop/sessions'
import { scriptedModel } from 'hookloop/testing'
import { round, spread, type Measurement } from '../measurement.ts'

// Pieces of an answer in writes of twenty, by CPU time, and the events of a session as a watcher reads them. The lag is from the
// start of a write in one process until another process has it.

const ROUNDS = 40
const STEPS = 100
const PIECES = 20
const LAGS = 300

export const measurement: Measurement = {
  about: 'events in each session store, and how late another process gets them',
  rows: {
    'events.*.usPerPiece': { label: 'µs per piece of an answer, *' },
    'events.*.watchedPerSec': { label: 'events/s read by a watcher, *' },
    'eventLag.*.medianMs': { label: 'ms until another process has an event, median, *' },
    'eventLag.*.worstMs': { label: 'ms until another process has an event, 99 %, *' },
  },
  async measure() {
    const folder = mkdtempSync(join(tmpdir(), 'hookloop-bench-'))
    const place = join(folder, 'events.db')
    try {
      const events = {
        memory: await measureStore(memoryStore()),
        sqlite: await measureStore(sqliteStore(place)),
      }
      const eventLag = { sqlite: await measureLag(place) }
      return { events, eventLag }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
}

const RUNS = 200

async function measureStore(store: SessionStore): Promise<Record<string, number>> {
  const writer = await store.open('bench', { create: true })
  const times: number[] = []
  let seq = 0
  for (let turn = 0; turn < ROUNDS; turn++) {
    const started = process.cpuUsage()
    for (let i = 0; i < STEPS; i++) {
      const pieces = Array.from({ length: PIECES }, () => ({
        seq: ++seq,
        text: '{"type":"text","delta":"some words "}',
      }))
      void writer.append([], { pieces })
    }
    const { user, system } = process.cpuUsage(started)
    times.push(user + system)
    await writer.append(['line'], { startsTurn: true })
  }
  const agent = createAgent({ model: scriptedModel(() => 'Done.'), store })
  for (let i = 0; i < RUNS; i++) await agent.run('Go.', { session: 'runs' })
  const started = performance.now()
  let read = 0
  for await (const event of watchSession(store, 'runs', { follow: false })) if (event.seq > 0) read++
  const watchedPerSec = Math.round(read / ((performance.now() - started) / 1000))
  await store.close()
  return { usPerPiece: round(spread(times).fast / (STEPS * PIECES)), watchedPerSec }
}

/** Another process writes an event now and then; this one watches. Both have the same clock. */
async function measureLag(place: string): Promise<Record<string, number>> {
  const store = sqliteStore(place)
  const args = [...process.execArgv, fileURLToPath(import.meta.url), place]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const lags: number[] = []
  let last = 0
  await new Promise<void>((resolve) => {
    const onChange = async (): Promise<void> => {
      const stored = await store.read('lag', { after: Infinity, pieces: { after: last, before: Infinity } })
      for (const { seq, text } of stored?.pieces ?? []) {
        last = seq
        if (lags.push(performance.timeOrigin + performance.now() - Number(text)) === LAGS) resolve()
      }
    }
    store.watch('lag', () => void onChange(), resolve)
  })
  child.kill()
  await store.close()
  const sorted = lags.toSorted((a, b) => a - b)
  return { medianMs: round(sorted[LAGS / 2]!), worstMs: round(sorted[Math.floor(LAGS * 0.99)]!) }
}

async function writeNowAndThen(place: string): Promise<void> {
  const store = sqliteStore(place)
  const writer = await store.open('lag', { create: true })
  for (let seq = 1; ; seq++) {
    const at = performance.timeOrigin + performance.now()
    await writer.append(['line'], { pieces: [{ seq, text: String(at) }] })
    await new Promise((resolve) => setTimeout(resolve, 3 + Math.random() * 20))
  }
}

const [, main, place] = process.argv
if (main === fileURLToPath(import.meta.url) && place !== undefined) await writeNowAndThen(place)

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { memoryStore, sqliteStore, type SessionStore, type StoredEvent } from 'hookloop/stores'
import { round, spread, type Measurement } from '../measurement.ts'

// Events as a run stores them, by CPU time: six with the lines of a step, and pieces of an answer in writes of twenty. The same lines are
// stored without events in turn, so the difference is what an event costs. The lag is from the start of the write in one process
// to the event in another.

const ROUNDS = 40
const STEPS = 100
const PER_STEP = 6
const PIECES = 20
const LAGS = 300

export const measurement: Measurement = {
  about: 'events in each session store, and how late another process gets them',
  rows: {
    'events.sqlite.usPerEvent': { label: 'µs per event stored with a step, SQLite', goal: 10 },
    'events.*.usPerEvent': { label: 'µs per event stored with a step, *' },
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

const LINE = JSON.stringify({ seq: 1, type: 'end', key: 'run/0/tool/1', value: 'x'.repeat(246) })

function textOf(seq: number, type: string, more: object): string {
  return JSON.stringify({ seq, at: 1_700_000_000_000, session: 'bench', run: 'run-1', step: 3, type, ...more })
}

async function measureStore(store: SessionStore): Promise<Record<string, number>> {
  const [plain, writer] = [await store.open('plain', { create: true }), await store.open('bench', { create: true })]
  const [without, withEvents, pieces]: [number[], number[], number[]] = [[], [], []]
  let seq = 0
  const next = (count: number, type: string, more: object, transient = false): readonly StoredEvent[] =>
    Array.from({ length: count }, () => ({ text: textOf(++seq, type, more), transient }))
  const timed = (times: number[], work: () => void): void => {
    const started = process.cpuUsage()
    for (let i = 0; i < STEPS; i++) work()
    const { user, system } = process.cpuUsage(started)
    times.push(user + system)
  }
  for (let turn = 0; turn < ROUNDS; turn++) {
    timed(without, () => void plain.append([LINE]))
    timed(
      withEvents,
      () => void writer.append([LINE], { events: next(PER_STEP, 'toolFinished', { of: 'y'.repeat(120) }) }),
    )
    timed(pieces, () => void writer.append([], { events: next(PIECES, 'text', { text: 'some words ' }, true) }))
    const [started] = next(1, 'input', {})
    await writer.append([], { events: [{ ...started!, startsTurn: true }] })
  }
  const started = performance.now()
  let read = 0
  for await (const event of store.watch('bench', { follow: false })) if (event.seq > 0) read++
  const watchedPerSec = Math.round(read / ((performance.now() - started) / 1000))
  await store.close()
  return {
    usPerEvent: round((spread(withEvents).fast - spread(without).fast) / (STEPS * PER_STEP)),
    medianUsPerEvent: round((spread(withEvents).median - spread(without).median) / (STEPS * PER_STEP)),
    usPerPiece: round(spread(pieces).fast / (STEPS * PIECES)),
    watchedPerSec,
  }
}

/** Another process writes an event now and then; this one watches. Both have the same clock. */
async function measureLag(place: string): Promise<Record<string, number>> {
  const store = sqliteStore(place)
  const args = [...process.execArgv, fileURLToPath(import.meta.url), place]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const lags: number[] = []
  for await (const event of store.watch('lag')) {
    lags.push(performance.timeOrigin + performance.now() - event.at)
    if (lags.length === LAGS) break
  }
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
    await writer.append([LINE], { events: [{ text: JSON.stringify({ seq, at }) }] })
    await new Promise((resolve) => setTimeout(resolve, 3 + Math.random() * 20))
  }
}

const [, main, place] = process.argv
if (main === fileURLToPath(import.meta.url) && place !== undefined) await writeNowAndThen(place)

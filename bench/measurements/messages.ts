import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAgent, guards } from 'hookloop'
import { sqliteStore, type SessionStore } from 'hookloop/sessions'
import { inFreshProcess, round, spread, type Measurement } from '../measurement.ts'
import { countingModel } from '../work.ts'

// The messages of one conversation, one after the other: a short question, an answer without a tool call. Cold is the
// same message in a fresh process, with the time that it takes to import what it needs.

const NUMBERS = [50, 500, 2000, 5000]
const AROUND = 10
const PROCESSES = 5
/** Where messages get slower with each one, the last of them would take longer than everything else. */
const LIMIT_MS = 120_000

export const measurement: Measurement = {
  about: 'the 50th to the 5,000th message of a session in SQLite, warm and cold',
  rows: {
    'msOfMessage.warm.*': { label: 'ms for message * of a session' },
    messageGrowth: { label: 'message 5,000, times message 50', goal: 1.3 },
    'msOfMessage.cold.*': { label: 'ms for message * in a fresh process', goal: 50 },
  },
  async measure() {
    const folder = mkdtempSync(join(tmpdir(), 'hookloop-bench-'))
    const file = join(folder, 'sessions.db')
    const store = sqliteStore(file)
    try {
      const warm: Record<number, number> = {}
      const cold: Record<number, number> = {}
      const send = sender(store)
      let recent: number[] = []
      const ends = performance.now() + LIMIT_MS
      for (let number = 1; number <= NUMBERS.at(-1)! && performance.now() < ends; number++) {
        const started = performance.now()
        await send()
        recent.push(performance.now() - started)
        if (!NUMBERS.includes(number)) continue
        warm[number] = round(spread(recent.slice(-AROUND)).median)
        recent = []
        cold[number] = await coldMs(file)
      }
      const messageGrowth = warm[5000] === undefined ? null : round(warm[5000] / warm[50]!)
      return { msOfMessage: { warm, cold }, messageGrowth }
    } finally {
      await store.close()
      rmSync(folder, { recursive: true, force: true })
    }
  },
}

function sender(store: SessionStore): () => Promise<void> {
  const agent = createAgent({ model: countingModel(1), store, use: [guards({ maxTokens: 1e12 })] })
  return async () => {
    const { status } = await agent.run('go', { session: 'conversation' })
    if (status !== 'completed') throw new Error(`The run is ${status}.`)
  }
}

async function coldMs(file: string): Promise<number> {
  const times: number[] = []
  for (let process = 0; process < PROCESSES; process++)
    times.push(await inFreshProcess(new URL('../cold-message.ts', import.meta.url).href, 'coldMessageMs', file))
  return round(Math.min(...times))
}

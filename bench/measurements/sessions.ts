import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryStore, sqliteStore, type SessionStore } from 'hookloop/sessions'
import { round, spread, type Measurement } from '../measurement.ts'
import { agentFor } from '../work.ts'

// The same run with and without a store, in turn and in one process: what it costs to keep what happens. Each step has a
// model call and a tool call. The start of a tool is stored before it runs; the model answers at once, so whatever else there
// is to write of a step shares that write.

const STEPS = 200

export const measurement: Measurement = {
  about: 'a run of 200 steps in a session, beside one without',
  rows: {
    'sessions.sqlite.usPerStepOver': { label: 'µs added per stored step, SQLite', goal: 40 },
    'sessions.*.usPerStepOver': { label: 'µs added per stored step, *' },
    storedBytesPerStep: { label: 'bytes stored per step, SQLite', goal: 900 },
    'sessions.sqlite.growth': { label: 'bytes of 1,000 steps, beside ten times those of 100', goal: 1.3 },
  },
  async measure() {
    const byStore = await measureSessions()
    return { sessions: byStore, storedBytesPerStep: byStore['sqlite']!.bytesPerStep }
  },
}

type SessionFigures = {
  /** What a step takes longer than without a store, by the fastest tenth of the rounds and by their median. */
  readonly usPerStepOver: number
  readonly medianUsPerStepOver: number
  /** How many times as long as without one, by the fastest tenth. */
  readonly timesAsLong: number
  /** Characters written for each step. */
  readonly bytesPerStep: number
  /** What 1,000 steps write, against ten times what 100 steps write. */
  readonly growth: number
}

async function measureSessions(rounds = 60): Promise<Record<string, SessionFigures>> {
  const folder = mkdtempSync(join(tmpdir(), 'hookloop-bench-'))
  const stores: Record<string, SessionStore> = {
    memory: memoryStore(),
    sqlite: sqliteStore(join(folder, 'sessions.db')),
  }
  try {
    const agents = Object.entries(stores).map(([name, store]) => ({ name, ...keptAgent(store, STEPS) }))
    const bare = agentFor(STEPS)
    const times = new Map<string, number[]>([
      ['none', []],
      ...agents.map(({ name }) => [name, []] as [string, number[]]),
    ])
    for (let turn = -10; turn < rounds; turn++) {
      const took = async (name: string, run: () => Promise<unknown>): Promise<void> => {
        const started = performance.now()
        await run()
        if (turn >= 0) times.get(name)!.push(((performance.now() - started) * 1000) / STEPS)
      }
      await took('none', () => bare.run('go'))
      for (const { name, run } of agents) await took(name, run)
    }
    const none = spread(times.get('none')!)
    const figures: Record<string, SessionFigures> = {}
    for (const [name, store] of Object.entries(stores)) {
      const own = spread(times.get(name)!)
      const [short, long] = [await written(store, 100), await written(store, 1000)]
      figures[name] = {
        usPerStepOver: round(own.fast - none.fast),
        medianUsPerStepOver: round(own.median - none.median),
        timesAsLong: round(own.fast / none.fast),
        bytesPerStep: Math.round((long - short) / 900),
        growth: round(long / (short * 10)),
      }
    }
    return figures
  } finally {
    for (const store of Object.values(stores)) await store.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

function keptAgent(store: SessionStore, steps: number): { readonly run: () => Promise<string> } {
  const agent = agentFor(steps, [], store)
  return {
    run: async () => {
      const id = crypto.randomUUID()
      const { status } = await agent.run('go', { session: id })
      if (status !== 'completed') throw new Error(`the run is ${status}`)
      return id
    },
  }
}

/** How many bytes a run of so many steps writes. */
async function written(store: SessionStore, steps: number): Promise<number> {
  const { lines } = (await store.read(await keptAgent(store, steps).run()))!
  return lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0)
}

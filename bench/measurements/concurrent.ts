import { inFreshProcess, spread, type Measurement, type Spread } from '../measurement.ts'
import { agentFor, bareLoop } from '../work.ts'

const RUNS = 1000
const STEPS = 10

export const measurement: Measurement = {
  about: '1,000 runs of 10 steps at once, in this process and in fresh ones',
  rows: {
    coldConcurrentRunsPerSec: { label: 'runs/s, 1,000 at once, in a fresh process', goal: 10_000 },
    bareColdConcurrentRunsPerSec: { label: '  the same with the hand-written loop' },
    concurrentRunsPerSec: { label: 'runs/s, 1,000 at once, in a warm process' },
    bareConcurrentRunsPerSec: { label: '  the same with the hand-written loop' },
  },
  async measure() {
    const cold: Record<'own' | 'bare', number[]> = { own: [], bare: [] }
    for (let process = 0; process < 10; process++) {
      cold.own.push(await inFreshProcess(import.meta.url, 'secondsOfOwnRuns'))
      cold.bare.push(await inFreshProcess(import.meta.url, 'secondsOfBareRuns'))
    }
    const [own, bare] = [await warm(secondsOfOwnRuns), await warm(secondsOfBareRuns)]
    return {
      coldConcurrentRunsPerSec: perSec(spread(cold.own).fast),
      bareColdConcurrentRunsPerSec: perSec(spread(cold.bare).fast),
      concurrentRunsPerSec: perSec(own.fast),
      bareConcurrentRunsPerSec: perSec(bare.fast),
      median: {
        coldConcurrentRunsPerSec: perSec(spread(cold.own).median),
        concurrentRunsPerSec: perSec(own.median),
        bareConcurrentRunsPerSec: perSec(bare.median),
      },
    }
  },
}

export function secondsOfOwnRuns(): Promise<number> {
  const agent = agentFor(STEPS)
  return secondsOf(() => agent.run('go'))
}

export function secondsOfBareRuns(): Promise<number> {
  return secondsOf(() => bareLoop(STEPS))
}

async function secondsOf(run: () => Promise<unknown>): Promise<number> {
  const started = performance.now()
  await Promise.all(Array.from({ length: RUNS }, run))
  return (performance.now() - started) / 1000
}

async function warm(seconds: () => Promise<number>): Promise<Spread> {
  const times: number[] = []
  for (let round = -10; round < 60; round++) {
    const took = await seconds()
    if (round >= 0) times.push(took)
  }
  return spread(times)
}

function perSec(seconds: number): number {
  return Math.round(RUNS / seconds)
}

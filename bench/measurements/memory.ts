import { inFreshProcess, round, type Measurement } from '../measurement.ts'
import { agentFor, bareLoop } from '../work.ts'

const STEPS = 1000

export const measurement: Measurement = {
  about: 'the peak memory of a run of 1,000 steps, in fresh processes',
  rows: {
    peakKBPerStep: { label: 'KB of peak memory per step', goal: 6 },
    barePeakKBPerStep: { label: '  the same with the hand-written loop' },
  },
  async measure() {
    const [own, bare]: [number[], number[]] = [[], []]
    for (let process = 0; process < 5; process++) {
      own.push(await inFreshProcess(import.meta.url, 'peakKBOfOwnRun'))
      bare.push(await inFreshProcess(import.meta.url, 'peakKBOfBareRun'))
    }
    return {
      peakKBPerStep: round(Math.min(...own) / STEPS),
      barePeakKBPerStep: round(Math.min(...bare) / STEPS),
    }
  },
}

export function peakKBOfOwnRun(): Promise<number> {
  const [short, long] = [agentFor(10), agentFor(STEPS)]
  return peakKBOf((steps) => (steps === STEPS ? long : short).run('go'))
}

export function peakKBOfBareRun(): Promise<number> {
  return peakKBOf(bareLoop)
}

/** By how much a long run raises the peak above that of a short one. */
async function peakKBOf(run: (steps: number) => Promise<unknown>): Promise<number> {
  await run(10)
  const before = process.resourceUsage().maxRSS
  await run(STEPS)
  return process.resourceUsage().maxRSS - before
}

import { inFreshProcess, round, type Measurement } from '../measurement.ts'
import { agentFor, bareLoop } from '../work.ts'

// In a run of 1,000 steps most of the peak is memory of V8's compilers, which optimize all code of the loop at once. A
// longer run shows what the steps themselves take.
const STEPS = 1000
const LONG = 10_000

export const measurement: Measurement = {
  about: 'the peak memory of runs of 1,000 and 10,000 steps, in fresh processes',
  rows: {
    peakKBPerStep: { label: 'KB of peak memory per step', goal: 6 },
    barePeakKBPerStep: { label: '  the same with the hand-written loop' },
    peakKBPerStepOfLongRun: { label: 'KB of peak memory per step of a run of 10,000 steps', goal: 6 },
  },
  async measure() {
    const [own, bare, long]: [number[], number[], number[]] = [[], [], []]
    for (let process = 0; process < 5; process++) {
      own.push(await inFreshProcess(import.meta.url, 'peakKBOfOwnRun', STEPS))
      bare.push(await inFreshProcess(import.meta.url, 'peakKBOfBareRun', STEPS))
      long.push(await inFreshProcess(import.meta.url, 'peakKBOfOwnRun', LONG))
    }
    return {
      peakKBPerStep: round(Math.min(...own) / STEPS),
      barePeakKBPerStep: round(Math.min(...bare) / STEPS),
      peakKBPerStepOfLongRun: round(Math.min(...long) / LONG),
    }
  },
}

export function peakKBOfOwnRun(steps: number): Promise<number> {
  const [short, long] = [agentFor(10), agentFor(steps)]
  return peakKBOf(
    () => short.run('go'),
    () => long.run('go'),
  )
}

export function peakKBOfBareRun(steps: number): Promise<number> {
  return peakKBOf(
    () => bareLoop(10),
    () => bareLoop(steps),
  )
}

/** By how much a long run raises the peak above that of a short one. */
async function peakKBOf(short: () => Promise<unknown>, long: () => Promise<unknown>): Promise<number> {
  await short()
  const before = process.resourceUsage().maxRSS
  await long()
  return process.resourceUsage().maxRSS - before
}

import { round, sideBySide, type Measurement } from '../measurement.ts'
import { agentFor } from '../work.ts'

const LENGTHS = [100, 1000, 10_000]

export const measurement: Measurement = {
  about: 'runs of 100, 1,000 and 10,000 steps',
  rows: {
    'usPerStepBySteps.*': { label: 'µs per step in a run of * steps', goal: 4 },
    growthExponent: { label: 'growth exponent, 100 to 10,000 steps', goal: 1.1 },
  },
  async measure() {
    const sides = LENGTHS.map((steps) => {
      const agent = agentFor(steps)
      return async () => {
        for (let run = 0; run < 10_000 / steps; run++) await agent.run('go') // the same number of steps in each round
      }
    })
    const perStep = (await sideBySide(30, 10_000, sides)).map(({ fast }) => fast)
    return {
      usPerStepBySteps: Object.fromEntries(LENGTHS.map((steps, i) => [steps, round(perStep[i]!)])),
      growthExponent: round(1 + Math.log(perStep[2]! / perStep[0]!) / Math.log(100)),
    }
  },
}

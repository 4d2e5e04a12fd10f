import { round, sideBySide, type Measurement, type Spread } from '../measurement.ts'
import { agentFor, bareLoop } from '../work.ts'

const STEPS = 1000

export const measurement: Measurement = {
  about: 'a run of 1,000 steps, beside the hand-written loop',
  rows: {
    usPerStep: { label: 'µs per step', goal: 4 },
    bareUsPerStep: { label: 'µs per step of the hand-written loop' },
    usPerStepOverBare: { label: 'µs per step over the hand-written loop' },
    bytesPerStep: { label: 'bytes of state per step, as JSON' },
  },
  async measure() {
    const agent = agentFor(STEPS)
    const sides = [() => agent.run('go'), () => bareLoop(STEPS)]
    await sideBySide(10, STEPS, sides)
    const [own, bare] = (await sideBySide(100, STEPS, sides)) as [Spread, Spread]
    const of = (kind: keyof Spread) => ({
      usPerStep: round(own[kind]),
      bareUsPerStep: round(bare[kind]),
      usPerStepOverBare: round(own[kind] - bare[kind]),
    })
    return { ...of('fast'), bytesPerStep: await bytesPerStep(), median: of('median') }
  },
}

async function bytesPerStep(): Promise<number> {
  const [short, long] = [await agentFor(100).run('go'), await agentFor(1100).run('go')]
  return round((JSON.stringify(long.state).length - JSON.stringify(short.state).length) / 1000)
}

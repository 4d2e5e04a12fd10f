import { execFileSync } from 'node:child_process'
import { agentFor, bareLoop, noopHooks } from './work.ts'

// Taken side by side in one process: rounds alternate between the sides, so that a noisy machine disturbs both alike,
// and the fastest tenth of many short rounds is reported, because noise only ever adds. `--json` prints one object.

type Figures = {
  usPerStep: number
  bareUsPerStep: number
  usPerStepOverBare: number
  nsPerHook: number
  growthExponent: number
  usPerStepBySteps: Record<number, number>
  bytesPerStep: number
  concurrentRunsPerSec: number
  bareConcurrentRunsPerSec: number
  importMs: number
  node: string
}

if (process.argv.includes('--help')) {
  console.log(
    'Usage: npm run bench [-- --json]\n\nMeasures Hookloop beside a hand-written loop; takes half a minute. See docs/performance.md.',
  )
  process.exit(0)
}

const HOOKS = 20
const say = process.argv.includes('--json') ? () => undefined : (text: string) => process.stderr.write(`${text}\n`)

say('warming up …')
const agent = agentFor(1000)
const hookedAgent = agentFor(1000, noopHooks(HOOKS))
const smallAgent = agentFor(10)
for (let i = 0; i < 10; i++) {
  await agent.run('go')
  await hookedAgent.run('go')
  await bareLoop(1000)
  await Promise.all(Array.from({ length: 100 }, () => smallAgent.run('go')))
}

say('one run of 1,000 steps, against the hand-written loop …')
const [own, bare] = await sideBySide(100, 1000, [() => agent.run('go'), () => bareLoop(1000)])

say(`the same with ${HOOKS} more hooks that do nothing …`)
const [plain, hooked] = await sideBySide(100, 1000, [() => agent.run('go'), () => hookedAgent.run('go')])

say('growth from 100 to 10,000 steps …')
const lengths = [100, 1000, 10_000]
const sides = lengths.map((steps) => {
  const grown = agentFor(steps)
  return async () => {
    for (let run = 0; run < 10_000 / steps; run++) await grown.run('go') // as many steps in each round, whatever their length
  }
})
const perStep = await sideBySide(30, 10_000, sides)
const usPerStepBySteps = Object.fromEntries(lengths.map((steps, i) => [steps, perStep[i]!]))

say('1,000 runs of 10 steps at once …')
const concurrent = {
  own: await runsPerSecond(() => smallAgent.run('go')),
  bare: await runsPerSecond(() => bareLoop(10)),
}

say('bytes of state, and the time to import …')
const [short, long] = [await agentFor(100).run('go'), await agentFor(1100).run('go')]
const bytes = (JSON.stringify(long.state).length - JSON.stringify(short.state).length) / 1000

const figures: Figures = {
  usPerStep: round(own!),
  bareUsPerStep: round(bare!),
  usPerStepOverBare: round(own! - bare!),
  nsPerHook: round(((hooked! - plain!) * 1000) / HOOKS),
  growthExponent: round(1 + Math.log(usPerStepBySteps[10_000]! / usPerStepBySteps[100]!) / Math.log(100)),
  usPerStepBySteps: Object.fromEntries(Object.entries(usPerStepBySteps).map(([steps, us]) => [steps, round(us)])),
  bytesPerStep: round(bytes),
  concurrentRunsPerSec: Math.round(concurrent.own),
  bareConcurrentRunsPerSec: Math.round(concurrent.bare),
  importMs: round(importTime()),
  node: process.version,
}

if (process.argv.includes('--json')) {
  console.log(JSON.stringify(figures))
} else {
  const line = (what: string, value: string, goal: string): void =>
    console.log(`${what.padEnd(44)} ${value.padStart(12)}   ${goal}`)
  line('µs per step', `${figures.usPerStep}`, `hand-written loop: ${figures.bareUsPerStep}`)
  line('µs per step over the hand-written loop', `${figures.usPerStepOverBare}`, 'goal: at most 10')
  line('ns per further hook call', `${figures.nsPerHook}`, 'goal: at most 200')
  line('growth exponent, 100 to 10,000 steps', `${figures.growthExponent}`, 'goal: at most 1.1')
  for (const [steps, us] of Object.entries(figures.usPerStepBySteps))
    line(`  µs per step in a run of ${steps}`, `${us}`, '')
  line('bytes of state per step, as JSON', `${figures.bytesPerStep}`, '')
  line(
    'runs/s, 1,000 at once, 10 steps each',
    `${figures.concurrentRunsPerSec}`,
    'goal: 8,000, or a quarter of the next line',
  )
  line('  the same with the hand-written loop', `${figures.bareConcurrentRunsPerSec}`, '')
  line('ms to import hookloop', `${figures.importMs}`, 'goal: under 40')
}

/** The time per step of each side, in µs, over alternating rounds. */
async function sideBySide(
  rounds: number,
  steps: number,
  sides: readonly (() => Promise<unknown>)[],
): Promise<number[]> {
  const times: number[][] = sides.map(() => [])
  for (let round = 0; round < rounds; round++) {
    for (const [i, side] of sides.entries()) {
      const started = performance.now()
      await side()
      times[i]!.push(((performance.now() - started) * 1000) / steps)
    }
  }
  return times.map(fastest)
}

async function runsPerSecond(run: () => Promise<unknown>): Promise<number> {
  const rates: number[] = []
  for (let round = 0; round < 60; round++) {
    const started = performance.now()
    await Promise.all(Array.from({ length: 1000 }, run))
    rates.push(1_000_000 / (performance.now() - started))
  }
  return 1 / fastest(rates.map((rate) => 1 / rate))
}

/** In fresh processes, because a module is loaded once; of the built library, because that is what users import. */
function importTime(): number {
  const code = `const t = performance.now(); await import('hookloop'); console.log(performance.now() - t)`
  const once = (): number =>
    Number(
      execFileSync(process.execPath, ['--input-type=module', '-e', code], {
        cwd: import.meta.dirname,
        encoding: 'utf8',
      }),
    )
  return fastest([once(), once(), once(), once(), once()])
}

/** What a tenth of the values lie below. */
function fastest(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 10)]!
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}

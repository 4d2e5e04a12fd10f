import { execFileSync } from 'node:child_process'
import { measureSessions, type SessionFigures } from './sessions.ts'
import { measureShellHooks, type ShellFigures } from './shell-hooks.ts'
import { measureStores, type StoreFigures } from './stores.ts'
import { CHUNKS, readBare, readEvents, streamingAgent } from './stream.ts'
import { agentFor, bareLoop, noopHooks } from './work.ts'

// Both sides are measured in one process, in alternating rounds, so that a noisy machine affects both equally. Two figures
// come from many short rounds: the fastest tenth, which is the cost of the code, and the median, which includes garbage
// collection and other processes. `--json` prints one object.

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
  usPerStreamedChunk: number
  bareUsPerStreamedChunk: number
  importMs: number
  emptyImportMs: number
  /** Records of 300 characters, one after the other. */
  stores: Record<string, StoreFigures>
  /** The same run, stored in a session. */
  sessions: Record<string, SessionFigures>
  shellHooks: ShellFigures
  /** The medians of the rounds instead of their fastest tenths. */
  median: {
    usPerStep: number
    bareUsPerStep: number
    usPerStepOverBare: number
    nsPerHook: number
    concurrentRunsPerSec: number
    bareConcurrentRunsPerSec: number
    usPerStreamedChunkOverBare: number
    importMs: number
    emptyImportMs: number
  }
  node: string
}

/** The fastest tenth and the median of many rounds. */
type Spread = { readonly fast: number; readonly median: number }

if (process.argv.includes('--help')) {
  console.log(
    'Usage: npm run bench [-- --json]\n\nMeasures Hookloop beside a hand-written loop; takes a minute. See site/reference/performance.md.',
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

say('one run of 1,000 steps, compared with the hand-written loop …')
const [own, bare] = await sideBySide(100, 1000, [() => agent.run('go'), () => bareLoop(1000)])

say(`the same with ${HOOKS} more hooks that do nothing …`)
const [plain, hooked] = await sideBySide(100, 1000, [() => agent.run('go'), () => hookedAgent.run('go')])

say('growth from 100 to 10,000 steps …')
const lengths = [100, 1000, 10_000]
const sides = lengths.map((steps) => {
  const grown = agentFor(steps)
  return async () => {
    for (let run = 0; run < 10_000 / steps; run++) await grown.run('go') // the same number of steps in each round
  }
})
const perStep = await sideBySide(30, 10_000, sides)
const usPerStepBySteps = Object.fromEntries(lengths.map((steps, i) => [steps, perStep[i]!.fast]))

say('1,000 concurrent runs of 10 steps …')
const concurrent = {
  own: await secondsPerRun(() => smallAgent.run('go')),
  bare: await secondsPerRun(() => bareLoop(10)),
}

say(`an answer streamed in ${CHUNKS} pieces …`)
const streaming = streamingAgent()
const [streamed, bareStream] = await sideBySide(60, CHUNKS, [() => readEvents(streaming), readBare])

say('bytes of state, and the time to import …')
const [short, long] = [await agentFor(100).run('go'), await agentFor(1100).run('go')]
const bytes = (JSON.stringify(long.state).length - JSON.stringify(short.state).length) / 1000
const imports = importTimes()

say('records in each session store …')
const stores = await measureStores()

say('a run in a session, compared with one without …')
const sessions = await measureSessions()
say('shell commands as hooks …')
const shellHooks = await measureShellHooks()

const figures: Figures = {
  usPerStep: round(own!.fast),
  bareUsPerStep: round(bare!.fast),
  usPerStepOverBare: round(own!.fast - bare!.fast),
  nsPerHook: round(((hooked!.fast - plain!.fast) * 1000) / HOOKS),
  growthExponent: round(1 + Math.log(usPerStepBySteps[10_000]! / usPerStepBySteps[100]!) / Math.log(100)),
  usPerStepBySteps: Object.fromEntries(Object.entries(usPerStepBySteps).map(([steps, us]) => [steps, round(us)])),
  bytesPerStep: round(bytes),
  concurrentRunsPerSec: Math.round(1 / concurrent.own.fast),
  bareConcurrentRunsPerSec: Math.round(1 / concurrent.bare.fast),
  usPerStreamedChunk: round(streamed!.fast),
  bareUsPerStreamedChunk: round(bareStream!.fast),
  importMs: round(imports.own.fast),
  emptyImportMs: round(imports.empty.fast),
  stores,
  sessions,
  shellHooks: rounded(shellHooks),
  median: {
    usPerStep: round(own!.median),
    bareUsPerStep: round(bare!.median),
    usPerStepOverBare: round(own!.median - bare!.median),
    nsPerHook: round(((hooked!.median - plain!.median) * 1000) / HOOKS),
    concurrentRunsPerSec: Math.round(1 / concurrent.own.median),
    bareConcurrentRunsPerSec: Math.round(1 / concurrent.bare.median),
    usPerStreamedChunkOverBare: round(streamed!.median - bareStream!.median),
    importMs: round(imports.own.median),
    emptyImportMs: round(imports.empty.median),
  },
  node: process.version,
}

if (process.argv.includes('--json')) {
  console.log(JSON.stringify(figures))
} else {
  const line = (what: string, value: string, goal: string): void =>
    console.log(`${what.padEnd(44)} ${value.padStart(12)}   ${goal}`)
  line('µs per step', `${figures.usPerStep}`, `hand-written loop: ${figures.bareUsPerStep}`)
  const { median } = figures
  line('µs per step over the hand-written loop', `${figures.usPerStepOverBare}`, 'goal: at most 10')
  line('  by the median', `${median.usPerStepOverBare}`, '')
  line('ns per further hook call', `${figures.nsPerHook}`, 'goal: at most 200')
  line('  by the median', `${median.nsPerHook}`, '')
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
  line('  by the median', `${median.concurrentRunsPerSec}`, `hand-written loop: ${median.bareConcurrentRunsPerSec}`)
  const perChunk = round(figures.usPerStreamedChunk - figures.bareUsPerStreamedChunk)
  line('µs added per streamed chunk', `${perChunk}`, `reading the stream alone: ${figures.bareUsPerStreamedChunk}`)
  line('  by the median', `${median.usPerStreamedChunkOverBare}`, '')
  line('ms to import hookloop', `${figures.importMs}`, `goal: under 40; an empty module: ${figures.emptyImportMs}`)
  line('  by the median', `${median.importMs}`, `an empty module: ${median.emptyImportMs}`)
  for (const [name, { recordsPerSec, medianRecordsPerSec, bytesPerRecord }] of Object.entries(figures.stores)) {
    const bytes = bytesPerRecord === null ? '' : `, ${bytesPerRecord} bytes each`
    line(`records/s in a store: ${name}`, `${recordsPerSec}`, `by the median ${medianRecordsPerSec}${bytes}`)
  }
  for (const [name, figures] of Object.entries(sessions)) {
    const { usPerStepOver, medianUsPerStepOver, timesAsLong, bytesPerStep, growth } = figures
    const times = `${timesAsLong} times a run without it; by the median ${medianUsPerStepOver} µs more`
    line(`µs added per stored step: ${name}`, `${usPerStepOver}`, name === 'sqlite' ? `goal: 60. ${times}` : times)
    line('  bytes per step', `${bytesPerStep}`, `1,000 steps write ${growth} times ten times 100; goal: 1.3`)
  }
  const { shellHooks: shell } = figures
  line(
    'ms added by a hook to the command it is',
    `${shell.addedMs}`,
    `goal: under 1; the command alone: ${shell.bareMs}`,
  )
  line('  by the median', `${shell.addedMsByMedian}`, '')
  line(
    'ms for five commands as one group',
    `${shell.groupMs}`,
    `goal: 1.5 times the slowest, which is ${shell.slowestMs}`,
  )
  line('  times the slowest', `${shell.groupTimesSlowest}`, '')
}

/** The time per step of each side, in µs, over alternating rounds. */
async function sideBySide(
  rounds: number,
  steps: number,
  sides: readonly (() => Promise<unknown>)[],
): Promise<Spread[]> {
  const times: number[][] = sides.map(() => [])
  for (let round = 0; round < rounds; round++) {
    for (const [i, side] of sides.entries()) {
      const started = performance.now()
      await side()
      times[i]!.push(((performance.now() - started) * 1000) / steps)
    }
  }
  return times.map(spread)
}

async function secondsPerRun(run: () => Promise<unknown>): Promise<Spread> {
  const times: number[] = []
  for (let round = 0; round < 60; round++) {
    const started = performance.now()
    await Promise.all(Array.from({ length: 1000 }, run))
    times.push((performance.now() - started) / 1_000_000)
  }
  return spread(times)
}

/**
 * Milliseconds to import the built library, which is what users import, and a module with nothing in it: what Node takes
 * to import anything at all. In fresh processes, because a module is loaded once; node's own start is not part of it.
 */
function importTimes(): { readonly own: Spread; readonly empty: Spread } {
  const once = (module: string): number => {
    const code = `const t = performance.now(); await import('${module}'); console.log(performance.now() - t)`
    const options = { cwd: import.meta.dirname, encoding: 'utf8' } as const
    return Number(execFileSync(process.execPath, ['--input-type=module', '-e', code], options))
  }
  const [own, empty]: [number[], number[]] = [[], []]
  for (let round = 0; round < 15; round++) {
    own.push(once('hookloop'))
    empty.push(once('data:text/javascript,'))
  }
  return { own: spread(own), empty: spread(empty) }
}

function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  return { fast: sorted[Math.floor(sorted.length / 10)]!, median: sorted[Math.floor(sorted.length / 2)]! }
}

function rounded(all: ShellFigures): ShellFigures {
  return Object.fromEntries(Object.entries(all).map(([name, value]) => [name, round(value)])) as ShellFigures
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}

// What a measurement is, and how they are timed. A measurement is one file in measurements/, listed in registry.ts; it runs
// in a process of its own, so that none of them sees the garbage or the compiled code of another.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export type Figures = { readonly [name: string]: number | null | Figures }

export type Measurement = {
  /** Shown while it runs. */
  readonly about: string
  /** The figures that are shown to people, by their path in the result. `*` stands for any name. */
  readonly rows: { readonly [path: string]: Row }
  /** All figures. Names that end in `PerSec` are better if they are higher, all others if they are lower. */
  measure(): Promise<Figures>
}

export type Row = {
  /** `*` is replaced by the name that it stands for in the path. */
  readonly label: string
  readonly goal?: number
}

/** The fastest tenth of many rounds, which is the cost of the code, and their median, which includes what else happens. */
export type Spread = { readonly fast: number; readonly median: number }

/** The time that each side takes for one of `count` units, in µs. The sides take turns, so that noise affects all equally. */
export async function sideBySide(
  rounds: number,
  count: number,
  sides: readonly (() => Promise<unknown>)[],
): Promise<readonly Spread[]> {
  const times: number[][] = sides.map(() => [])
  for (let round = 0; round < rounds; round++) {
    for (const [i, side] of sides.entries()) {
      const started = performance.now()
      await side()
      times[i]!.push(((performance.now() - started) * 1000) / count)
    }
  }
  return times.map(spread)
}

export function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  return { fast: sorted[Math.floor(sorted.length / 10)]!, median: sorted[Math.floor(sorted.length / 2)]! }
}

export function round(value: number): number {
  return Math.round(value * 100) / 100
}

/**
 * Calls an exported function of a module in a fresh process and returns what it returns. For cold figures: nothing is
 * compiled, cached or allocated yet, as in a server after a deploy.
 */
export async function inFreshProcess<T>(module: string, name: string, ...args: readonly unknown[]): Promise<T> {
  const main = fileURLToPath(new URL('fresh-process.ts', import.meta.url))
  return JSON.parse(await printedBy(process.execPath, [main, module, name, JSON.stringify(args)])) as T
}

/** What a program prints. Rejects with what it printed as an error if it fails. */
export function printedBy(
  program: string,
  args: readonly string[],
  { cwd = import.meta.dirname, input = '' }: { readonly cwd?: string; readonly input?: string } = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd })
    child.stdin.end(input)
    const printed = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const)
      child[name].setEncoding('utf8').on('data', (text: string) => (printed[name] += text))
    child.on('error', reject)
    child.on('close', (code) => {
      if (code === 0) resolve(printed.stdout)
      else reject(new Error(printed.stderr.trim() || `${program} ended with ${code}`))
    })
  })
}

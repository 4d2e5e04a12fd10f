import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { linkPackages } from '../scripts/checkout.ts'
import { measureIn } from './measure-in.ts'
import type { Figures } from './measurement.ts'
import { flat, isHigherBetter, merged, shown } from './report.ts'

// Both sides are measured by the code of this commit, so that the same thing is measured. A measurement that needs what
// the older commit lacks fails there, and its figures are missing on that side.

export type Comparison = {
  readonly commit: string
  /** By path: the best figure of each side, and how many times that of the commit this one is. */
  readonly figures: { readonly [path: string]: { before: number | null; now: number | null; ratio: number | null } }
}

type Options = {
  readonly root: string
  readonly commit: string
  readonly names: readonly string[]
  readonly rounds: number
  readonly say: (text: string) => void
}

export async function compare({ root, commit, names, rounds, say }: Options): Promise<Comparison> {
  const hash = git(root, 'rev-parse', '--short', '--verify', `${commit}^{commit}`)
  const folder = mkdtempSync(join(tmpdir(), 'hookloop-compare-'))
  const other = join(folder, 'commit')
  const remove = (): void => {
    rmSync(folder, { recursive: true, force: true })
    git(root, 'worktree', 'prune')
  }
  const interrupted = (): never => process.exit(130)
  process.once('exit', remove).once('SIGINT', interrupted).once('SIGTERM', interrupted)
  say(`building ${hash} …`)
  git(root, 'worktree', 'add', '--quiet', '--detach', other, hash)
  buildIn(other, root)

  const sides = { before: new Map<string, number>(), now: new Map<string, number>() }
  for (const name of names) {
    for (let round = 1; round <= rounds; round++) {
      say(`${name}, round ${round} of ${rounds} …`)
      keepBest(sides.before, await figuresOf(other, name, say))
      keepBest(sides.now, await figuresOf(root, name, say))
    }
  }
  const paths = [...new Set([...sides.now.keys(), ...sides.before.keys()])]
  const figures = paths.map((path) => {
    const [before, now] = [sides.before.get(path) ?? null, sides.now.get(path) ?? null]
    const ratio = before === null || now === null || before === 0 ? null : Math.round((now / before) * 1000) / 1000
    return [path, { before, now, ratio }] as const
  })
  return { commit: hash, figures: Object.fromEntries(figures) }
}

export function comparisonTable({ commit, figures }: Comparison): string {
  const rows = Object.entries(figures)
    .filter(([path]) => !path.startsWith('median.'))
    .map(([path, { before, now, ratio }]) => [path, shown(before), shown(now), shown(ratio)])
  const width = Math.max(...rows.map(([path]) => path!.length), 10)
  return [['', commit, 'now', 'ratio'], ...rows]
    .map(([path, ...columns]) => [path!.padEnd(width), ...columns.map((text) => text.padStart(12))].join(' '))
    .join('\n')
}

function keepBest(best: Map<string, number>, figures: Figures): void {
  for (const [path, value] of flat(figures)) {
    if (value === null) continue
    const known = best.get(path) ?? value
    best.set(path, isHigherBetter(path) ? Math.max(known, value) : Math.min(known, value))
  }
}

async function figuresOf(root: string, name: string, say: (text: string) => void): Promise<Figures> {
  try {
    return merged([await measureIn(root, name)])
  } catch (error) {
    say(
      `  fails in ${root}: ${
        String(error)
          .split('\n')
          .find((line) => /Error/.test(line)) ?? String(error)
      }`,
    )
    return {}
  }
}

/** Builds a checkout, with the packages of this one if they are the same, and gives it the measurements of this one. */
function buildIn(folder: string, root: string): void {
  const lock = (of: string): string => readFileSync(join(of, 'package-lock.json'), 'utf8')
  if (lock(folder) === lock(root)) linkPackages(folder, root)
  else execFileSync('npm', ['ci', '--no-fund', '--no-audit'], { cwd: folder, stdio: ['ignore', 2, 2] })
  const PATH = [join(folder, 'node_modules/.bin'), process.env['PATH']].join(delimiter)
  execFileSync('npm', ['run', '--silent', 'build'], {
    cwd: join(folder, 'hookloop'),
    env: { ...process.env, PATH },
    stdio: ['ignore', 2, 2],
  })
  rmSync(join(folder, 'bench'), { recursive: true, force: true })
  cpSync(join(root, 'bench'), join(folder, 'bench'), { recursive: true })
}

function git(cwd: string, ...args: readonly string[]): string {
  return execFileSync('git', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim()
}

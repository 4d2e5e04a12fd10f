import { count } from '../terminal/amounts.ts'
import { colorsFor } from '../terminal/colors.ts'
import { oneLine, printable } from '../terminal/printable.ts'
import { table } from '../terminal/table.ts'
import { nearer } from '../terminal/relative-paths.ts'
import type { Place } from '../cli-context.ts'
import { canaryPaths, type CanaryPath } from './probe-runs.ts'
import type { Finding, PathStatus } from './findings.ts'

/** A hook and what was found out about it. */
export type Examined = {
  readonly name: string
  readonly mode: string
  readonly on: readonly string[]
  readonly source: string
  readonly paths: { readonly [P in CanaryPath]?: Finding }
}

export type Report = {
  readonly hooks: readonly Examined[]
  readonly problems: readonly string[]
  readonly notes: readonly string[]
}

/** The report for people. */
export function toldReport({ hooks, problems, notes }: Report, { out, env }: Place, dir: string): string {
  const { bold, dim, red, green, yellow } = colorsFor(out, env)
  const paint = (status: PathStatus): ((text: string) => string) =>
    status === 'ok' ? green : status === '–' ? dim : status === 'slow' ? yellow : red
  const rows = hooks.map(({ name, mode, paths }) => [
    { text: oneLine(name, 40) },
    { text: mode, paint: dim },
    ...canaryPaths.map((path) => {
      const { status = '–' } = paths[path] ?? {}
      return { text: status, paint: paint(status) }
    }),
  ])
  const head = ['hook', '', ...canaryPaths].map((text) => ({ text, paint: bold }))
  const lines = [
    ...(rows.length === 0 ? [] : [table([head, ...rows]), '']),
    ...notes.map((note) => dim(`– ${printable(note)}`)),
    ...problems.map((problem) => `${red('✖')} ${printable(nearer(problem, dir))}`),
    ending(hooks, problems.length, green),
  ]
  return `${lines.join('\n')}\n`
}

function ending(hooks: readonly Examined[], problems: number, green: (text: string) => string): string {
  if (problems > 0) return `${count(problems, 'problem')}.`
  if (hooks.length === 0) return 'There are no hooks to look at here: none in files, and no --agent.'
  const idle = hooks.filter(({ paths }) => Object.values(paths).every(({ status }) => status === '–')).length
  const seen = `Nothing is wrong with ${count(hooks.length, 'hook')}`
  return `${green('✔')} ${idle === 0 ? `${seen}.` : `${seen}, but ${idle} of them fired on no path.`}`
}

import { count } from '../terminal/amounts.ts'
import { colorsFor } from '../terminal/colors.ts'
import { oneLine, printable } from '../terminal/printable.ts'
import { table } from '../terminal/table.ts'
import { relativePaths } from '../terminal/relative-paths.ts'
import type { CliContext } from '../cli-context.ts'
import { probePaths, type ProbePath } from './probe-runs.ts'
import type { Finding, PathStatus } from './findings.ts'

/** A hook and its findings. */
export type HookReport = {
  readonly name: string
  readonly mode: string
  readonly on: readonly string[]
  readonly source: string
  readonly paths: { [P in ProbePath]: Finding }
}

export type Report = {
  readonly hooks: readonly HookReport[]
  readonly problems: readonly string[]
  readonly notes: readonly string[]
}

/** The report as text. */
export function doctorReportText({ hooks, problems, notes }: Report, { out, env }: CliContext, dir: string): string {
  const { bold, dim, red, green, yellow } = colorsFor(out, env)
  const paint = (status: PathStatus): string =>
    (status === 'ok' ? green : status === '–' ? dim : status === 'slow' ? yellow : red)(status)
  const rows = hooks.map(({ name, mode, paths }) => [
    oneLine(name, 40),
    dim(mode),
    ...probePaths.map((path) => paint(paths[path].status)),
  ])
  const head = ['hook', '', ...probePaths].map(bold)
  const lines = [
    ...(rows.length === 0 ? [] : [table([head, ...rows]), '']),
    ...notes.map((note) => dim(`– ${printable(relativePaths(note, dir))}`)),
    ...problems.map((problem) => `${red('✖')} ${printable(relativePaths(problem, dir))}`),
    ending(hooks, problems.length, green),
  ]
  return `${lines.join('\n')}\n`
}

function ending(hooks: readonly HookReport[], problems: number, green: (text: string) => string): string {
  if (problems > 0) return `${count(problems, 'problem')}.`
  if (hooks.length === 0) return 'No hooks to check: there are none in files, and no --agent was given.'
  const idle = hooks.filter(({ paths }) => Object.values(paths).every(({ status }) => status === '–')).length
  const text = `No problems with ${count(hooks.length, 'hook')}`
  return `${green('✔')} ${idle === 0 ? `${text}.` : `${text}, but ${idle} of them fired on no path.`}`
}

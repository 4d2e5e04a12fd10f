import type { Figures, Row } from './measurement.ts'
import { measurements } from './registry.ts'

/** A figure that is shown to people. */
export type Line = { readonly label: string; readonly value: number | null; readonly goal: number | undefined }

/** One object with the figures of several measurements. */
export function merged(all: readonly Figures[]): Figures {
  const result: Record<string, number | null | Figures> = {}
  for (const figures of all) {
    for (const [name, value] of Object.entries(figures)) {
      const before = result[name]
      result[name] = isGroup(before) && isGroup(value) ? merged([before, value]) : value
    }
  }
  return result
}

/** Each figure by its path, such as `sessions.sqlite.growth`. */
export function flat(figures: Figures, before = ''): ReadonlyMap<string, number | null> {
  return new Map(
    Object.entries(figures).flatMap(([name, value]): [string, number | null][] =>
      isGroup(value) ? [...flat(value, `${before}${name}.`)] : [[before + name, value]],
    ),
  )
}

/** The figures that have a row, in the order of their measurements. */
export async function linesOf(figures: Figures): Promise<readonly Line[]> {
  const all = flat(figures)
  const shown = new Set<string>()
  const lines: Line[] = []
  for (const load of Object.values(measurements)) {
    const { measurement } = await load()
    for (const [pattern, row] of Object.entries(measurement.rows)) {
      for (const [path, value] of all) {
        const name = nameIn(path, pattern)
        if (name === undefined || shown.has(path)) continue
        shown.add(path)
        lines.push({ label: labelOf(row, name), value, goal: row.goal })
      }
    }
  }
  return lines
}

export function table(lines: readonly Line[]): string {
  return lines
    .map(({ label, value, goal }) =>
      `${label.padEnd(54)} ${shown(value).padStart(12)}   ${goal === undefined ? '' : `goal: ${shown(goal)}`}`.trimEnd(),
    )
    .join('\n')
}

export function markdownTable(lines: readonly Line[]): string {
  const rows = lines.map(
    ({ label, value, goal }) => `| ${label.trim()} | ${shown(value)} | ${goal === undefined ? '' : shown(goal)} |`,
  )
  return ['| | measured | goal |', '|---|---|---|', ...rows].join('\n')
}

export function shown(value: number | null | undefined): string {
  return value === null || value === undefined ? '–' : value.toLocaleString('en-US', { maximumFractionDigits: 2 })
}

export function isHigherBetter(path: string): boolean {
  return path.endsWith('PerSec')
}

/** What `*` stands for, '' if the pattern has none, undefined if the path does not match. */
function nameIn(path: string, pattern: string): string | undefined {
  const [before, after] = pattern.split('*')
  if (after === undefined) return path === pattern ? '' : undefined
  if (!path.startsWith(before!) || !path.endsWith(after)) return undefined
  return path.slice(before!.length, path.length - after.length)
}

function labelOf({ label }: Row, name: string): string {
  const number = Number(name)
  return label.replace('*', name !== '' && Number.isFinite(number) ? shown(number) : name)
}

function isGroup(value: number | null | Figures | undefined): value is Figures {
  return typeof value === 'object' && value !== null
}

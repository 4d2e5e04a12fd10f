import type { SessionHead } from '../../sessions/session/session-head.ts'
import type { ListedSession } from '../../sessions/stores/store.ts'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { storeOptions } from '../options.ts'
import { withStore, type StoreFlags } from '../sessions/open-store.ts'
import { ago, dollars, grouped } from '../terminal/amounts.ts'
import { colorsFor, type Colors } from '../terminal/colors.ts'
import { printJson } from '../terminal/json.ts'
import { oneLine } from '../terminal/printable.ts'
import { table, widthOf, type Cell } from '../terminal/table.ts'

export const command: CommandDefinition = {
  description: 'List sessions, the latest first.',
  examples: ['hookloop sessions', 'hookloop sessions --json', 'hookloop sessions delete k53u'],
  configure: storeOptions,
  run: sessions,
}

const MIN_TITLE = 12
const FILE_WIDTH = 160

const statusColors: { readonly [status: string]: 'green' | 'red' | 'yellow' | undefined } = {
  completed: 'green',
  failed: 'red',
  running: 'yellow',
  suspended: 'yellow',
} satisfies { readonly [S in SessionHead['status']]?: 'green' | 'red' | 'yellow' }

function sessions(flags: StoreFlags, cli: CliContext): Promise<ExitCode> {
  return withStore(flags, cli, async ({ store }) => {
    const listed = await store.list()
    if (flags.json === true) printJson(cli.out, listed.map(toJson))
    else if (listed.length > 0) cli.out.write(`${overview(listed, cli)}\n`)
    else cli.err.write(`No sessions yet. Start one with: ${cli.command} run, or ${cli.command} chat\n`)
    return exitCodes.completed
  })
}

function toJson({ id, head, updatedAt, problem }: ListedSession): object {
  return { id, updatedAt, ...head, ...(problem !== undefined && { status: 'corrupt', problem }) }
}

/** A table as wide as the terminal. Titles are cut, or omitted where the terminal is too narrow. */
function overview(listed: readonly ListedSession[], { out, env }: CliContext): string {
  const colors = colorsFor(out, env)
  const titles = ['SESSION', 'WHEN', 'STATUS', 'AGENT', 'STEPS', 'TOKENS', 'COST', 'TITLE']
  const rows = [titles.map((text): Cell => ({ text, paint: colors.bold })), ...listed.map((each) => row(each, colors))]
  const narrow = rows.map((cells) => cells.slice(0, -1))
  const room = (out.columns ?? FILE_WIDTH) - widthOf(narrow) - 2
  if (room < MIN_TITLE) return table(narrow)
  return table(rows.map((cells) => [...cells.slice(0, -1), cutTo(cells.at(-1)!, room)]))
}

function cutTo(cell: Cell, width: number): Cell {
  return { ...cell, text: oneLine(cell.text, width) }
}

/** Another program may have written the head, so any field may be missing or of another type. */
function row({ id, head, updatedAt, problem }: ListedSession, colors: Colors): readonly Cell[] {
  const when = ago(Date.now() - updatedAt)
  if (problem !== undefined) {
    const others = ['', '', '', '', oneLine(problem)].map((text) => ({ text }))
    return [{ text: id }, { text: when }, { text: 'corrupt', paint: colors.red }, ...others]
  }
  const pending = head['pending']
  const status = text(head['status']) || 'empty'
  const waiting = Array.isArray(pending) && pending.length > 0 ? ` (${pending.length})` : ''
  return [
    { text: id },
    { text: when, paint: colors.dim },
    { text: `${oneLine(status, 12)}${waiting}`, paint: colors[statusColors[status] ?? 'reset'] },
    { text: oneLine(text(head['agent']), 20) },
    { text: amount(head['steps'], grouped) },
    { text: amount(head['tokens'], grouped) },
    { text: amount(head['costUsd'], (cost) => (cost > 0 ? dollars(cost) : '')) },
    { text: text(head['title']) },
  ]
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function amount(value: unknown, format: (value: number) => string): string {
  return typeof value === 'number' && Number.isFinite(value) ? format(value) : ''
}

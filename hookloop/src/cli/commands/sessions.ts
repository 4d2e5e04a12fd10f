import { stringIn } from '../../hook-files/text.ts'
import { Option } from 'commander'
import { isJsonObject } from '../../values/json.ts'
import type { SessionHead } from '../../sessions/session/session-head.ts'
import type { ListedSession } from '../../sessions/stores/store.ts'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { filterOptions, storeOptions, toFilter, wholeNumber, type FilterFlags } from '../options.ts'
import { selectingOptions } from '../run/session-options.ts'
import { withStore, type StoreFlags } from '../sessions/open-store.ts'
import { ago, count, dollars, grouped } from '../terminal/amounts.ts'
import { colorsFor, type Colors } from '../terminal/colors.ts'
import { printJson } from '../terminal/json.ts'
import { oneLine } from '../terminal/printable.ts'
import { table, widthOf } from '../terminal/table.ts'

export const command: CommandDefinition = {
  description: 'List sessions, the latest first.',
  examples: ['hookloop sessions', 'hookloop sessions --open', 'hookloop sessions --status suspended --limit 20'],
  configure: (command) =>
    filterOptions(storeOptions(command))
      .addOption(
        new Option(
          '--open',
          'only sessions with a run that has not ended: who runs it, or what it waits for',
        ).conflicts('status'),
      )
      .option('--limit <n>', 'list at most so many sessions', wholeNumber)
      .option('--after <session>', 'continue after this session: the last one of the list before'),
  run: sessions,
}

const MIN_TITLE = 12
const FILE_WIDTH = 160

type StatusColor = 'green' | 'red' | 'yellow'

const statusColors = new Map<string, StatusColor>([
  ['completed', 'green'],
  ['failed', 'red'],
  ['running', 'yellow'],
  ['interrupted', 'red'],
  ['suspended', 'yellow'],
] satisfies [SessionHead['status'], StatusColor][])

type ListFlags = StoreFlags &
  FilterFlags & { readonly limit?: number; readonly after?: string; readonly open?: boolean }

/** The statuses of sessions with a run that has not ended. */
const openStatuses: readonly string[] = ['running', 'suspended', 'interrupted']

function sessions(flags: ListFlags, cli: CliContext): Promise<void> {
  return withStore(flags, cli, async ({ store, options }) => {
    const { limit, after } = flags
    const page = { ...(limit !== undefined && { limit }), ...(after !== undefined && { after }) }
    const filter = { ...toFilter(flags), ...(flags.open === true && { status: openStatuses }) }
    const listed = await store.list({ ...filter, ...page })
    if (flags.json === true) printJson(cli.out, listed.map(toJson))
    else if (listed.length > 0) {
      cli.out.write(`${overview(listed, flags.open === true ? openTable : allTable, cli)}\n`)
      if (listed.length === limit)
        cli.err.write(`Listed ${limit} of ${count((await store.list(filter)).length, 'session')}.\n`)
    } else if (Object.keys({ ...filter, ...page }).length > 0) cli.err.write('No such sessions.\n')
    else cli.err.write(`No sessions yet. Start one with: ${cli.command} chat${selectingOptions(options, flags, cli)}\n`)
  })
}

function toJson({ id, head, updatedAt, lock, stop, problem }: ListedSession): object {
  const use = { ...(lock !== undefined && { lock }), ...(stop !== undefined && { stop }) }
  return { id, updatedAt, ...head, ...use, ...(problem !== undefined && { status: 'corrupt', problem }) }
}

type SessionTable = {
  readonly head: readonly string[]
  readonly row: (session: ListedSession, colors: Colors) => readonly string[]
}

const allTable: SessionTable = {
  head: ['SESSION', 'WHEN', 'STATUS', 'AGENT', 'STEPS', 'TOKENS', 'COST', 'TITLE'],
  row,
}

const openTable: SessionTable = {
  head: ['SESSION', 'WHEN', 'STATUS', 'AGENT', 'RUN BY', 'SINCE', 'WAITS FOR'],
  row: (session, colors) => {
    const { lock, stop } = session
    const first = row(session, colors).slice(0, 4)
    const since = lock?.since === undefined ? '' : ago(Date.now() - lock.since)
    const stopping = stop && `to stop, on request${stop.by === undefined ? '' : ` of ${stop.by}`}`
    return [...first, oneLine(lock?.owner ?? '', 40), since, stopping ?? questionOf(session)]
  },
}

/** The question that a session waits for. */
function questionOf({ head: { pending }, problem = '' }: ListedSession): string {
  const [first] = Array.isArray(pending) ? pending.filter(isJsonObject) : []
  const { name } = isJsonObject(first?.['toolCall']) ? first['toolCall'] : {}
  return first === undefined ? problem : `${stringIn(name)}: ${stringIn(first['message'])}`
}

/** A table as wide as the terminal. The last column is cut, or omitted where the terminal is too narrow. */
function overview(listed: readonly ListedSession[], shown: SessionTable, { out, env }: CliContext): string {
  const colors = colorsFor(out, env)
  const head = shown.head.map(colors.bold)
  const rows = [head, ...listed.map((each) => shown.row(each, colors))]
  const narrow = rows.map((cells) => cells.slice(0, -1))
  const room = (out.columns ?? FILE_WIDTH) - widthOf(narrow) - 2
  if (room < MIN_TITLE) return table(narrow)
  return table([head, ...rows.slice(1).map((cells) => [...cells.slice(0, -1), oneLine(cells.at(-1)!, room)])])
}

/** Another program may have written the head, so any field may be missing or of another type. */
function row({ id, head, updatedAt, problem }: ListedSession, colors: Colors): readonly string[] {
  const when = ago(Date.now() - updatedAt)
  if (problem !== undefined) return [id, when, colors.red('corrupt'), '', '', '', '', oneLine(problem)]
  const pending = head['pending']
  const status = stringIn(head['status']) || 'empty'
  const waiting = Array.isArray(pending) && pending.length > 0 ? ` (${pending.length})` : ''
  return [
    oneLine(id),
    colors.dim(when),
    colors[statusColors.get(status) ?? 'reset'](`${oneLine(status, 12)}${waiting}`),
    oneLine(stringIn(head['agent']), 20),
    amount(head['steps'], grouped),
    amount(head['tokens'], grouped),
    amount(head['costUsd'], (cost) => (cost > 0 ? dollars(cost) : '')),
    stringIn(head['title']),
  ]
}

function amount(value: unknown, format: (value: number) => string): string {
  return typeof value === 'number' && Number.isFinite(value) ? format(value) : ''
}

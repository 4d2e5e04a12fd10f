import type { SessionHead } from '../../sessions/session/session-head.ts'
import type { ListedSession, SessionStore } from '../../sessions/stores/store.ts'
import { ago, dollars, grouped } from '../terminal/amounts.ts'
import { colorsFor, type Colors } from '../terminal/colors.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { findSession } from '../sessions/find-session.ts'
import type { Place } from '../cli-context.ts'
import { oneLine } from '../terminal/printable.ts'
import { existingStore, type StoreFlags } from '../sessions/open-store.ts'
import { table, widthOf, type Cell } from '../terminal/table.ts'

export type SessionsFlags = StoreFlags & { readonly json?: boolean }

const LEAST_TITLE = 12
const WIDTH_OF_A_FILE = 160

const paints: ReadonlyMap<string, 'green' | 'red' | 'yellow'> = new Map<
  SessionHead['status'],
  'green' | 'red' | 'yellow'
>([
  ['completed', 'green'],
  ['failed', 'red'],
  ['running', 'yellow'],
  ['suspended', 'yellow'],
])

/** `hookloop sessions`: every session, the latest first. */
export async function sessions(flags: SessionsFlags, place: Place): Promise<ExitCode> {
  const { store } = await existingStore(flags, place.env)
  try {
    const listed = await store.list()
    if (flags.json === true) place.out.write(`${JSON.stringify(listed.map(plain), undefined, 2)}\n`)
    else if (listed.length > 0) place.out.write(`${overview(listed, place)}\n`)
    else
      place.err.write(`There are no sessions yet. ${place.command} run and ${place.command} chat keep what they do.\n`)
    return exitCodes.completed
  } finally {
    await store.close()
  }
}

/** `hookloop sessions delete`: for good. All of them are found before the first one is deleted. */
export async function deleteSessions(given: readonly string[], flags: SessionsFlags, place: Place): Promise<ExitCode> {
  const { store } = await existingStore(flags, place.env)
  try {
    const ids = await findAll(store, given)
    for (const id of ids) {
      await store.delete(id)
      if (flags.json !== true) place.err.write(`Deleted ${id}.\n`)
    }
    if (flags.json === true) place.out.write(`${JSON.stringify({ deleted: ids })}\n`)
    return exitCodes.completed
  } finally {
    await store.close()
  }
}

async function findAll(store: SessionStore, given: readonly string[]): Promise<readonly string[]> {
  const ids: string[] = []
  for (const each of given) ids.push(await findSession(store, each))
  return [...new Set(ids)]
}

function plain({ id, head, updatedAt, problem }: ListedSession): object {
  return { id, updatedAt, ...head, ...(problem !== undefined && { status: 'corrupt', problem }) }
}

function overview(listed: readonly ListedSession[], { out, env }: Place): string {
  const colors = colorsFor(out, env)
  const titles = ['SESSION', 'WHEN', 'STATUS', 'AGENT', 'STEPS', 'TOKENS', 'COST', 'TITLE']
  const head = titles.map((text) => ({ text, paint: colors.bold }))
  const rows = listed.map((each) => rowFor(each, colors))
  const narrow = [head, ...rows].map((row) => row.slice(0, -1))
  const room = (out.columns ?? WIDTH_OF_A_FILE) - widthOf(narrow) - 2
  const fits = room >= LEAST_TITLE
  return table([head, ...rows].map((row) => (fits ? withTitle(row, room) : row.slice(0, -1))))
}

function withTitle(row: readonly Cell[], room: number): readonly Cell[] {
  const title = row.at(-1)!
  return [...row.slice(0, -1), { ...title, text: oneLine(title.text, room) }]
}

/** What is in a head was written by whoever wrote the session: anything may be missing or something else. */
function rowFor({ id, head, updatedAt, problem }: ListedSession, colors: Colors): readonly Cell[] {
  const when = ago(Date.now() - updatedAt)
  if (problem !== undefined) {
    return ['', '', '', '', problem].reduce<readonly Cell[]>(
      (cells, text) => [...cells, { text: oneLine(text) }],
      [{ text: id }, { text: when }, { text: 'corrupt', paint: colors.red }],
    )
  }
  const pending = head['pending']
  const status = word(head['status']) || 'empty'
  const waiting = Array.isArray(pending) && pending.length > 0 ? ` (${pending.length})` : ''
  return [
    { text: id },
    { text: when, paint: colors.dim },
    { text: `${oneLine(status, 12)}${waiting}`, paint: colors[paints.get(status) ?? 'reset'] },
    { text: oneLine(word(head['agent']), 20) },
    { text: amount(head['steps'], grouped) },
    { text: amount(head['tokens'], grouped) },
    { text: amount(head['costUsd'], (cost) => (cost > 0 ? dollars(cost) : '')) },
    { text: word(head['title']) },
  ]
}

function word(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function amount(value: unknown, word: (value: number) => string): string {
  return typeof value === 'number' && Number.isFinite(value) ? word(value) : ''
}

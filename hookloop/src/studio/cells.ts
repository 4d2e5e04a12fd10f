import { triggers as declared, type HookTrigger, type TimedLedgerEntry } from '../plugin.ts'
import type { StoredRun } from '../sessions/index.ts'
import type { Cells, Column } from './run.types.ts'

/** The codes of cells, the most severe first. */
const SEVERITY = 'x!?scr~o+- '

const codes: { readonly [decision: string]: string } = {
  block: 'x',
  blocked: 'x',
  ask: '?',
  postponed: '?',
  forbidContinuation: 's',
  forbid: 's',
  allowStop: 's',
  requestContinuation: 'c',
  retry: 'r',
  ignore: 'r',
  allow: '+',
  approved: '+',
  allowContinuation: '+',
  skipped: '-',
}

/** What one invocation of a hook did, as a code of `Cells`. */
export function codeOf({ decision, error, changes }: TimedLedgerEntry): string {
  const found = (decision ?? '').split('+').map((each) => (each === '' ? '-' : (codes[each.split(' ')[0]!] ?? 'o')))
  if (error !== undefined) found.push('!')
  if (changes !== undefined && changes.length > 0) found.push('~')
  return found.reduce(moreSevere)
}

function moreSevere(a: string, b: string): string {
  return SEVERITY.indexOf(a) <= SEVERITY.indexOf(b) ? a : b
}

/** Whether a hook decided something, in force. Records that a capability keeps for itself are not meant. */
export function isDecision(entry: TimedLedgerEntry): boolean {
  return entry.shadow !== true && entry.bookkeeping !== true && codeOf(entry) !== '-'
}

type Counts = { decided: number; triggers: Set<string>; last: Partial<TimedLedgerEntry> }

/** The columns of a run: one per hook, by its name. */
export class Columns {
  /** In the order in which they became known, so that the id of a hook stays the same while the run grows. */
  readonly #ids = new Map<string, number>()
  readonly #counts: Counts[] = []

  constructor({ hooks }: Pick<StoredRun, 'hooks'>) {
    for (const { name, mode } of hooks) this.#of(name, { mode })
  }

  #of(hook: string, known: Partial<TimedLedgerEntry>): number {
    const id = this.#ids.get(hook) ?? this.#ids.size
    this.#ids.set(hook, id)
    this.#counts[id] ??= { decided: 0, triggers: new Set(), last: known }
    return id
  }

  /** Counts what hooks did, and returns it as cells. */
  cells(entries: readonly TimedLedgerEntry[]): Cells {
    const cells: string[] = []
    for (const entry of entries) {
      const id = this.#of(entry.hook, entry)
      const counts = this.#counts[id]!
      const code = codeOf(entry)
      if (code !== '-') counts.decided++
      counts.triggers.add(entry.trigger)
      const definedAt = joinPlaces(counts.last.definedAt, entry.definedAt)
      counts.last = { ...counts.last, ...entry, ...(definedAt !== undefined && { definedAt }) }
      cells[id] = moreSevere(code, cells[id] ?? ' ')
    }
    return Array.from(cells, (code) => code ?? ' ').join('')
  }

  /** In the order in which they fire: by their first trigger, then hooks, guards and observers, then as they were added. */
  sorted(): readonly Column[] {
    return [...this.#ids].map(([hook, id]) => columnOf(hook, id, this.#counts[id]!)).toSorted(byOrder)
  }
}

/** All places of a hook. One for Claude Code hooks has several scripts. */
export function joinPlaces(known: string | undefined, more: string | undefined): string | undefined {
  if (known === undefined || more === undefined) return known ?? more
  return [...new Set([...known.split('; '), ...more.split('; ')])].join('; ')
}

function columnOf(hook: string, id: number, { decided, triggers, last }: Counts): Column {
  const { mode = 'loop', shadow = false, bookkeeping = false, definedAt } = last
  const group = order.find((each) => triggers.has(each)) ?? ''
  return { id, hook, mode, shadow, group, bookkeeping, decided, definedAt }
}

const order: readonly HookTrigger[] = [...declared]
const modes: readonly Column['mode'][] = ['transform', 'guard', 'observe', 'loop']

function byOrder(a: Column, b: Column): number {
  const place = ({ group }: Column): number => (group === '' ? order.length : order.indexOf(group as HookTrigger))
  return place(a) - place(b) || modes.indexOf(a.mode) - modes.indexOf(b.mode) || a.id - b.id
}

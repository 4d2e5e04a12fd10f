import { count, shorten } from '../../values/text.ts'
import type { Json } from '../../values/json.ts'
import type { TimedLedgerEntry } from '../state/ledger.ts'
import { defined } from './warnings.ts'

/** What happened in a subagent, from the ledger of its parent. Steps are counted from 0. */
export type ExplainedSubagent = {
  /** The step and the call of its parent that started it. */
  readonly step: number
  readonly call: string
  readonly agent: string
  /** How it ended; `suspended` while it waits for approval. */
  readonly status: 'completed' | 'stopped' | 'failed' | 'cancelled' | 'suspended'
  readonly by: string
  readonly reason: string
  readonly message: string
  readonly spent: {
    readonly steps: number
    readonly toolCalls: number
    readonly tokens: number
    readonly costUsd: number
  }
  /** Decisions in it, in order: blocks, questions, changes and failures. */
  readonly decided: readonly DecidedInside[]
  readonly subagents: readonly ExplainedSubagent[]
}

type DecidedInside = {
  readonly step: number
  readonly tool?: string
  readonly by: string
  readonly decision: string
  readonly message: string
  readonly definedAt?: string
}

/** The subagents of a run, each with its own subagents. */
export function explainSubagents(ledger: readonly TimedLedgerEntry[]): readonly ExplainedSubagent[] {
  const groups = new Map<string, { readonly first: TimedLedgerEntry; readonly entries: TimedLedgerEntry[] }>()
  const ends = new Map<string, TimedLedgerEntry>()
  for (const entry of ledger) {
    const [place, ...rest] = entry.path ?? []
    if (place === undefined) {
      if (isEnd(entry)) ends.set(`${entry.step}/${entry.call}`, entry)
      continue
    }
    const key = `${place.step}/${place.call}`
    const group = groups.get(key) ?? { first: entry, entries: [] }
    groups.set(key, group)
    const { path: _path, ...own } = entry
    group.entries.push(rest.length === 0 ? own : { ...own, path: rest })
  }
  return [...groups].map(([key, { first, entries }]) => toSubagent(first.path![0]!, entries, ends.get(key)))
}

function isEnd({ trigger, mode, value }: TimedLedgerEntry): boolean {
  return trigger === 'onSubagentStop' && mode === 'loop' && value !== undefined
}

type Place = NonNullable<TimedLedgerEntry['path']>[number]

function toSubagent(
  { agent, step, call }: Place,
  entries: readonly TimedLedgerEntry[],
  end: TimedLedgerEntry | undefined,
): ExplainedSubagent {
  const facts = (end?.value ?? {}) as { readonly [name: string]: Json | undefined }
  const amount = (name: string): number => Number(facts[name] ?? 0)
  const { decision = 'suspended', message = '' } = end ?? {}
  return {
    step,
    call,
    agent,
    status: decision as ExplainedSubagent['status'],
    by: typeof facts['by'] === 'string' ? facts['by'] : '',
    reason: typeof facts['reason'] === 'string' ? facts['reason'] : 'approval',
    message,
    spent: {
      steps: amount('steps'),
      toolCalls: amount('toolCalls'),
      tokens: amount('tokens'),
      costUsd: amount('costUsd'),
    },
    decided: entries.flatMap(toDecided),
    subagents: explainSubagents(entries),
  }
}

/** Decisions that changed nothing are left out. */
const silent: ReadonlySet<string> = new Set(['allowStop', 'allowContinuation', 'skipped', 'allow'])

function toDecided(entry: TimedLedgerEntry): readonly DecidedInside[] {
  const { step, hook: by, tool, decision, message, error, changes, path, shadow, definedAt } = entry
  if (path !== undefined || shadow === true || isEnd(entry)) return []
  const what = decision ?? (error !== undefined ? 'failed' : changes !== undefined ? 'changed' : undefined)
  if (what === undefined || silent.has(what)) return []
  const text = error ?? message ?? changes?.map((each) => each.path).join(', ') ?? ''
  return [defined<DecidedInside>({ step, by, decision: what, message: text, tool, definedAt })]
}

/** The same as text, one line each; nested ones are indented. Without `verbose`, each subagent gets its share of the lines. */
export function subagentLines(subagents: readonly ExplainedSubagent[], verbose: boolean): readonly string[] {
  const groups = groupsOf(subagents, { verbose, indent: '' }).map((group) => group.split('\n'))
  if (verbose) return groups.flat()
  const total = groups.flat().length
  const share = total <= MAX_LINES ? total : Math.max(1, Math.floor((MAX_LINES - 1) / groups.length))
  return capped(
    groups.flatMap((group) => group.slice(0, share)),
    total,
  )
}

/** The lines of each subagent, with those of its own subagents. Equal ones are counted. */
function groupsOf(
  subagents: readonly ExplainedSubagent[],
  { verbose, indent }: { readonly verbose: boolean; readonly indent: string },
): readonly string[] {
  const groups = subagents.map(({ step, agent, status, by, message, spent, decided, subagents: inside }) => {
    const { steps, toolCalls, tokens, costUsd } = spent
    const cost = costUsd > 0 ? `, ${Number(costUsd.toPrecision(4))} USD` : ''
    const amounts = `${count(steps, 'step')}, ${count(toolCalls, 'tool call')}, ${tokens} tokens${cost}`
    const why = status === 'completed' ? '' : `; by ${by}: ${message}`
    const ended = status === 'suspended' ? 'waits for approval' : `${status}: ${amounts}${why}`
    const inner = `${indent}  `
    const shown = decided.filter((each) => verbose || isShown(each)).map(decidedText)
    return [
      `${indent}${lineOf(`step ${step + 1}, ${agent} ${ended}`, verbose)}`,
      ...counted(shown.map((text) => `${inner}${lineOf(text, verbose)}`)),
      ...groupsOf(inside, { verbose, indent: inner }),
    ].join('\n')
  })
  return verbose ? groups : counted(groups)
}

/** Decisions that a user wants to know of without asking. Failures of hooks are warnings. */
const wanted = /^(block|ask|approved|blocked|postponed|outcomeUnknown|forbidContinuation|requestContinuation)/

function isShown({ decision }: DecidedInside): boolean {
  return wanted.test(decision)
}

function decidedText({ step, tool, by, decision, message, definedAt }: DecidedInside): string {
  const place = definedAt === undefined ? '' : ` (${definedAt})`
  const did = decision === 'block' ? 'blocked' : decision
  return `step ${step + 1},${tool === undefined ? '' : ` ${tool}`} ${did} by ${by}${place}${message === '' ? '' : `: ${message}`}`
}

/** How many lines a section has without `verbose`. */
const MAX_LINES = 10

const MAX_CHARS = 300

/** A text on one line, shortened unless `verbose`. */
export function lineOf(text: string, verbose: boolean): string {
  const line = text.replaceAll(/\s*\n\s*/g, ' ⏎ ')
  return verbose ? line : shorten(line, MAX_CHARS)
}

/** Texts that differ only in their steps are counted: the first one has the number, at the end of its first line. */
export function counted(texts: readonly string[]): readonly string[] {
  const found = Map.groupBy(texts, (text) => text.replaceAll(/^ *(after )?step \d+/gm, ''))
  return [...found.values()].map(([first, ...more]) =>
    more.length === 0 ? first! : first!.replace(/(?=\n)|$/, ` (${more.length + 1} times)`),
  )
}

/** The lines, or the first of them and how many more there are. */
export function capped(all: readonly string[], total = all.length): readonly string[] {
  if (total <= MAX_LINES) return all
  const shown = all.slice(0, MAX_LINES - 1)
  return [...shown, `… and ${total - shown.length} more, with verbose`]
}

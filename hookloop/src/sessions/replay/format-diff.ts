import { count, shorten } from '../../values/text.ts'
import type { Json } from '../../values/json.ts'
import type { ComparedStep, RunDiff, RunEnd, StepDiff } from './diff-runs.ts'

const MAX_VALUE = 100

/** A diff of two runs as text: `-` is the first run, `+` the second. Steps are counted from one. */
export function formatDiff(diff: RunDiff): string {
  const { same, partsAt, steps, messages, end, usage, changes, hooks } = diff
  if (same) return 'The runs are the same.'
  return [
    partsAt === undefined
      ? `The runs have the same steps${end?.a.pending && end.b.pending ? ', and wait for different calls' : ''}.`
      : `The runs differ from step ${partsAt.step + 1} on, in ${partsAt.in === 'end' ? 'that one of them has ended' : words[partsAt.in]}.`,
    `  messages     ${messages.shared} shared, then ${messages.a - messages.shared} and ${messages.b - messages.shared} unshared`,
    ...(hooks === undefined ? [] : two('hooks', hooks.a.join(', ') || 'no others', hooks.b.join(', ') || 'no others')),
    ...steps.flatMap(stepLines),
    ...(end === undefined ? [] : two('end', ...bothShort(endWords(end.a), endWords(end.b)))),
    ...(usage === undefined ? [] : two('spent', spentWords(usage.a), spentWords(usage.b))),
    ...changes.flatMap(({ path, before, after }) => two(path, ...bothShort(textOf(before), textOf(after)))),
  ].join('\n')
}

const words = {
  text: 'the text',
  toolCalls: 'the calls',
  results: 'the results',
  votes: 'the votes',
  errors: 'the errors',
}

function stepLines({ step, differs, a, b }: StepDiff): readonly string[] {
  const title = `step ${step + 1}`
  if (a === undefined || b === undefined) {
    return [`  ${a === undefined ? '+' : '-'} ${title.padEnd(10)} ${stepWords((a ?? b)!)}`]
  }
  return differs.flatMap((aspect) =>
    two(`${title}, ${words[aspect]}`, ...bothShort(textOf(a[aspect] as Json), textOf(b[aspect] as Json))),
  )
}

function stepWords({ text, toolCalls, results }: ComparedStep): string {
  const calls = toolCalls.map(({ name, args }, i) => `${name} ${short(args)} ${results[i]?.status ?? ''}`.trimEnd())
  return [...(text === '' ? [] : [short(text)]), ...calls].join(', ') || 'nothing'
}

function two(title: string, a: string, b: string): readonly string[] {
  return [`  ${title}`, `    - ${a}`, `    + ${b}`]
}

function endWords({ status, reason, by, message, pending = [] }: RunEnd): string {
  if (reason !== undefined) return `${status}, ${reason} by ${by}: ${message}`
  const calls = pending.map(({ name, args }) => `${name} ${textOf(args)}`)
  return calls.length === 0 ? status : `${status}, waits for ${calls.join(', ')}`
}

function spentWords({
  steps,
  toolCalls,
  inputTokens,
  outputTokens,
  costUsd,
}: NonNullable<RunDiff['usage']>['a']): string {
  const cost = costUsd > 0 ? `, ${Number(costUsd.toPrecision(4))} USD` : ''
  return `${count(steps, 'step')}, ${count(toolCalls, 'tool call')}, ${inputTokens + outputTokens} tokens${cost}`
}

function short(value: Json): string {
  return shorten(textOf(value), MAX_VALUE)
}

function textOf(value: Json | undefined): string {
  return value === undefined ? 'nothing' : JSON.stringify(value)
}

/** How much of what two texts have in common is shown before the first difference. */
const CONTEXT = 30

/** Two texts, cut so that what differs is shown: the beginning that they have in common is left out if it is long. */
function bothShort(a: string, b: string): readonly [string, string] {
  let same = 0
  while (same < a.length && same < b.length && a[same] === b[same]) same++
  const start = Math.max(a.length, b.length) <= MAX_VALUE ? 0 : Math.max(0, same - CONTEXT)
  const cut = (text: string): string => `${start > 0 ? '…' : ''}${shorten(text.slice(start).toWellFormed(), MAX_VALUE)}`
  return [cut(a), cut(b)]
}

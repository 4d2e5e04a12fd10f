import type { Json } from '../../state/json.ts'
import type { ComparedStep, RunDiff, RunEnd, StepDiff } from './diff-runs.ts'

const MAX_VALUE = 100

/** What is different in two runs, in words: `-` is the first of them, `+` the second. People count steps from one. */
export function formatDiff({ same, partsAt, steps, messages, end, usage, changes, hooks }: RunDiff): string {
  if (same) return 'The runs are the same.'
  return [
    partsAt === undefined
      ? 'The runs took the same steps.'
      : `The runs part at step ${partsAt.step + 1}, in ${partsAt.in === 'end' ? 'that one of them has ended' : words[partsAt.in]}.`,
    `  messages     ${messages.shared} shared, then ${messages.a - messages.shared} and ${messages.b - messages.shared} of their own`,
    ...(hooks === undefined
      ? []
      : two('hooks', hooks.a.join(', ') || 'none of its own', hooks.b.join(', ') || 'none of its own')),
    ...steps.flatMap(stepLines),
    ...(end === undefined ? [] : two('end', endWords(end.a), endWords(end.b))),
    ...(usage === undefined ? [] : two('spent', spentWords(usage.a), spentWords(usage.b))),
    ...changes.flatMap(({ path, before, after }) => two(path, short(before), short(after))),
  ].join('\n')
}

const words = {
  text: 'what was said',
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
    two(`${title}, ${words[aspect]}`, short(a[aspect] as Json), short(b[aspect] as Json)),
  )
}

function stepWords({ text, toolCalls, results }: ComparedStep): string {
  const calls = toolCalls.map(({ name, args }, i) => `${name} ${short(args)} ${results[i]?.status ?? ''}`.trimEnd())
  return [...(text === '' ? [] : [short(text)]), ...calls].join(', ') || 'nothing'
}

function two(title: string, a: string, b: string): readonly string[] {
  return [`  ${title}`, `    - ${a}`, `    + ${b}`]
}

function endWords({ status, reason, by, message }: RunEnd): string {
  return reason === undefined ? status : `${status}, ${reason} by ${by}: ${message}`
}

function spentWords({
  steps,
  toolCalls,
  inputTokens,
  outputTokens,
  costUsd,
}: NonNullable<RunDiff['usage']>['a']): string {
  const cost = costUsd > 0 ? `, ${Number(costUsd.toPrecision(4))} USD` : ''
  return `${steps} steps, ${toolCalls} tool calls, ${inputTokens + outputTokens} tokens${cost}`
}

function short(value: Json | undefined): string {
  if (value === undefined) return 'nothing'
  const text = JSON.stringify(value)
  return text.length <= MAX_VALUE ? text : `${text.slice(0, MAX_VALUE)}…`
}

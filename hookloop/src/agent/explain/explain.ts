import { count, shorten } from '../../state/text.ts'
import type { Json } from '../../state/json.ts'
import type { Change } from '../../state/ledger.ts'
import { subagentLines } from './explain-subagents.ts'
import { explanation, type Explainable, type Explanation } from './explanation.ts'

const MAX_VALUE = 80

/**
 * Explains a run as text: which hook stopped it and why, what was blocked, changed, retried and spent, and what would let
 * it continue.
 *
 * @example
 * const run = await agent.run('Publish the fix.')
 * if (run.status !== 'completed') console.error(explain(run))
 */
export function explain(run: Explainable): string {
  return explanationText(explanation(run))
}

/** An explanation as text. */
export function explanationText(data: Explanation): string {
  const { spent } = data
  const cost = spent.costUsd > 0 ? `, ${Number(spent.costUsd.toPrecision(4))} USD` : ''
  const tokens = spent.inputTokens + spent.outputTokens
  const lines = [
    headline(data),
    `  decided by   ${data.decided.by}, reason ${data.decided.reason}`,
    `  spent        ${count(spent.steps, 'step')}, ${count(spent.toolCalls, 'tool call')}, ${tokens} tokens${cost}`,
    ...section('votes', data.votes, (vote) => `${vote.source}: ${vote.decision}, ${vote.message || vote.reason}`),
    ...section('blocked', data.blocked, blockedText),
    ...section('failed', data.failed, ({ step, tool, message }) => `${at(step)}, ${tool}: ${message}`),
    ...section('asked', data.asked, (each) => `${at(each.step)}, ${each.tool}: ${each.message} ${each.answer}`),
    ...section('changed', data.changed, changedText),
    ...section('continued', data.continued, ({ step, by, message }) => `after ${at(step)} by ${by}: ${message}`),
    ...section('errors', data.errors, ({ step, during, message }) => `${at(step)}, ${during}: ${message}`),
    ...section(
      'failed hooks',
      data.hookFailures,
      (each) => `${at(each.step)}, ${each.hook} at ${each.trigger}: ${each.error}`,
    ),
    ...section('attempts', data.failedAttempts, ({ step, message }) => `${at(step)}: ${message}`),
    ...section('warnings', data.warnings, ({ step, message }) => `${at(step)}: ${message}`),
    ...section('subagents', subagentLines(data.subagents), (line) => line),
    ...section('shadows', data.shadows, shadowText),
    `  to continue  ${data.wayOn}`,
  ]
  return lines.join('\n')
}

function headline({ status, decided }: Explanation): string {
  const { message, reason, value } = decided
  if (status === 'cancelled') return 'The run was cancelled.'
  const shown = value === undefined || isShown(message, value) ? '' : ` (${valueText(value)})`
  return `The run ${statusText(status, reason)}: ${message || reason}${shown}`
}

/** Whether the message contains the value already. */
function isShown(message: string, value: Json): boolean {
  const parts: readonly Json[] = typeof value === 'object' && value !== null ? Object.values(value) : [value]
  return parts.every((part) => message.includes(JSON.stringify(part).replaceAll('"', '')))
}

function statusText(status: Explanation['status'], reason: Explanation['decided']['reason']): string {
  switch (status) {
    case 'completed':
      return 'is complete'
    case 'stopped':
      return 'was stopped'
    case 'failed':
      return 'failed'
    case 'cancelled':
      return 'was cancelled'
    case 'suspended':
      return reason === 'paused' ? 'is paused' : 'waits for approval'
    default:
      return status satisfies never
  }
}

function blockedText({ step, tool, by, message, withheld }: Explanation['blocked'][number]): string {
  return `${at(step)}, ${tool}${withheld ? ' withheld' : ''}, by ${by}: ${message}`
}

function changedText({ step, hook, trigger, changes }: Explanation['changed'][number]): string {
  return `${at(step)}, ${hook} at ${trigger}: ${[...new Set(changes.map(changeText))].join(', ')}`
}

/** What a shadow hook would have decided. */
function shadowText({ step, hook, trigger, tool, decision, message, changes, error }: Explanation['shadows'][number]) {
  const where = `${at(step)}, ${hook} at ${trigger}${tool === undefined ? '' : `, ${tool}`}`
  const would = [
    ...(decision === undefined ? [] : [`would decide ${decision}`]),
    ...(changes === undefined ? [] : [`would change ${changes.map(changeText).join(', ')}`]),
    ...(error === undefined ? [] : ['failed']),
  ]
  const why = error ?? message
  return `${where}: ${would.join(', ')}${why === undefined ? '' : `: ${why}`}`
}

/** Metadata that a capability stores for itself is shown by its key only. */
const OWN_NOTES = /^state\.metadata\.(hookloop\.\w+)/

function changeText({ path, before, after }: Change): string {
  const own = OWN_NOTES.exec(path)?.[1]
  if (own !== undefined) return `its notes, ${own}`
  if (before !== undefined && after !== undefined) return `${path} ${short(before)} → ${short(after)}`
  if (after !== undefined) return `${path} = ${short(after)}`
  return before === undefined ? path : `${path} removed`
}

function short(value: Json): string {
  return shorten(JSON.stringify(value), MAX_VALUE)
}

function valueText(value: Json): string {
  const { value: reached, limit } = (value ?? {}) as { value?: Json; limit?: Json }
  return limit === undefined ? JSON.stringify(value) : `${JSON.stringify(reached)} of ${JSON.stringify(limit)}`
}

/** One line for each item; consecutive equal lines are counted. */
function section<T>(title: string, items: readonly T[], toText: (item: T) => string): string[] {
  const lines: { readonly text: string; times: number }[] = []
  for (const text of items.map((item) => toText(item).replaceAll(/\s*\n\s*/g, ' ⏎ '))) {
    const last = lines.at(-1)
    if (last?.text === text) last.times++
    else lines.push({ text, times: 1 })
  }
  return lines.map(({ text, times }, i) => {
    return `  ${(i === 0 ? title : '').padEnd(12)} ${text}${times > 1 ? ` (${times} times)` : ''}`
  })
}

/** Steps are shown starting from 1. */
function at(step: number): string {
  return `step ${step + 1}`
}

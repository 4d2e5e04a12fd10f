import type { Json } from '../../values/json.ts'
import type { Change } from '../state/ledger.ts'
import { count, shorten } from '../../values/text.ts'
import type { Warning } from '../state/warning.ts'
import { capped, counted, lineOf, subagentLines } from './explain-subagents.ts'
import type { Explainable } from './explainable.ts'
import { explanation, type Explanation } from './explanation.ts'

const MAX_VALUE = 80

type ExplainOptions = { readonly verbose?: boolean }

/**
 * Explains a run, or a stored one from `readRuns`, as text: why it ended, what was blocked, asked, injected, changed and retried, what failed, what it cost,
 * and what would let it continue.
 *
 * @param options `verbose`: also every vote, the bookkeeping of capabilities, and all lines of long sections. Default false.
 *
 * @example
 * const run = await agent.run('Publish the fix.')
 * if (run.status !== 'completed') console.error(explain(run))
 */
export function explain(run: Explainable, options: ExplainOptions = {}): string {
  return explanationText(explanation(run), options)
}

/** An explanation as text. */
export function explanationText(data: Explanation, { verbose = false }: ExplainOptions = {}): string {
  const { spent, decided } = data
  const cost = spent.costUsd > 0 ? `, ${Number(spent.costUsd.toPrecision(4))} USD` : ''
  const tokens = spent.inputTokens + spent.outputTokens
  const estimated = data.warnings.some(({ code }) => code === 'USAGE_ESTIMATED') ? ' (estimated)' : ''
  /** One line for each item; lines that differ only in the step are counted. */
  const section = <T>(title: string, items: readonly T[], toText: (item: T) => string): readonly string[] => {
    const all = counted(items.map((item) => lineOf(toText(item), verbose)))
    return lines(title, verbose ? all : capped(all))
  }
  return [
    lineOf(headline(data), true),
    ...decidedLine(data, verbose),
    `  spent        ${count(spent.steps, 'step')}, ${count(spent.toolCalls, 'tool call')}, ${tokens} tokens${cost}${estimated}`,
    ...section('votes', verbose ? data.votes : [], (vote) => {
      return `${vote.source}: ${vote.decision}, ${vote.message || vote.reason}`
    }),
    ...section('blocked', data.blocked, blockedText),
    ...section('asked', data.asked, askedText),
    ...section('failed', data.failed, ({ step, tool, message }) => `${at(step)}, ${tool}: ${message}`),
    ...section(
      'warnings',
      data.warnings.filter((each) => verbose || each.count > 1 || !isDecision(each, decided)),
      warningText,
    ),
    ...section('injected', data.changed.flatMap(injectedTexts), (text) => text),
    ...section('changed', data.changed.flatMap(shownChanges(verbose)), changedText),
    ...section('continued', data.continued, (each) => `after ${at(each.step)} by ${byText(each)}: ${each.message}`),
    ...section(
      'errors',
      data.errors.filter(({ message }) => verbose || message !== decided.message),
      ({ step, during, message }) => `${at(step)}, ${during}: ${message}`,
    ),
    ...section('attempts', attemptsOf(data, verbose), ({ step, message }) => `${at(step)}: ${message}`),
    ...section('summarized', data.summarized, ({ step, message }) => `${at(step)}: ${message}`),
    ...lines('subagents', subagentLines(data.subagents, verbose)),
    ...section('shadows', data.shadows, shadowText),
    ...(data.wayOn === undefined ? [] : [`  to continue  ${data.wayOn}`]),
  ].join('\n')
}

/** Whether a warning is about the failure that ended the run: the headline has it. */
function isDecision({ hook, message, path }: Warning, { failure }: Explanation['decided']): boolean {
  return failure !== undefined && path === undefined && hook === failure.hook && message === failure.message
}

function headline({ status, decided }: Explanation): string {
  const { message, reason, value } = decided
  if (status === 'cancelled') return message || 'The run was cancelled.'
  const shown = value === undefined || isShown(message, value) ? '' : ` (${valueText(value)})`
  const text = reason === 'paused' ? 'is paused' : statusTexts[status]
  return `The run ${text}: ${message || reason}${shown}`
}

/** Whether the message contains the value already. */
function isShown(message: string, value: Json): boolean {
  const parts: readonly Json[] = typeof value === 'object' && value !== null ? Object.values(value) : [value]
  return parts.every((part) => message.includes(JSON.stringify(part).replaceAll('"', '')))
}

const statusTexts = {
  completed: 'is complete',
  stopped: 'was stopped',
  failed: 'failed',
  cancelled: 'was cancelled',
  running: 'has not ended',
  suspended: 'waits for approval',
} as const

/** Who decided how the run ended: a completed run needs no line. For an error, its code, and where it happened. */
function decidedLine({ status, decided, errors }: Explanation, verbose: boolean): readonly string[] {
  if (status === 'running' || (status === 'completed' && !verbose)) return []
  const [, trigger] = /^error at (\w+)$/.exec(decided.by) ?? []
  const error = errors.findLast(({ during }) => during === trigger)
  if (!verbose && error !== undefined) return [`  error        ${error.code} at ${error.during}`]
  return [`  decided by   ${byText(decided)}, reason ${decided.reason}`]
}

/** A hook, and where it is defined. */
function byText({ by, definedAt }: { readonly by: string; readonly definedAt?: string | undefined }): string {
  return definedAt === undefined ? by : `${by} (${definedAt})`
}

/** The message of a guard that failed is a warning. */
function blockedText({ step, tool, message, withheld, failed, ...by }: Explanation['blocked'][number]): string {
  return `${at(step)}, ${tool}${withheld ? ' withheld' : ''}, by ${byText(by)}: ${failed ? 'it failed, see warnings' : message}`
}

function askedText({ step, tool, message, answer, askers = [], reason }: Explanation['asked'][number]): string {
  const by = askers.length === 0 ? '' : `, by ${askers.map(byText).join(' and ')}`
  return `${at(step)}, ${tool}${by}: ${message} ${answer}${reason === undefined ? '' : `: ${reason}`}`
}

/** A warning on one line. */
export function warningText({ message, hook, definedAt, step, count: times, path }: Warning): string {
  const who = path === undefined ? '' : `${path.map(({ agent }) => agent).join(' › ')}, `
  const place = definedAt === undefined ? '' : ` (${definedAt})`
  const named = hook !== undefined && message.includes(`"${hook}"`)
  const text = named ? message.replace(`"${hook}"`, () => `"${hook}"${place}`) : `${message}${place}`
  return `${who}${at(step)}: ${text}${times > 1 ? ` (${times} times)` : ''}`
}

/** The messages that a hook has added, except for bookkeeping. */
function injectedTexts({ step, changes, bookkeeping, ...by }: Explanation['changed'][number]): readonly string[] {
  if (bookkeeping) return []
  const added = changes.flatMap((change) => change.added ?? [])
  return added.map((text) => `${at(step)}, ${hookAt(by)}: ${injectedPart(text)}`)
}

/** A hook, where it is defined, and when it ran. */
function hookAt(of: { readonly hook: string; readonly trigger: string; readonly definedAt?: string }): string {
  return `${byText({ by: of.hook, definedAt: of.definedAt })} at ${of.trigger}`
}

const FENCE = /^\[([0-9a-f]{16}) [^\]]*\]\n([\s\S]*?)(\n\[end \1\])?$/

/** A text that was added to the conversation, without the marks around data from outside. */
export function injectedPart(text: string): string {
  return JSON.stringify(FENCE.exec(text)?.[2] ?? text)
}

/** Changes without bookkeeping, and without those that are shown as injected. */
function shownChanges(verbose: boolean): (changed: Explanation['changed'][number]) => Explanation['changed'] {
  return (changed) => {
    if (verbose) return [changed]
    const changes = changed.changes.filter(({ added, path }) => added === undefined && !OWN_NOTES.test(path))
    return changed.bookkeeping || changes.length === 0 ? [] : [{ ...changed, changes }]
  }
}

function changedText({ step, changes, ...by }: Explanation['changed'][number]): string {
  return `${at(step)}, ${hookAt(by)}: ${[...new Set(changes.map(changeText))].join(', ')}`
}

/** Failed attempts, unless the only one is the error that the run ended with. */
function attemptsOf({ failedAttempts, decided }: Explanation, verbose: boolean): Explanation['failedAttempts'] {
  if (verbose) return failedAttempts
  const isEnd = decided.by === 'error at aroundInference' && decided.failure === undefined
  return isEnd && failedAttempts.length === 1
    ? []
    : failedAttempts.map(({ step, message }) => ({ step, message: message.replace(/^attempt \d+, /, '') }))
}

/** What a shadow hook would have decided. */
function shadowText({ step, tool, decision, message, changes, error, ...by }: Explanation['shadows'][number]) {
  const where = `${at(step)}, ${hookAt(by)}${tool === undefined ? '' : `, ${tool}`}`
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

function changeText({ path, before, after, added }: Change): string {
  const own = OWN_NOTES.exec(path)?.[1]
  if (own !== undefined) return `its notes, ${own}`
  if (added !== undefined) return `added ${injectedPart(added)} to ${path}`
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

function lines(title: string, texts: readonly string[]): readonly string[] {
  return texts.map((text, i) => `  ${(i === 0 ? title : '').padEnd(12)} ${text}`)
}

/** Steps are shown starting from 1. */
function at(step: number): string {
  return `step ${step + 1}`
}

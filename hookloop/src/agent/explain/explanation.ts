import { checkNoOptions } from '../../state/check-options.ts'
import type { ContinuationEvaluation } from '../../state/continuation.ts'
import type { ErrorRecord } from '../../state/execution.ts'
import { textOfJson } from '../../state/json.ts'
import type { Change, TimedLedgerEntry } from '../../state/ledger.ts'
import type { Warning } from '../../state/warning.ts'
import type { Usage } from '../../state/usage.ts'
import { explainSubagents, type ExplainedSubagent } from './explain-subagents.ts'
import { adviceFor } from './advice.ts'
import { decidingFailure } from './deciding-failure.ts'
import { explainedRun, type Decided, type Explainable, type ExplainedRun } from './explainable.ts'
import { entryWarnings, warningsOf } from './warnings.ts'

/** The result of `explanation`. Steps are counted from 0. */
export type Explanation = {
  readonly status: ExplainedRun['status']
  readonly decided: Decided
  /** Every vote of the last count, in the order in which they were cast. */
  readonly votes: readonly ContinuationEvaluation[]
  readonly blocked: readonly Blocked[]
  /** Calls that failed, or whose outcome is unknown. */
  readonly failed: readonly { readonly step: number; readonly tool: string; readonly message: string }[]
  readonly asked: readonly Asked[]
  readonly changed: readonly Changed[]
  /** Messages that hooks have added to the conversation, except for bookkeeping. */
  readonly injected: readonly Injected[]
  /** Steps that were taken although the model had finished, and the hook that requested them. */
  readonly continued: readonly Continued[]
  readonly errors: readonly (ErrorRecord & { readonly step: number })[]
  readonly hookFailures: readonly Failure[]
  /** Failed attempts at model calls. */
  readonly failedAttempts: readonly { readonly step: number; readonly message: string }[]
  /** The same as `run.warnings`. */
  readonly warnings: readonly Warning[]
  /** Steps before which the conversation was summarized. */
  readonly summarized: readonly { readonly step: number; readonly message: string }[]
  /** The subagents of the run, and the decisions in them. */
  readonly subagents: readonly ExplainedSubagent[]
  /** What shadow hooks would have decided. */
  readonly shadows: readonly Shadowed[]
  readonly spent: Usage
  /** What would let the run continue; undefined if nothing is known to help. */
  readonly wayOn: string | undefined
}

type Blocked = {
  readonly step: number
  /** The tool whose call was blocked, or `answer` when the model's answer was withheld. */
  readonly tool: string
  readonly by: string
  readonly definedAt?: string
  readonly message: string
  /** The hook failed, and blocks for that reason. */
  readonly failed: boolean
  /** The call ran, but its result was withheld from the model. */
  readonly withheld: boolean
}
type Asked = {
  readonly step: number
  /** The tool of the call, or the trigger of a guard that asked without a call. */
  readonly tool: string
  readonly answer: string
  readonly message: string
  /** The hooks that asked. None if a tool or `approval` did. */
  readonly askers?: readonly { readonly by: string; readonly definedAt?: string }[]
  /** Why the approver denied what a guard asked without a call. */
  readonly reason?: string
}
type Changed = {
  readonly step: number
  readonly hook: string
  readonly trigger: string
  readonly definedAt?: string
  readonly changes: readonly Change[]
  /** The hook only keeps records for a capability. */
  readonly bookkeeping: boolean
}
type Continued = {
  readonly step: number
  readonly by: string
  readonly message: string
  readonly definedAt?: string
}
type Injected = {
  readonly step: number
  readonly hook: string
  readonly trigger: string
  readonly definedAt?: string
  /** The beginning of the text. */
  readonly text: string
}
type Shadowed = {
  readonly step: number
  readonly hook: string
  readonly trigger: string
  /** The tool of the call, at the tool triggers. */
  readonly tool?: string
  readonly definedAt?: string
  readonly decision?: string
  readonly message?: string
  readonly changes?: readonly Change[]
  readonly error?: string
}
type Failure = { readonly step: number; readonly hook: string; readonly trigger: string; readonly error: string }

/** Explains a run as data: which hook decided what, and why. `explain` formats the same as text. */
export function explanation(explained: Explainable, ...more: []): Explanation {
  checkNoOptions('explanation', more)
  const run = explainedRun(explained)
  const own = run.ledger.filter((entry) => entry.path === undefined)
  const ledger = own.filter((entry) => entry.shadow !== true)
  const { steps } = run
  const calls = steps.flatMap(({ index, toolCalls }) => toolCalls.map((call) => ({ ...call, step: index })))
  const decided = decidedOf(run)
  const failedAttempts = loopNotes(ledger, 'aroundInference', 'failed')
  const attempts = failedAttempts.filter(({ step }) => step === failedAttempts.at(-1)!.step).length
  const blocks = new Map(ledger.filter(isBlock).map((entry) => [placeOf(entry.step, entry.call, entry.trigger), entry]))
  const asks = Map.groupBy(ledger.filter(isAsk), ({ step, call, trigger }) => placeOf(step, call, trigger))
  const names = new Map(calls.map((call) => [placeOf(call.step, call.id), call.name]))
  return {
    status: run.status,
    decided,
    votes: run.final?.votes ?? [],
    blocked: [...calls.flatMap((call) => blockedCall(call, blocks)), ...withheldAnswers(ledger)].toSorted(byStep),
    failed: calls.flatMap(({ step, name, result }) =>
      result?.status === 'failed' || result?.status === 'outcomeUnknown'
        ? [{ step, tool: name, message: textOfJson(result.output) }]
        : [],
    ),
    asked: ledger.filter(isAnswer).map(({ step, trigger, call, decision, message, value }) => ({
      step: openStep(step, trigger),
      tool: call === undefined ? trigger : (names.get(placeOf(step, call)) ?? call),
      answer: decision!,
      message: message ?? '',
      ...askersIn(asks.get(placeOf(step, call, trigger))),
      ...(typeof value === 'string' && { reason: value }),
    })),
    changed: ledger.flatMap(({ step, hook, trigger, definedAt, changes, bookkeeping = false }) =>
      changes === undefined
        ? []
        : [{ step, hook, trigger, ...(definedAt !== undefined && { definedAt }), changes, bookkeeping }],
    ),
    injected: ledger.flatMap(injectedBy),
    continued: continuedOf(ledger, steps.filter(({ isOpen }) => isOpen !== true).length),
    errors: steps.flatMap((step) => step.errors.map((error) => ({ ...error, step: step.index }))),
    hookFailures: ledger.flatMap(({ step, hook, trigger, error }) =>
      error === undefined ? [] : [{ step, hook, trigger, error }],
    ),
    failedAttempts,
    warnings: warningsOf(run.ledger),
    summarized: loopNotes(ledger, 'afterCompaction', 'compacted'),
    subagents: explainSubagents(run.ledger),
    shadows: own.flatMap((entry) => shadowed(entry, names.get(placeOf(entry.step, entry.call)))),
    spent: run.usage,
    wayOn: adviceFor(run, decided, attempts),
  }
}

type MadeCall = ExplainedRun['steps'][number]['toolCalls'][number] & { readonly step: number }

function blockedCall(
  { step, id, name, result }: MadeCall,
  blocks: ReadonlyMap<string, TimedLedgerEntry>,
): readonly Blocked[] {
  const withheld = result?.withheld === true
  if (result !== undefined && result.status !== 'blocked' && !withheld) return []
  const trigger = withheld ? 'afterToolUse' : 'beforeToolUse'
  // The message of the block itself: a hook may have rewritten the result for the model.
  const entry = blocks.get(placeOf(step, id, trigger))
  if (result === undefined && entry === undefined) return [] // in a stored run that waits, only the ledger knows of blocked calls
  const by = entry?.hook ?? result?.by ?? 'hookloop'
  const message = entry?.error ?? entry?.message ?? textOfJson(result?.output ?? '')
  return [{ step, tool: name, by, message, withheld, ...blockDetails(entry) }]
}

function withheldAnswers(ledger: readonly TimedLedgerEntry[]): readonly Blocked[] {
  return ledger
    .filter((entry) => entry.trigger === 'afterInference' && isBlock(entry))
    .map((entry) => ({
      step: entry.step,
      tool: 'answer',
      by: entry.hook,
      message: entry.error ?? entry.message ?? '',
      withheld: true,
      ...blockDetails(entry),
    }))
}

function blockDetails(entry: TimedLedgerEntry | undefined): Pick<Blocked, 'failed' | 'definedAt'> {
  const { error, definedAt } = entry ?? {}
  return { failed: error !== undefined, ...(definedAt !== undefined && { definedAt }) }
}

/** The hooks that asked what an approver answered. */
function askersIn(asks: readonly TimedLedgerEntry[] = []): Pick<Asked, 'askers'> {
  const askers = new Map(
    asks.map(({ hook: by, definedAt }) => [by, { by, ...(definedAt !== undefined && { definedAt }) }]),
  )
  return askers.size === 0 ? {} : { askers: [...askers.values()] }
}

/** The messages that a hook has added. */
function injectedBy(entry: TimedLedgerEntry): readonly Injected[] {
  const { step, hook, trigger, definedAt, changes = [], bookkeeping } = entry
  if (bookkeeping === true) return []
  const place = { step, hook, trigger, ...(definedAt !== undefined && { definedAt }) }
  return changes.flatMap(({ added }) => (added === undefined ? [] : [{ ...place, text: added }]))
}

/** A shadow hook that would have decided or changed something, or failed. */
function shadowed(entry: TimedLedgerEntry, tool: string | undefined): readonly Shadowed[] {
  const { step, hook, trigger, definedAt, decision, message, changes, error, shadow } = entry
  if (shadow !== true || (decision === undefined && changes === undefined && error === undefined)) return []
  return [
    {
      step,
      hook,
      trigger,
      ...(tool !== undefined && { tool }),
      ...(definedAt !== undefined && { definedAt }),
      ...(decision !== undefined && { decision }),
      ...(message !== undefined && { message }),
      ...(changes !== undefined && { changes }),
      ...(error !== undefined && { error }),
    },
  ]
}

function isBlock({ decision }: TimedLedgerEntry): boolean {
  return decision?.split('+').includes('block') === true
}

function isAsk({ mode, decision }: TimedLedgerEntry): boolean {
  return mode !== 'loop' && decision?.split('+').includes('ask') === true
}

function isAnswer(entry: TimedLedgerEntry): boolean {
  return entry.mode === 'loop' && /^(denied|approved|postponed)/.test(entry.decision ?? '')
}

function loopNotes(ledger: readonly TimedLedgerEntry[], trigger: string, decision: string) {
  return ledger
    .filter((each) => each.mode === 'loop' && each.trigger === trigger && each.decision === decision)
    .map(({ step, message = '' }) => ({ step, message }))
}

/** The step of an entry. It was closed when onStop fired. */
function openStep(step: number, trigger: string): number {
  return trigger === 'onStop' ? step - 1 : step
}

/** Requests for another step that was taken. */
function continuedOf(ledger: readonly TimedLedgerEntry[], steps: number): Explanation['continued'] {
  return ledger
    .filter((entry) => entry.decision?.includes('requestContinuation') === true)
    .map(({ step, trigger, hook, message, definedAt }) => ({
      step: openStep(step, trigger),
      by: hook,
      message: message ?? '',
      ...(definedAt !== undefined && { definedAt }),
    }))
    .filter(({ step }) => step + 1 < steps)
}

function decidedOf(run: ExplainedRun): Decided {
  if (run.final !== undefined) {
    const { by, reason, message, value } = run.final
    const definedAt = placeOfHook(run, by)
    const failed = decidingFailure(run)
    const failure = failed && entryWarnings(failed).at(-1)
    return {
      by,
      reason,
      message,
      ...(value !== undefined && { value }),
      ...(definedAt !== undefined && { definedAt }),
      ...(failure !== undefined && { failure }),
    }
  }
  if (run.status === 'running')
    return { by: 'hookloop', reason: 'unfinished', message: 'it is still running, or its process was killed.' }
  const [first] = run.pending
  if (first === undefined) return { by: 'the caller', reason: 'paused', message: 'no further step was requested' }
  const message = run.pending.map((each) => `${each.toolCall.name}: ${each.message}`).join('; ')
  const definedAt = placeOfHook(run, first.by)
  return { by: first.by, reason: 'approval', message, ...(definedAt !== undefined && { definedAt }) }
}

/** Where the hook that decided is defined. */
function placeOfHook({ ledger }: ExplainedRun, name: string): string | undefined {
  return ledger.findLast((entry) => entry.hook === name && entry.path === undefined && entry.definedAt !== undefined)
    ?.definedAt
}

function placeOf(step: number, call: string | undefined, trigger = ''): string {
  return `${step}/${call ?? ''}/${trigger}`
}

function byStep(a: { readonly step: number }, b: { readonly step: number }): number {
  return a.step - b.step
}

import type { ContinuationEvaluation } from '../state/continuation.ts'
import type { ErrorRecord } from '../state/execution.ts'
import { textOfJson } from '../../values/json.ts'
import type { Change, TimedLedgerEntry } from '../state/ledger.ts'
import type { Warning } from '../state/warning.ts'
import type { Usage } from '../state/usage.ts'
import { explainSubagents, type ExplainedSubagent } from './explain-subagents.ts'
import { adviceFor } from './advice.ts'
import { explainedRun, type Decided, type Explainable, type ExplainedRun } from './explainable.ts'
import { defined, entryWarnings, has, warningsOf } from './warnings.ts'

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
  /** A change with `added` is a message that a hook has added to the conversation. */
  readonly changed: readonly Changed[]
  /** Steps that were taken although the model had finished, and the hook that requested them. */
  readonly continued: readonly Continued[]
  readonly errors: readonly (ErrorRecord & { readonly step: number })[]
  /** Failed attempts at model calls. */
  readonly failedAttempts: readonly Noted[]
  /** The same as `run.warnings`, with the hooks that failed. */
  readonly warnings: readonly Warning[]
  /** Steps before which the conversation was summarized. */
  readonly summarized: readonly Noted[]
  /** The subagents of the run, and the decisions in them. */
  readonly subagents: readonly ExplainedSubagent[]
  /** What shadow hooks would have decided. */
  readonly shadows: readonly Shadowed[]
  readonly spent: Usage
  /** What would let the run continue; undefined if nothing is known to help. */
  readonly wayOn: string | undefined
}

type Noted = { readonly step: number; readonly message: string }
/** A hook, and where it is defined. */
type By = { readonly by: string; readonly definedAt?: string }
/** A hook that ran. */
type Ran = { readonly step: number; readonly hook: string; readonly trigger: string; readonly definedAt?: string }

type Blocked = Noted &
  By & {
    /** The tool whose call was blocked, or `answer` when the model's answer was withheld. */
    readonly tool: string
    /** The hook failed, and blocks for that reason. */
    readonly failed: boolean
    /** The call ran, but its result was withheld from the model. */
    readonly withheld: boolean
  }
type Asked = Noted & {
  /** The tool of the call, or the trigger of a guard that asked without a call. */
  readonly tool: string
  readonly answer: string
  /** The hooks that asked. None if a tool or `approval` did. */
  readonly askers?: readonly By[]
  /** Why the approver blocked what a guard asked without a call. */
  readonly reason?: string
}
type Changed = Ran & {
  readonly changes: readonly Change[]
  /** The hook only keeps records for a capability. */
  readonly bookkeeping: boolean
}
type Continued = Noted & By
type Shadowed = Ran & {
  /** The tool of the call, at the tool triggers. */
  readonly tool?: string
  readonly decision?: string
  readonly message?: string
  readonly changes?: readonly Change[]
  readonly error?: string
}

/** Explains a run as data: which hook decided what, and why. `explain` formats the same as text. */
export function explanation(explained: Explainable): Explanation {
  const run = explainedRun(explained)
  const own = run.ledger.filter((entry) => entry.path === undefined)
  const ledger = own.filter((entry) => entry.shadow !== true)
  const { steps } = run
  const calls = steps.flatMap(({ index, toolCalls }) => toolCalls.map((call) => ({ ...call, step: index })))
  const names = new Map(calls.map((call) => [placeOf({ step: call.step, call: call.id }), call.name]))
  const toolOf = ({ step, call }: Place): string | undefined => names.get(placeOf({ step, call }))
  const failure = decidingFailure(run)
  const decided = decidedOf(run, failure)
  const failedAttempts = loopNotes(ledger, 'aroundInference', 'failed')
  const attempts = failedAttempts.filter(({ step }) => step === failedAttempts.at(-1)!.step).length
  return {
    status: run.status,
    decided,
    votes: run.final?.votes ?? [],
    blocked: blockedIn(ledger, calls),
    failed: calls
      .filter(({ result }) => result?.status === 'failed' || result?.status === 'outcomeUnknown')
      .map(({ step, name, result }) => ({ step, tool: name, message: textOfJson(result!.output) })),
    asked: askedIn(ledger, toolOf),
    changed: ledger
      .filter(({ changes }) => changes !== undefined)
      .map((entry) => ({ ...ranOf(entry), changes: entry.changes!, bookkeeping: entry.bookkeeping === true })),
    continued: continuedOf(ledger, steps.filter(({ isOpen }) => isOpen !== true).length),
    errors: steps.flatMap((step) => step.errors.map((error) => ({ ...error, step: step.index }))),
    failedAttempts,
    warnings: warningsOf(run.ledger),
    summarized: loopNotes(ledger, 'afterCompaction', 'compacted'),
    subagents: explainSubagents(run.ledger),
    shadows: own.filter(isShadowed).map((entry) => {
      const { decision, message, changes, error } = entry
      return defined<Shadowed>({ ...ranOf(entry), tool: toolOf(entry), decision, message, changes, error })
    }),
    spent: run.usage,
    wayOn: adviceFor(run, { decided, attempts, failed: failure }),
  }
}

type Entry = TimedLedgerEntry
type Place = { readonly step: number; readonly call?: string | undefined; readonly trigger?: string }
type MadeCall = ExplainedRun['steps'][number]['toolCalls'][number] & { readonly step: number }

function blockedIn(ledger: readonly Entry[], calls: readonly MadeCall[]): readonly Blocked[] {
  const blocks = ledger.filter((entry) => has(entry, 'block'))
  const byPlace = new Map(blocks.map((entry) => [placeOf(entry), entry]))
  const answers = blocks.filter(({ trigger }) => trigger === 'afterInference')
  return [
    ...calls.flatMap((call) => blockedCall(call, byPlace)),
    ...answers.map((entry) => blockedBy(entry, { tool: 'answer', withheld: true })),
  ].toSorted((a, b) => a.step - b.step)
}

function blockedCall(
  { step, id, name: tool, result }: MadeCall,
  blocks: ReadonlyMap<string, Entry>,
): readonly Blocked[] {
  const withheld = result?.withheld === true
  if (result !== undefined && result.status !== 'blocked' && !withheld) return []
  // The message of the block itself: a hook may have rewritten the result for the model.
  const entry = blocks.get(placeOf({ step, call: id, trigger: withheld ? 'afterToolUse' : 'beforeToolUse' }))
  if (entry !== undefined) return [blockedBy(entry, { tool, withheld, message: textOfJson(result?.output ?? '') })]
  if (result === undefined) return [] // in a stored run that waits, only the ledger knows of blocked calls
  return [{ step, tool, by: result.by ?? 'hookloop', message: textOfJson(result.output), withheld, failed: false }]
}

function blockedBy(
  entry: Entry,
  call: { readonly tool: string; readonly withheld: boolean; message?: string },
): Blocked {
  const { step, hook: by, definedAt, error } = entry
  const message = error ?? entry.message ?? call.message ?? ''
  return defined<Blocked>({ ...call, step, by, definedAt, message, failed: error !== undefined })
}

function askedIn(ledger: readonly Entry[], toolOf: (entry: Entry) => string | undefined): readonly Asked[] {
  const asks = Map.groupBy(
    ledger.filter((entry) => entry.mode !== 'loop' && has(entry, 'ask')),
    placeOf,
  )
  const answers = ledger.filter(
    ({ mode, decision }) => mode === 'loop' && /^(blocked|approved|postponed)/.test(decision ?? ''),
  )
  return answers.map((entry) => {
    const { trigger, call, decision, message = '', value } = entry
    const askers = new Map(
      asks.get(placeOf(entry))?.map(({ hook: by, definedAt }) => [by, defined<By>({ by, definedAt })]),
    )
    return defined<Asked>({
      step: openStep(entry),
      tool: call === undefined ? trigger : (toolOf(entry) ?? call),
      answer: decision!,
      message,
      askers: askers.size === 0 ? undefined : [...askers.values()],
      reason: typeof value === 'string' ? value : undefined,
    })
  })
}

function ranOf({ step, hook, trigger, definedAt }: Entry): Ran {
  return defined<Ran>({ step, hook, trigger, definedAt })
}

/** Whether a shadow hook would have decided or changed something, or failed. */
function isShadowed({ shadow, decision, changes, error }: Entry): boolean {
  return shadow === true && (decision !== undefined || changes !== undefined || error !== undefined)
}

function loopNotes(ledger: readonly Entry[], trigger: string, decision: string): readonly Noted[] {
  return ledger
    .filter((each) => each.mode === 'loop' && each.trigger === trigger && each.decision === decision)
    .map(({ step, message = '' }) => ({ step, message }))
}

/** The step of an entry. It was closed when onStop fired. */
function openStep({ step, trigger }: Entry): number {
  return trigger === 'onStop' ? step - 1 : step
}

/** Requests for another step that was taken. */
function continuedOf(ledger: readonly Entry[], steps: number): Explanation['continued'] {
  return ledger
    .filter((entry) => has(entry, 'requestContinuation') && openStep(entry) + 1 < steps)
    .map((entry) => {
      const { hook: by, message = '', definedAt } = entry
      return defined<Continued>({ step: openStep(entry), by, message, definedAt })
    })
}

function decidedOf(run: ExplainedRun, failed: Entry | undefined): Decided {
  const { final, status, pending } = run
  if (final !== undefined) {
    const { by, reason, message, value } = final
    const failure = failed && entryWarnings(failed).at(-1)
    return defined<Decided>({ by, reason, message, value, definedAt: placeOfHook(run, by), failure })
  }
  if (status === 'running')
    return { by: 'hookloop', reason: 'unfinished', message: 'it is still running, or its process was killed.' }
  const [first] = pending
  if (first === undefined) return { by: 'the caller', reason: 'paused', message: 'no further step was requested' }
  const message = pending.map((each) => `${each.toolCall.name}: ${each.message}`).join('; ')
  return defined<Decided>({ by: first.by, reason: 'approval', message, definedAt: placeOfHook(run, first.by) })
}

/** Where the hook that decided is defined. */
function placeOfHook({ ledger }: ExplainedRun, name: string): string | undefined {
  return ledger.findLast((entry) => entry.hook === name && entry.path === undefined && entry.definedAt !== undefined)
    ?.definedAt
}

function placeOf({ step, call = '', trigger = '' }: Place): string {
  return `${step}/${call}/${trigger}`
}

/**
 * The ledger entry of the hook whose failure ended the run: a guard that failed and therefore stopped it, or a hook whose
 * error was not recovered.
 */
function decidingFailure(run: ExplainedRun): TimedLedgerEntry | undefined {
  const { by } = run.final ?? {}
  if (by === undefined) return undefined
  const own = run.ledger.filter(({ mode, path, shadow }) => mode !== 'loop' && path === undefined && shadow !== true)
  const decided = own.findLast((entry) => entry.hook === by && isFinal(entry))
  return decided?.error === undefined ? own.findLast((entry) => isUnrecovered(entry, run)) : decided
}

function isFinal(entry: TimedLedgerEntry): boolean {
  const isStop = has(entry, 'forbidContinuation') || has(entry, 'forbid') // the latter if it failed
  return isStop || (entry.trigger === 'onUserInput' && has(entry, 'block'))
}

/** Whether the error of a hook is the one that the run failed with, or that a hook at `onError` stopped it for. */
function isUnrecovered(entry: TimedLedgerEntry, { final, code: failedWith, steps }: ExplainedRun): boolean {
  const { error, mode, decision, step, trigger, code = 'HOOK_FAILED' } = entry
  if (error === undefined || mode !== 'transform' || decision !== undefined) return false
  const last = steps.at(-1)
  if (last !== undefined && step < last.index) return false
  const { by, reason } = final!
  const isError = by === `error at ${trigger}`
  if (!isError && (reason !== 'errorForbade' || by.startsWith('error at '))) return false
  const recorded = step === last?.index ? last.errors.at(-1) : undefined
  if (recorded !== undefined) return recorded.during === trigger && recorded.code === code
  return isError ? code === (failedWith ?? code) : step !== last?.index // a stored run has no code
}

import type { AgentState } from '../../state/agent-state.ts'
import type { ContinuationEvaluation, StopReason } from '../../state/continuation.ts'
import type { ErrorRecord, Execution, FinalRecord, FinalStatus, Step } from '../../state/execution.ts'
import type { Json } from '../../state/json.ts'
import type { Change, TimedLedgerEntry } from '../../state/ledger.ts'
import type { Approval, OpenCall, ToolExecution } from '../../state/tool-call.ts'
import { noUsage, type Usage } from '../../state/usage.ts'
import { explainSubagents, type ExplainedSubagent } from './explain-subagents.ts'
import type { Run } from '../run.ts'

/** The part of a run that an explanation needs. */
export type Explainable = { readonly state: AgentState; readonly ledger: readonly TimedLedgerEntry[] } & (
  | { readonly status: FinalStatus; readonly final: FinalRecord }
  | { readonly status: 'suspended'; readonly pending: readonly Approval[] }
)

/** The result of `explanation`. Steps are counted from 0. */
export type Explanation = {
  readonly status: Run['status']
  readonly decided: {
    readonly by: string
    readonly reason: StopReason | 'approval' | 'paused'
    readonly message: string
    readonly value?: Json
  }
  /** Every vote of the last count, in the order in which they were cast. */
  readonly votes: readonly ContinuationEvaluation[]
  readonly blocked: readonly Blocked[]
  /** Calls that failed, or whose outcome is unknown. */
  readonly failed: readonly { readonly step: number; readonly tool: string; readonly message: string }[]
  readonly asked: readonly Asked[]
  readonly changed: readonly Changed[]
  /** Steps that were taken although the model had finished, and the hook that requested them. */
  readonly continued: readonly { readonly step: number; readonly by: string; readonly message: string }[]
  readonly errors: readonly (ErrorRecord & { readonly step: number })[]
  readonly hookFailures: readonly Failure[]
  /** Failed attempts at model calls. */
  readonly failedAttempts: readonly { readonly step: number; readonly message: string }[]
  /** Warnings of providers: ignored settings, corrected arguments. */
  readonly warnings: readonly { readonly step: number; readonly message: string }[]
  /** The subagents of the run, and the decisions in them. */
  readonly subagents: readonly ExplainedSubagent[]
  /** What shadow hooks would have decided. */
  readonly shadows: readonly Shadowed[]
  readonly spent: Usage
  /** What would let the run continue. */
  readonly wayOn: string
}

type Blocked = {
  readonly step: number
  /** The tool whose call was blocked, or `answer` when the model's answer was withheld. */
  readonly tool: string
  readonly by: string
  readonly message: string
  /** The call ran, but its result was withheld from the model. */
  readonly withheld: boolean
}
type Asked = { readonly step: number; readonly tool: string; readonly answer: string; readonly message: string }
type Changed = {
  readonly step: number
  readonly hook: string
  readonly trigger: string
  readonly changes: readonly Change[]
}
type Shadowed = {
  readonly step: number
  readonly hook: string
  readonly trigger: string
  /** The tool of the call, at the tool triggers. */
  readonly tool?: string
  readonly decision?: string
  readonly message?: string
  readonly changes?: readonly Change[]
  readonly error?: string
}
type Failure = { readonly step: number; readonly hook: string; readonly trigger: string; readonly error: string }

/** Explains a run as data: which hook decided what, and why. `explain` formats the same as text. */
export function explanation(run: Explainable): Explanation {
  const own = run.ledger.filter((entry) => entry.path === undefined)
  const ledger = own.filter((entry) => entry.shadow !== true)
  const execution = executionOf(run)
  const steps = execution?.steps.slice() ?? []
  const calls = execution === undefined ? [] : callsOf(execution)
  const decided = decidedOf(run)
  const blocks = new Map(ledger.filter(isBlock).map((entry) => [placeOf(entry.step, entry.call, entry.trigger), entry]))
  const names = new Map(calls.map((call) => [placeOf(call.step, call.id), call.name]))
  return {
    status: run.status,
    decided,
    votes: run.status === 'suspended' ? [] : run.final.votes,
    blocked: [...calls.flatMap((call) => blockedCall(call, blocks)), ...withheldAnswers(ledger)].toSorted(byStep),
    failed: calls
      .filter(({ result }) => result.status === 'failed' || result.status === 'outcomeUnknown')
      .map(({ step, name, result }) => ({ step, tool: name, message: textOf(result.output) })),
    asked: ledger.filter(isAnswer).map(({ step, call, decision, message }) => ({
      step,
      tool: names.get(placeOf(step, call)) ?? nameOfOpen(execution, call),
      answer: decision!,
      message: message ?? '',
    })),
    changed: ledger.flatMap(({ step, hook, trigger, changes }) =>
      changes === undefined ? [] : [{ step, hook, trigger, changes }],
    ),
    continued: continuedOf(ledger, steps.length),
    errors: steps.flatMap((step) => step.errors.map((error) => ({ ...error, step: step.index }))),
    hookFailures: ledger.flatMap(({ step, hook, trigger, error }) =>
      error === undefined ? [] : [{ step, hook, trigger, error }],
    ),
    failedAttempts: loopNotes(ledger, 'failed'),
    warnings: loopNotes(ledger, 'warning'),
    subagents: explainSubagents(run.ledger),
    shadows: own.flatMap((entry) => shadowed(entry, names.get(placeOf(entry.step, entry.call)))),
    spent: execution?.usage ?? noUsage,
    wayOn: wayOn(run, decided),
  }
}

/** The execution of this run. A blocked input has none; the state may still have an earlier one. */
function executionOf(run: Explainable): Execution | undefined {
  const { execution } = run.state
  return run.status === 'suspended' || execution?.final === run.final ? execution : undefined
}

type EndedCall = { readonly step: number; readonly id: string; readonly name: string; readonly result: ToolExecution }

/** Every call that has ended, including those of an open step. */
function callsOf({ steps, cursor }: Execution): readonly EndedCall[] {
  const closed = steps
    .slice()
    .flatMap((step: Step) =>
      step.toolCalls.map(({ id, name }, i) => ({ step: step.index, id, name, result: step.toolExecutions[i]! })),
    )
  if (cursor?.phase !== 'tools') return closed
  const open = cursor.step.calls.flatMap(({ id, name, result }: OpenCall) =>
    result === undefined ? [] : [{ step: steps.length, id, name, result }],
  )
  return [...closed, ...open]
}

function blockedCall(
  { step, id, name, result }: EndedCall,
  blocks: ReadonlyMap<string, TimedLedgerEntry>,
): readonly Blocked[] {
  const withheld = result.withheld === true
  if (result.status !== 'blocked' && !withheld) return []
  const trigger = withheld ? 'afterToolUse' : 'beforeToolUse'
  // The message of the block itself: a hook may have rewritten the result for the model.
  const entry = blocks.get(placeOf(step, id, trigger))
  const by = entry?.hook ?? result.by ?? 'hookloop'
  return [{ step, tool: name, by, message: entry?.error ?? entry?.message ?? textOf(result.output), withheld }]
}

function withheldAnswers(ledger: readonly TimedLedgerEntry[]): readonly Blocked[] {
  return ledger
    .filter((entry) => entry.trigger === 'afterInference' && isBlock(entry))
    .map(({ step, hook, message, error }) => ({
      step,
      tool: 'answer',
      by: hook,
      message: error ?? message ?? '',
      withheld: true,
    }))
}

/** A shadow hook that would have decided or changed something, or failed. */
function shadowed(entry: TimedLedgerEntry, tool: string | undefined): readonly Shadowed[] {
  const { step, hook, trigger, decision, message, changes, error, shadow } = entry
  if (shadow !== true || (decision === undefined && changes === undefined && error === undefined)) return []
  return [
    {
      step,
      hook,
      trigger,
      ...(tool !== undefined && { tool }),
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

function isAnswer(entry: TimedLedgerEntry): boolean {
  return entry.mode === 'loop' && /^(denied|approved|postponed)/.test(entry.decision ?? '')
}

function loopNotes(ledger: readonly TimedLedgerEntry[], decision: string) {
  return ledger
    .filter((each) => each.mode === 'loop' && each.trigger === 'aroundInference' && each.decision === decision)
    .map(({ step, message = '' }) => ({ step, message }))
}

function nameOfOpen(execution: Execution | undefined, id: string | undefined): string {
  const cursor = execution?.cursor
  const call = cursor?.phase === 'tools' ? cursor.step.calls.find((each) => each.id === id) : undefined
  return call?.name ?? id ?? ''
}

/** Requests for another step that was taken. */
function continuedOf(ledger: readonly TimedLedgerEntry[], steps: number): Explanation['continued'] {
  return ledger
    .filter((entry) => entry.decision?.includes('requestContinuation') === true)
    .map(({ step, trigger, hook, message }) => ({
      step: trigger === 'onStop' ? step - 1 : step, // the step was closed when onStop fired
      by: hook,
      message: message ?? '',
    }))
    .filter(({ step }) => step + 1 < steps)
}

function decidedOf(run: Explainable): Explanation['decided'] {
  if (run.status !== 'suspended') {
    const { by, reason, message, value } = run.final
    return { by, reason, message, ...(value !== undefined && { value }) }
  }
  const [first] = run.pending
  if (first === undefined) return { by: 'the caller', reason: 'paused', message: 'no further step was requested' }
  const message = run.pending.map((each) => `${each.toolCall.name}: ${each.message}`).join('; ')
  return { by: first.by, reason: 'approval', message }
}

const limits: Partial<Record<StopReason, string>> = {
  stepsLimit: 'maxSteps',
  tokenLimit: 'maxTokens',
  timeLimit: 'maxTimeMs',
  costLimit: 'maxCost',
  toolCallLimit: 'maxToolCalls',
}

function wayOn(run: Explainable, { reason, by, value }: Explanation['decided']): string {
  const forbade = run.status !== 'suspended' && run.final.votes.some((vote) => vote.decision === 'forbidContinuation')
  switch (reason) {
    case 'stepsLimit':
    case 'tokenLimit':
    case 'timeLimit':
    case 'costLimit':
    case 'toolCallLimit':
      if (by !== `guards.${limits[reason]}`) return `"${by}" not voting to stop`
      return value === undefined && reason === 'costLimit'
        ? 'a price for the model: createAgent({ prices })'
        : `a higher guards({ ${limits[reason]} })`
    case 'completed':
      return 'a hook that votes requestContinuation at afterStep or onStop'
    case 'finishReason':
      return forbade
        ? `"${by}" not voting to stop: a forbid cannot be overturned`
        : 'a complete answer that is not withheld, or a hook that requests another step at onStop'
    case 'approval': {
      const ids = run.status === 'suspended' ? run.pending.map(({ id }) => `'${id}': 'allow'`) : []
      return `agent.resume(run, { answers: { ${ids.join(', ')} } })`
    }
    case 'paused':
      return 'agent.resume(run)'
    case 'userRequested':
      return run.status === 'cancelled' ? 'agent.run(input, { from: run })' : `"${by}" not voting to stop`
    case 'inputBlocked':
      return `an input that "${by}" does not block`
    case 'continuationLimit':
      return 'an ok tool call between continuations (8 in a row and 32 in total are allowed)'
    case 'retryLimit':
      if (by === 'selfCritique.decide')
        return 'an answer that the critic approves, or a higher selfCritique({ maxRounds })'
      return by === 'retryLimit'
        ? 'a call that succeeds, or a higher retryLimit({ maxRetries })'
        : 'a call that succeeds'
    case 'errorForbade':
      if (by === 'output') return 'an answer that matches the output schema, or a higher outputOptions.maxRetries'
      if (run.status === 'failed') return wayOnFrom(run.state.lastStep?.errors.at(-1)?.code ?? '')
      return by.startsWith('errorPolicy') ? 'fewer failures, or another errorPolicy' : `the guard "${by}" not failing`
    case 'persistenceFailed':
      return 'a recording that can be written'
    case 'stopRequested':
      return `"${by}" not voting to stop: a forbid cannot be overturned`
    default:
      return reason satisfies never
  }
}

function wayOnFrom(code: string): string {
  if (code === 'MODEL_UNAUTHORIZED') return 'a key that the provider accepts, or fallback() to another model'
  if (code.startsWith('MODEL_'))
    return 'retry(), fallback() to another model, or an errorPolicy that retries or ignores it'
  return 'no error, or an errorPolicy that retries or ignores it'
}

function placeOf(step: number, call: string | undefined, trigger = ''): string {
  return `${step}/${call ?? ''}/${trigger}`
}

function byStep(a: { readonly step: number }, b: { readonly step: number }): number {
  return a.step - b.step
}

function textOf(output: Json): string {
  return typeof output === 'string' ? output : JSON.stringify(output)
}

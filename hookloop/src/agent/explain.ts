import type { ContinuationEvaluation, StopReason } from '../data/continuation.ts'
import type { ErrorRecord, FinalRecord } from '../data/execution.ts'
import type { Json } from '../data/json.ts'
import type { Change, TimedLedgerEntry } from '../data/ledger.ts'
import type { Usage } from '../data/usage.ts'
import type { Run } from './run.ts'

/** Why a run ended as it did, as data. `explain` says the same in words. */
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
  readonly asked: readonly {
    readonly step: number
    readonly tool: string
    readonly answer: string
    readonly message: string
  }[]
  readonly changed: readonly {
    readonly step: number
    readonly hook: string
    readonly trigger: string
    readonly changes: readonly Change[]
  }[]
  /** Steps that were taken although the model had finished, and who asked for them. */
  readonly continued: readonly { readonly step: number; readonly by: string; readonly message: string }[]
  readonly errors: readonly (ErrorRecord & { readonly step: number })[]
  readonly hookFailures: readonly {
    readonly step: number
    readonly hook: string
    readonly trigger: string
    readonly error: string
  }[]
  readonly spent: Usage
  /** What would have let it go on. */
  readonly wayOn: string
}

type Blocked = {
  readonly step: number
  readonly tool: string
  readonly by: string
  readonly message: string
  /** The call ran, but its result was kept from the model. */
  readonly withheld: boolean
}

/** Answers "who stopped my agent, and why" and "why did it not stop", as text. */
export function explain(run: Run<unknown>): string {
  const data = explanation(run)
  const { decided, spent } = data
  const value = decided.value === undefined ? '' : ` (${wordValue(decided.value)})`
  const lines = [
    `The run ${wordStatus(data)}: ${decided.message || decided.reason}${value}`,
    `  decided by   ${decided.by}, reason ${decided.reason}`,
    `  spent        ${count(spent.steps, 'step')}, ${count(spent.toolCalls, 'tool call')}, ${spent.inputTokens + spent.outputTokens} tokens${spent.costUsd > 0 ? `, ${spent.costUsd} USD` : ''}`,
    ...section('votes', data.votes, (vote) => `${vote.source}: ${vote.decision}, ${vote.message || vote.reason}`),
    ...section(
      'blocked',
      data.blocked,
      (each) =>
        `step ${each.step + 1}, ${each.tool}, ${each.withheld ? 'result withheld ' : ''}by ${each.by}: ${each.message}`,
    ),
    ...section('asked', data.asked, (each) => `step ${each.step + 1}, ${each.tool}: ${each.message} ${each.answer}`),
    ...section(
      'changed',
      data.changed,
      (each) => `step ${each.step + 1}, ${each.hook} at ${each.trigger}: ${each.changes.map(wordChange).join(', ')}`,
    ),
    ...section('continued', data.continued, (each) => `after step ${each.step + 1} by ${each.by}: ${each.message}`),
    ...section('errors', data.errors, (each) => `step ${each.step + 1}, ${each.during}: ${each.message}`),
    ...section(
      'failed hooks',
      data.hookFailures,
      (each) => `step ${each.step + 1}, ${each.hook} at ${each.trigger}: ${each.error}`,
    ),
    `  to go on     ${data.wayOn}`,
  ]
  return lines.join('\n')
}

/** The same as data. */
export function explanation(run: Run<unknown>): Explanation {
  const { state, ledger } = run
  const steps = state.execution?.steps.slice() ?? []
  const decided = decidedOf(run)
  return {
    status: run.status,
    decided,
    votes: run.status === 'suspended' ? [] : run.final.votes,
    blocked: steps.flatMap((step) =>
      step.toolExecutions.flatMap(({ status, by, output, withheld }, i) =>
        status === 'blocked' || withheld === true
          ? [
              {
                step: step.index,
                tool: step.toolCalls[i]!.name,
                by: by ?? 'hookloop',
                message: textOf(output),
                withheld: withheld === true,
              },
            ]
          : [],
      ),
    ),
    asked: ledger.filter(isAnswer).map((entry) => ({
      step: entry.step,
      tool: toolOf(run, entry),
      answer: entry.decision!,
      message: entry.message ?? '',
    })),
    changed: ledger
      .filter((entry) => entry.changes !== undefined)
      .map(({ step, hook, trigger, changes }) => ({ step, hook, trigger, changes: changes! })),
    continued: continuedOf(run),
    errors: steps.flatMap((step) => step.errors.map((error) => ({ ...error, step: step.index }))),
    hookFailures: ledger
      .filter((entry) => entry.error !== undefined)
      .map(({ step, hook, trigger, error }) => ({ step, hook, trigger, error: error! })),
    spent: state.execution?.usage ?? state.usage,
    wayOn: wayOn(run.status, decided.reason, decided.by),
  }
}

function decidedOf(run: Run<unknown>): Explanation['decided'] {
  if (run.status !== 'suspended') {
    const { by, reason, message, value }: FinalRecord = run.final
    return { by, reason, message, ...(value !== undefined && { value }) }
  }
  if (run.pending.length === 0)
    return { by: 'whoever iterated over it', reason: 'paused', message: 'it was paused between two steps' }
  const [first] = run.pending
  const message = run.pending.map((each) => `${each.toolCall.name}: ${each.message}`).join('; ')
  return { by: first!.by, reason: 'approval', message, value: run.pending.length }
}

function isAnswer(entry: TimedLedgerEntry): boolean {
  return entry.mode === 'loop' && /^(denied|approved|postponed)/.test(entry.decision ?? '')
}

function toolOf(run: Run<unknown>, { step, call }: TimedLedgerEntry): string {
  const calls = run.state.execution?.steps.at(step)?.toolCalls ?? []
  return calls.find((each) => each.id === call)?.name ?? call ?? ''
}

function continuedOf(run: Run<unknown>): Explanation['continued'] {
  return run.ledger
    .filter((entry) => entry.decision?.includes('requestContinuation') === true)
    .map(({ step, hook, message }) => ({ step: Math.max(0, step), by: hook, message: message ?? '' }))
}

const limits: Partial<Record<StopReason, string>> = {
  stepsLimit: 'maxSteps',
  tokenLimit: 'maxTokens',
  timeLimit: 'maxTimeMs',
  costLimit: 'maxCost',
  toolCallLimit: 'maxToolCalls',
}

function wayOn(status: Run['status'], reason: Explanation['decided']['reason'], by: string): string {
  switch (reason) {
    case 'stepsLimit':
    case 'tokenLimit':
    case 'timeLimit':
    case 'costLimit':
    case 'toolCallLimit':
      return `a higher guards({ ${limits[reason]} })`
    case 'completed':
      return 'a hook that votes requestContinuation at afterStep or onStop'
    case 'finishReason':
      return 'a complete answer (more output tokens, another prompt), or a hook that asks for another step at onStop'
    case 'approval':
      return 'agent.resume(run, { answers: { [id]: "allow" } })'
    case 'paused':
      return 'agent.resume(run)'
    case 'userRequested':
      return status === 'cancelled' ? 'not being cancelled' : `"${by}" not voting to stop`
    case 'inputBlocked':
      return `an input that "${by}" lets pass`
    case 'continuationLimit':
      return 'an ok tool call between continuations (8 in a row, 32 in all are allowed)'
    case 'retryLimit':
      return 'a call that succeeds, or a higher retryLimit({ maxRetries })'
    case 'errorForbade':
      return 'no error, or an errorPolicy that retries or ignores it'
    case 'persistenceFailed':
      return 'a recording that can be written'
    case 'stopRequested':
      return `"${by}" not voting to stop: a forbid cannot be overturned`
    default:
      return reason satisfies never
  }
}

function wordStatus({ status, decided }: Explanation): string {
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
      return decided.reason === 'paused' ? 'is paused' : 'waits for a person'
    default:
      return status satisfies never
  }
}

function section<T>(title: string, items: readonly T[], word: (item: T) => string): string[] {
  return items.map((item, i) => `  ${(i === 0 ? title : '').padEnd(12)} ${word(item)}`)
}

function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`
}

function wordChange({ path, before, after }: Change): string {
  if (before !== undefined && after !== undefined) return `${path} ${JSON.stringify(before)} → ${JSON.stringify(after)}`
  return after === undefined ? `${path} removed` : `${path} = ${JSON.stringify(after)}`
}

function wordValue(value: Json): string {
  const { value: reached, limit } = (value ?? {}) as { value?: Json; limit?: Json }
  return limit === undefined ? JSON.stringify(value) : `${JSON.stringify(reached)} of ${JSON.stringify(limit)}`
}

function textOf(output: Json): string {
  return typeof output === 'string' ? output : JSON.stringify(output)
}

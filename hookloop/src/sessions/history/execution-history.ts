import type { Capability } from '../../agent/capability.ts'
import { checkOptions, checkPositiveIntegers, definedOptions, invalidOption } from '../../agent/check-options.ts'
import type { AgentState } from '../../state/agent-state.ts'
import type { StopReason } from '../../state/continuation.ts'
import {
  workedMs,
  type ErrorRecord,
  type Execution,
  type FinalRecord,
  type FinalStatus,
} from '../../state/execution.ts'
import { isJsonObject } from '../../state/json.ts'
import type { Usage } from '../../state/usage.ts'
import { hook } from '../../hooks/hook.ts'

/** What is remembered of an execution when it is over. */
export type ExecutionSummary = {
  readonly id: string
  /** The first execution of a conversation is number 1. */
  readonly number: number
  readonly status: FinalStatus
  readonly reason: StopReason
  /** Who decided that it ends, and in which words. */
  readonly by: string
  readonly message: string
  readonly steps: number
  readonly usage: Usage
  readonly startedAt: number
  readonly endedAt: number
  /** Time at work; waiting for a person does not count. */
  readonly durationMs: number
  readonly errorCount: number
  /** The last few of them. */
  readonly errors: readonly ErrorRecord[]
}

/** Where summaries go beside the state: a table, a file, a queue. */
export type ExecutionStore = {
  append(summary: ExecutionSummary, of: { readonly agentId: string }): void | Promise<void>
}

export type ExecutionHistoryOptions = {
  /** How many summaries the state keeps: the latest. */
  readonly max?: number
  /** Characters of a message. */
  readonly maxMessageChars?: number
  /** Gets every summary as well. */
  readonly store?: ExecutionStore
}

export const executionHistoryPolicy = Object.freeze({ max: 50, maxMessageChars: 500, store: undefined })

/** Where the summaries live in the state's metadata. */
export const HISTORY_KEY = 'hookloop.executionHistory'

const MAX_ERRORS = 5

/** Remembers how each execution of a conversation went. */
export function executionHistory(options: ExecutionHistoryOptions = {}): Capability {
  checkOptions('executionHistory', options, Object.keys(executionHistoryPolicy))
  const { max, maxMessageChars, store } = { ...executionHistoryPolicy, ...definedOptions(options) }
  checkPositiveIntegers('executionHistory', { max, maxMessageChars }, ['max', 'maxMessageChars'])
  if (store !== undefined && typeof store.append !== 'function') {
    throw invalidOption('executionHistory', '"store" must have a method append(summary, { agentId })', store)
  }
  // Last, so that what other hooks do at the end is done.
  const how = { name: 'executionHistory.remember', priority: -1_000 }
  const remember = hook(
    'afterExecution',
    (ctx) => {
      const summary = summaryOf(ctx.state, maxMessageChars)
      if (summary === undefined) return ctx
      const kept = [...getExecutionHistory(ctx.state), summary].slice(-max)
      return ctx.withState((state) => state.withMetadata(HISTORY_KEY, kept))
    },
    how,
  )
  return {
    name: 'executionHistory',
    hooks: store === undefined ? [remember] : [remember, storeHook(store, maxMessageChars)],
    notes: [
      `Execution history: the last ${max} are kept in the state${store === undefined ? '' : ', all in a store'}.`,
    ],
  }
}

/** The summaries of the executions of a state, oldest first. */
export function getExecutionHistory(state: AgentState): readonly ExecutionSummary[] {
  const kept = state.metadata[HISTORY_KEY]
  const isList = Array.isArray(kept) && kept.every((each) => isJsonObject(each) && typeof each['id'] === 'string')
  return isList ? kept : []
}

/** An effect, so that a replay does not store a second time. A store that fails is noted; the run has ended as it has. */
function storeHook(store: ExecutionStore, maxMessageChars: number) {
  return hook(
    'afterExecution',
    async (ctx) => {
      const summary = summaryOf(ctx.state, maxMessageChars)
      if (summary !== undefined) await store.append(summary, { agentId: ctx.state.agentId })
      return ctx
    },
    { name: 'executionHistory.store', priority: -1_001, effect: true, timeoutMs: 10_000, onFailure: 'continue' },
  )
}

function summaryOf(state: AgentState, maxMessageChars: number): ExecutionSummary | undefined {
  const { execution } = state
  const final = execution?.final
  return execution === undefined || final === undefined
    ? undefined
    : summarize(execution, final, { number: state.executionCount, maxMessageChars })
}

function summarize(
  execution: Execution,
  final: FinalRecord,
  { number, maxMessageChars }: { number: number; maxMessageChars: number },
): ExecutionSummary {
  const short = (text: string): string =>
    text.length <= maxMessageChars ? text : `${text.slice(0, maxMessageChars).toWellFormed()}…`
  const errors = execution.steps.slice().flatMap((step) => step.errors)
  return {
    id: execution.id,
    number,
    status: final.status,
    reason: final.reason,
    by: final.by,
    message: short(final.message),
    steps: execution.steps.length,
    usage: execution.usage,
    startedAt: execution.startedAt,
    endedAt: final.at,
    durationMs: workedMs(execution, final.at),
    errorCount: errors.length,
    errors: errors.slice(-MAX_ERRORS).map((error) => ({ ...error, message: short(error.message) })),
  }
}

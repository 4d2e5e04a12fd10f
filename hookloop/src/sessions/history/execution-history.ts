import { having } from '../../state/option-types.ts'
import type { Capability } from '../../agent/capability.ts'
import { readOptions } from '../../state/check-options.ts'
import { checkState, type AgentState } from '../../state/agent-state.ts'
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
import { shorten } from '../../state/text.ts'

/** A finished execution in the history. */
export type ExecutionSummary = {
  readonly id: string
  /** The first execution of a conversation is number 1. */
  readonly number: number
  readonly status: FinalStatus
  readonly reason: StopReason
  /** The hook that ended it. */
  readonly by: string
  /** Why it ended. */
  readonly message: string
  readonly steps: number
  readonly usage: Usage
  readonly startedAt: number
  readonly endedAt: number
  /** Run time, without the time spent waiting for approval. */
  readonly durationMs: number
  readonly errorCount: number
  /** The last 5 errors. */
  readonly errors: readonly ErrorRecord[]
}

/** Receives every summary of `executionHistory`: a table, a file, a queue. */
export type ExecutionStore = {
  /** Stores a summary. An error is noted in the ledger and does not change the run. */
  append(summary: ExecutionSummary, of: { readonly agentId: string }): void | Promise<void>
}

/** Options of `executionHistory`. */
export type ExecutionHistoryOptions = {
  /** The number of latest summaries in the state. Default 50. */
  readonly maxEntries?: number
  /** The length of a message. Default 500. */
  readonly maxMessageChars?: number
  /** Receives every summary as well. Default none. */
  readonly store?: ExecutionStore
}

export const executionHistoryDefaults = Object.freeze({ maxEntries: 50, maxMessageChars: 500, store: undefined })

/** The metadata key of the summaries. */
export const HISTORY_KEY = 'hookloop.executionHistory'

const MAX_ERRORS = 5

/**
 * Records a summary of each execution of a conversation in the state. Read it with `getExecutionHistory`.
 *
 * @example
 * createAgent({ model, use: [executionHistory({ maxEntries: 20, store: { append: (summary) => db.insert(summary) } })] })
 */
export function executionHistory(options: ExecutionHistoryOptions = {}): Capability {
  const { maxEntries, maxMessageChars, store } = readOptions('executionHistory', options, executionHistoryDefaults, {
    store: having('a store', 'append'),
  })
  const remember = hook(
    'afterExecution',
    (ctx) => {
      const summary = summaryOf(ctx.state, maxMessageChars)
      if (summary === undefined) return ctx
      const latest = [...getExecutionHistory(ctx.state), summary].slice(-maxEntries)
      return ctx.withState((state) => state.withMetadata(HISTORY_KEY, latest))
    },
    { name: 'executionHistory.remember', bookkeeping: true, priority: -1_000 }, // last, after other hooks at the end
  )
  return {
    name: 'executionHistory',
    hooks: store === undefined ? [remember] : [remember, storeHook(store, maxMessageChars)],
    notes: [
      `Execution history: the last ${maxEntries} are in the state${store === undefined ? '' : ', all in a store'}.`,
    ],
  }
}

/** The summaries that `executionHistory` recorded in a state, oldest first. */
export function getExecutionHistory(state: AgentState): readonly ExecutionSummary[] {
  checkState('getExecutionHistory', state)
  const stored = state.metadata[HISTORY_KEY]
  const isList = Array.isArray(stored) && stored.every((each) => isJsonObject(each) && typeof each['id'] === 'string')
  return isList ? stored : []
}

/** An effect, so that a replay does not store again. An error is noted in the ledger and does not change the run. */
function storeHook(store: ExecutionStore, maxMessageChars: number) {
  return hook(
    'afterExecution',
    async (ctx) => {
      const summary = summaryOf(ctx.state, maxMessageChars)
      if (summary !== undefined) await store.append(summary, { agentId: ctx.state.agentId })
      return ctx
    },
    {
      name: 'executionHistory.store',
      bookkeeping: true,
      priority: -1_001,
      effect: true,
      timeoutMs: 10_000,
      onFailure: 'continue',
    },
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
  const errors = execution.steps.flatMap((step) => step.errors)
  return {
    id: execution.id,
    number,
    status: final.status,
    reason: final.reason,
    by: final.by,
    message: shorten(final.message, maxMessageChars),
    steps: execution.steps.length,
    usage: execution.usage,
    startedAt: execution.startedAt,
    endedAt: final.at,
    durationMs: workedMs(execution, final.at),
    errorCount: errors.length,
    errors: errors.slice(-MAX_ERRORS).map((error) => ({ ...error, message: shorten(error.message, maxMessageChars) })),
  }
}

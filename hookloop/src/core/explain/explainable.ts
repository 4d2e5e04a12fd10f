import type { AgentError, ErrorCode } from '../../errors.ts'
import type { AgentState } from '../state/agent-state.ts'
import type { StopReason } from '../state/continuation.ts'
import type { ErrorRecord, Execution, FinalRecord, FinalStatus, HookRecord } from '../state/execution.ts'
import type { Json } from '../../values/json.ts'
import type { TimedLedgerEntry } from '../state/ledger.ts'
import type { StoredRun } from '../state/stored-run.ts'
import type { Approval, ToolExecution } from '../state/tool-call.ts'
import { openPartOf, type OpenPart } from '../agent/run.ts'
import { addUsage, noUsage, type Usage } from '../state/usage.ts'
import type { Warning } from '../state/warning.ts'

/** A run that `explain` accepts: the result of `agent.run`, or a stored run from `readRuns`. */
export type Explainable = FinishedRun | StoredRun

/** The part of the result of a run that an explanation needs. */
type FinishedRun = {
  readonly state: AgentState
  readonly ledger: readonly TimedLedgerEntry[]
  /** The session that it ran in. */
  readonly session?: string | undefined
  /** The error of a run that failed. */
  readonly error?: Pick<AgentError, 'code'>
} & (
  | { readonly status: FinalStatus; readonly final: FinalRecord }
  | { readonly status: 'suspended'; readonly pending: readonly Approval[] }
)

/** Why a run ended or waits, and which hook decided it. */
export type Decided = {
  readonly by: string
  /** Where the hook is defined: file and line, or the file and its script. */
  readonly definedAt?: string
  /** `unfinished`: a stored run has no end yet. */
  readonly reason: StopReason | 'approval' | 'paused' | 'unfinished'
  readonly message: string
  readonly value?: Json
  /** The failure of a hook that ended the run. It is one of `warnings`. */
  readonly failure?: Warning
}

/** What explanations are made from, whether a run was stored or not. */
export type ExplainedRun = {
  readonly status: FinalStatus | 'suspended' | 'running'
  readonly session?: string | undefined
  readonly final?: FinalRecord
  readonly pending: readonly Approval[]
  readonly ledger: readonly TimedLedgerEntry[]
  readonly steps: readonly ExplainedStep[]
  readonly hooks: readonly HookRecord[]
  readonly usage: Usage
  /** The code of the error that it failed with. */
  readonly code?: ErrorCode | undefined
}

type ExplainedStep = {
  readonly index: number
  readonly toolCalls: readonly { readonly id: string; readonly name: string; readonly result?: ToolExecution }[]
  readonly errors: readonly ErrorRecord[]
  readonly isOpen?: true
}

/** A run as explanations need it. */
export function explainedRun(run: Explainable): ExplainedRun {
  return 'state' in run ? finishedRun(run) : run
}

function finishedRun(run: FinishedRun): ExplainedRun {
  const { state, status, session, ledger, error } = run
  const isSuspended = run.status === 'suspended'
  // A blocked input has no execution, and neither has a run that waits in its first step; the state may still have an earlier one.
  const isOwn = isSuspended ? state.execution?.status === 'suspended' : state.execution?.final === run.final
  const execution = isOwn ? state.execution : undefined
  const open = isSuspended ? openPartOf(run) : undefined
  return {
    status,
    session,
    ...(!isSuspended && { final: run.final }),
    pending: isSuspended ? run.pending : [],
    ledger,
    steps: stepsOf(execution, open?.calls ?? []),
    hooks: execution?.hooks ?? [],
    usage: addUsage(execution?.usage ?? noUsage, open?.usage ?? {}),
    code: error?.code,
  }
}

function stepsOf(execution: Execution | undefined, open: OpenPart['calls']): readonly ExplainedStep[] {
  const closed = execution?.steps.map(({ index, toolCalls, toolExecutions, errors }) => ({
    index,
    toolCalls: toolCalls.map(({ id, name }, i) => ({ id, name, result: toolExecutions[i]! })),
    errors,
  }))
  if (open.length === 0) return closed ?? []
  const toolCalls = open.map(({ id, name, result }) => ({ id, name, ...(result !== undefined && { result }) }))
  return [...(closed ?? []), { index: closed?.length ?? 0, toolCalls, errors: [], isOpen: true }]
}

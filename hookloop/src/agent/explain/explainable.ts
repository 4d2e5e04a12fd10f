import type { AgentError } from '../../errors.ts'
import type { AgentState } from '../../state/agent-state.ts'
import type { StopReason } from '../../state/continuation.ts'
import type { FinalRecord, FinalStatus } from '../../state/execution.ts'
import type { Json } from '../../state/json.ts'
import type { TimedLedgerEntry } from '../../state/ledger.ts'
import type { Approval } from '../../state/tool-call.ts'

/** The part of a run that an explanation needs. */
export type Explainable = {
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
  readonly reason: StopReason | 'approval' | 'paused'
  readonly message: string
  readonly value?: Json
}

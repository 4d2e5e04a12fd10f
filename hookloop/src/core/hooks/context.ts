import type { AgentState } from '../state/agent-state.ts'
import type { StopReason } from '../state/continuation.ts'
import type { RequestChange, ResponseChange } from '../state/inference.ts'
import type { Json, JsonObject } from '../../values/json.ts'
import type { LedgerEntry, TimedLedgerEntry } from '../state/ledger.ts'
import type { Message } from '../state/message.ts'
import type { WarningCode } from '../state/warning.ts'
import type { TokenUsage, Usage } from '../state/usage.ts'
import type { AskOptions } from './base-context.ts'
import type { Infers } from './infer.ts'
import type { CompactOptions } from './compaction.ts'
import type { Ability, Facts, GuardAbility, GuardTrigger, HookAbility, HookTrigger, PlainTrigger } from './triggers.ts'

// The types of contexts. A context is immutable: every method returns a changed copy, and only what is returned counts.

/** What every context has. */
export interface Always<T> {
  readonly trigger: T
  readonly state: AgentState
  /** What this run has spent so far, including the current call. */
  readonly spent: Usage
  /** The time of the last effect, in milliseconds since 1970. It is the same in a replay. */
  readonly now: number
  /** How long the run has worked, in milliseconds, without the time spent waiting for approval. The same in a replay. */
  readonly workedMs: number
  readonly signal: AbortSignal
  /** Every hook that ran before. */
  readonly ledger: readonly LedgerEntry[]
}

export interface Spends {
  /** Adds the usage of model calls that the hook made itself, so that limits include it. */
  spend(usage: Partial<TokenUsage>): this
}
export interface Warns {
  /** Reports a problem that stops nothing. `run.warnings` has it. */
  warn(message: string, code?: WarningCode): this
}
/** Around hooks return no context, so their usage is counted at once. */
export interface SpendsAtOnce {
  spend(usage: Partial<TokenUsage>): void
}
export interface ChangesState {
  /** Changes the conversation or the metadata. Changes of the execution are ignored. */
  withState(change: (state: AgentState) => AgentState): this
}
export interface ChangesInput {
  withInput(input: string | Message): this
}
export interface ChangesRequest {
  withRequest(change: RequestChange): this
}
export interface ChangesResponse {
  /** `text` replaces all text; `content` replaces everything, including tool calls. Omit what does not change: undefined throws. */
  withResponse(change: ResponseChange): this
}
export interface ChangesArgs<A> {
  withArgs(args: A): this
}
export interface ChangesOutput {
  withOutput(output: unknown): this
}
export interface ChangesMessages {
  withMessages(messages: Iterable<Message>): this
}
export interface Stops {
  /** Forbids the run to continue. Final; takes effect when this trigger ends. */
  stop(message: string, details?: { readonly reason?: StopReason; readonly value?: Json }): this
}
export interface Continues {
  /** Requests another step, with a message for the model. Overturns an `allowStop`, never a forbid. */
  requestContinuation(message: string): this
}
export interface Votes extends Stops, Continues {
  /** Votes that the run may end, unless a hook requests another step. */
  allowStop(message: string, details?: { readonly reason?: StopReason; readonly value?: Json }): this
  /** Votes to continue. Recorded only: without votes a run continues. */
  allowContinuation(message: string): this
}
export interface Recovers {
  /** Repeats what failed. Recorded effects are not repeated. */
  retry(options?: { readonly afterMs?: number }): this
  /** Continues without what failed. The error stays in the ledger and on the step. */
  ignore(): this
}
export interface Blocks {
  /** Blocks. Final: no later hook can change it. */
  block(message?: string): this
}
export interface Asks {
  /** Requests approval. It is asked for when all guards have run, because a block or a stop wins over it. */
  ask(message: string): this
}
export interface Permits extends Blocks {
  /** Requests approval. It is asked for when all guards have run, because a block wins over it. */
  ask(message: string, options?: AskOptions): this
  /** Approves a call that a tool, `approval` or a guard asks about by default. It does not answer another question of a guard. */
  allow(message?: string): this
}

export interface Compacts {
  /** Requests a compaction before the step: a summary and the latest messages replace the conversation. */
  compact(options: CompactOptions): this
}

export interface LimitsTime {
  /** Limits the time of the model call. The shortest limit of all guards applies; when it is exceeded, the run stops. */
  within(ms: number): this
}

interface Abilities<A> extends Record<Ability, object> {
  state: ChangesState
  input: ChangesInput
  request: ChangesRequest
  response: ChangesResponse
  args: ChangesArgs<A>
  output: ChangesOutput
  messages: ChangesMessages
  stop: Stops
  vote: Votes
  continue: Continues
  recover: Recovers
  block: Blocks
  permit: Permits
  ask: Asks
  within: LimitsTime
  compact: Compacts
}

/** The intersection of several abilities. */
type AllOf<A, K extends Ability> = { [P in K]: (x: Abilities<A>[P]) => void }[K] extends (x: infer I) => void
  ? I
  : never

/** What all modes see at a trigger. */
export type SeenContext<T extends HookTrigger, A = JsonObject> = T extends T ? Always<T> & Readonly<Facts<A>[T]> : never

/** The context of an `around…` hook. */
export type AroundContext<T extends HookTrigger, A = JsonObject> = T extends T
  ? SeenContext<T, A> & SpendsAtOnce
  : never

/** Durations. They differ from run to run, so only observers see them. */
type Times<T> = {
  /** Every hook that ran before, with its duration. */
  readonly ledger: readonly TimedLedgerEntry[]
} & (T extends 'afterInference' | 'afterToolUse'
  ? {
      /** How long the model call or the tool took; missing when it did not happen now. */
      readonly durationMs?: number
    }
  : unknown)

/** The context of an observer, with the ledger and durations. */
export type ObserveContext<T extends HookTrigger, A = JsonObject> = T extends T ? SeenContext<T, A> & Times<T> : never

/** The context of a hook at a trigger, with the methods to change it. A method returns a changed copy. */
export type HookContext<T extends PlainTrigger, A = JsonObject> = T extends T
  ? SeenContext<T, A> & Spends & Warns & Infers & AllOf<A, HookAbility<T>>
  : never

/** The context of a guard at a trigger, with the methods to decide. At `beforeInference` it cannot call models itself. */
export type GuardContext<T extends GuardTrigger, A = JsonObject> = T extends T
  ? SeenContext<T, A> & Spends & Warns & (T extends 'beforeInference' ? unknown : Infers) & AllOf<A, GuardAbility<T>>
  : never

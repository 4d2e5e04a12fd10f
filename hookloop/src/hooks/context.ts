import type { AgentState } from '../state/agent-state.ts'
import type { StopReason } from '../state/continuation.ts'
import type { RequestChange, ResponseChange } from '../state/inference.ts'
import type { Json, JsonObject } from '../state/json.ts'
import type { LedgerEntry, TimedLedgerEntry } from '../state/ledger.ts'
import type { List } from '../state/list.ts'
import type { Message } from '../state/message.ts'
import type { TokenUsage, Usage } from '../state/usage.ts'
import type { Infers } from './infer.ts'
import type { CompactOptions } from './compaction.ts'
import type { Ability, Facts, GuardAbility, GuardTrigger, HookAbility, HookTrigger, PlainTrigger } from './triggers.ts'

// The types of contexts. A context is immutable: every method returns a changed copy, and only what is returned counts.

/** What every context has. */
export interface Always<T> {
  readonly trigger: T
  readonly state: AgentState
  /** What this run has spent so far, the call at hand included. */
  readonly spent: Usage
  /** The time of the last effect, in milliseconds since 1970: the same on every replay. */
  readonly now: number
  readonly signal: AbortSignal
  /** Every firing before this one. */
  readonly ledger: List<LedgerEntry>
}

export interface Spends {
  /** Counts what the hook itself has spent, on a model it asked for its opinion: limits then see it. */
  spend(usage: Partial<TokenUsage>): this
}
/** Around a call there is no context to give back, so what is spent counts at once. */
export interface SpendsAtOnce {
  spend(usage: Partial<TokenUsage>): void
}
export interface ChangesState {
  /** Changes conversation or metadata. The execution is the loop's own. */
  withState(change: (state: AgentState) => AgentState): this
}
export interface ChangesInput {
  withInput(input: string | Message): this
}
export interface ChangesRequest {
  withRequest(change: RequestChange): this
}
export interface ChangesResponse {
  /** A new `text` takes the place of all text; a new `content` replaces everything, calls included. */
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
  /** Forbids the run to go on. It cannot be taken back, and takes effect when this trigger ends. */
  stop(message: string, details?: { readonly reason?: StopReason; readonly value?: Json }): this
}
export interface Continues {
  /** Asks for another step and tells the model why. Overturns an `allowStop`, never a forbid. */
  requestContinuation(message: string): this
}
export interface Votes extends Stops, Continues {
  /** Says that the run may end here, unless somebody asks to go on. */
  allowStop(message: string, details?: { readonly reason?: StopReason; readonly value?: Json }): this
  /** Says that nothing speaks against going on. Recorded only: with no vote a run goes on. */
  allowContinuation(message: string): this
}
export interface Recovers {
  /** Tries again what failed. What was recorded as done is not done again. */
  retry(options?: { readonly afterMs?: number }): this
  /** Goes on without what failed; it stays in the ledger and on the step. */
  ignore(): this
}
export interface Blocks {
  /** Says no. Final: nothing that comes later can lower it. */
  block(message?: string): this
}
export interface Permits extends Blocks {
  /** A person must agree first. Waits until every guard has spoken, because a block wins over it. */
  ask(message: string): this
  /** Answers the question that a tool or `approval` asks by default, never the question of another guard. */
  allow(message?: string): this
}

export interface Compacts {
  /** Asks that the conversation be made shorter before the step is taken: a summary, and the latest messages. */
  compact(options: CompactOptions): this
}

export interface LimitsTime {
  /** How long the model call may take; the shortest time that any guard says holds. Then the run is stopped. */
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
  within: LimitsTime
  compact: Compacts
}

/** All of several abilities at once. */
type AllOf<A, K extends Ability> = { [P in K]: (x: Abilities<A>[P]) => void }[K] extends (x: infer I) => void
  ? I
  : never

/** What everybody sees at a trigger. */
export type SeenContext<T extends HookTrigger, A = JsonObject> = T extends T ? Always<T> & Readonly<Facts<A>[T]> : never

/** The context of an `around…` hook. */
export type AroundContext<T extends HookTrigger, A = JsonObject> = T extends T
  ? SeenContext<T, A> & SpendsAtOnce
  : never

/** How long things took. It differs from run to run, so only those see it who can change nothing. */
type Times<T> = {
  /** Every firing before this one, with the time it took. */
  readonly ledger: List<TimedLedgerEntry>
} & (T extends 'afterToolUse'
  ? {
      /** How long the tool ran; missing when it did not. */
      readonly durationMs?: number
    }
  : unknown)

/** The context of an observer, with the ledger and durations. */
export type ObserveContext<T extends HookTrigger, A = JsonObject> = T extends T ? SeenContext<T, A> & Times<T> : never

/** The context of a hook at a trigger, with the methods to change it. A method returns a changed copy. */
export type HookContext<T extends PlainTrigger, A = JsonObject> = T extends T
  ? SeenContext<T, A> & Spends & Infers & AllOf<A, HookAbility<T>>
  : never

/** The context of a guard at a trigger, with the methods to decide. At `beforeInference` it cannot call models itself. */
export type GuardContext<T extends GuardTrigger, A = JsonObject> = T extends T
  ? SeenContext<T, A> & Spends & (T extends 'beforeInference' ? unknown : Infers) & AllOf<A, GuardAbility<T>>
  : never

import type { ContinuationOutcome } from '../state/continuation.ts'
import type { ErrorRecord, Step } from '../state/execution.ts'
import type { InferenceRequest, InferenceResponse } from '../state/inference.ts'
import type { Json, JsonObject } from '../../values/json.ts'
import type { Message } from '../state/message.ts'
import type { Subagent } from '../state/subagent.ts'
import type { Answers, Approval, ToolCall, ToolExecution } from '../state/tool-call.ts'
import { AgentError } from '../../errors.ts'

/** What each context carries in addition to what all contexts have. `A`: the arguments of a tool call. */
export interface Facts<A = JsonObject> {
  onSessionStart: { sessionId: string; source: string }
  onUserInput: { input: Message }
  beforeExecution: {}
  beforeStep: {}
  beforeInference: { request: InferenceRequest }
  aroundInference: { request: InferenceRequest }
  afterInference: { request: InferenceRequest; response: InferenceResponse }
  beforeToolUse: { toolCall: ToolCall<A> }
  aroundToolUse: { toolCall: ToolCall<A> }
  afterToolUse: { toolCall: ToolCall; toolExecution: ToolExecution }
  afterStep: { step: Step }
  onStop: { outcome: ContinuationOutcome; continuations: number }
  onSubagentStop: { subagent: Subagent; outcome: ContinuationOutcome; output: Json }
  onPause: { pending: readonly Approval[] }
  onResume: { answers: Answers }
  onError: { error: ErrorRecord; during: string; consecutiveFailures: number }
  beforeCompaction: { messages: readonly Message[]; requested: boolean }
  afterCompaction: { messages: readonly Message[]; requested: boolean; summary: string }
  afterExecution: { outcome: ContinuationOutcome }
  onSessionEnd: { sessionId: string; reason: string }
}

/** What a context can do. Each ability is a set of methods; see `context-methods.ts`. */
export type Ability =
  | 'state'
  | 'input'
  | 'request'
  | 'response'
  | 'args'
  | 'output'
  | 'messages'
  | 'stop'
  | 'vote'
  | 'continue'
  | 'recover'
  | 'block'
  | 'permit'
  | 'ask'
  | 'within'
  | 'compact'

type TriggerSpec<F> = {
  /** The facts, by name. */
  readonly carries: readonly (keyof F)[]
  /** What a transform can do here; `around` wraps the call instead. */
  readonly hook: readonly Ability[] | 'around'
  /** What a guard can do here. Empty: guards are not allowed here. */
  readonly guard: readonly Ability[]
  /** The decision of a guard that fails, or of a hook with `onFailure: 'block'`. */
  readonly onGuardFailure?: 'forbid' | 'block'
}

/**
 * Every trigger in the order of the lifecycle, with what its context carries and what hooks and guards can do there. The
 * types of contexts, the checks at run time and the table in the docs are derived from it.
 */
const table = {
  onSessionStart: { carries: ['sessionId', 'source'], hook: ['state'], guard: [] },
  onUserInput: { carries: ['input'], hook: ['input', 'state'], guard: ['block', 'ask'], onGuardFailure: 'block' },
  beforeExecution: { carries: [], hook: ['state', 'stop'], guard: ['stop'], onGuardFailure: 'forbid' },
  beforeStep: {
    carries: [],
    hook: ['state', 'stop', 'vote', 'compact'],
    guard: ['stop', 'vote', 'ask'],
    onGuardFailure: 'forbid',
  },
  beforeInference: {
    carries: ['request'],
    hook: ['request', 'state', 'stop'],
    guard: ['stop', 'within', 'ask'],
    onGuardFailure: 'forbid',
  },
  aroundInference: { carries: ['request'], hook: 'around', guard: [] },
  afterInference: {
    carries: ['request', 'response'],
    hook: ['response', 'state', 'stop'],
    guard: ['block', 'stop'],
    onGuardFailure: 'block',
  },
  beforeToolUse: {
    carries: ['toolCall'],
    hook: ['args', 'state', 'stop'],
    guard: ['block', 'permit', 'stop'],
    onGuardFailure: 'block',
  },
  aroundToolUse: { carries: ['toolCall'], hook: 'around', guard: [] },
  afterToolUse: {
    carries: ['toolCall', 'toolExecution'],
    hook: ['output', 'state', 'stop'],
    guard: ['block', 'stop'],
    onGuardFailure: 'block',
  },
  afterStep: { carries: ['step'], hook: ['state', 'stop', 'vote'], guard: ['stop', 'vote'], onGuardFailure: 'forbid' },
  onStop: {
    carries: ['outcome', 'continuations'],
    hook: ['state', 'continue'],
    guard: ['continue', 'stop', 'ask'],
    onGuardFailure: 'forbid',
  },
  onSubagentStop: {
    carries: ['subagent', 'outcome', 'output'],
    hook: ['output', 'state', 'continue'],
    guard: ['block', 'continue'],
    onGuardFailure: 'block',
  },
  onPause: { carries: ['pending'], hook: ['state'], guard: [] },
  onResume: { carries: ['answers'], hook: ['state'], guard: [] },
  onError: { carries: ['error', 'during', 'consecutiveFailures'], hook: ['state', 'stop', 'recover'], guard: [] },
  beforeCompaction: {
    carries: ['messages', 'requested'],
    hook: ['messages', 'state'],
    guard: ['block'],
    onGuardFailure: 'block',
  },
  afterCompaction: {
    carries: ['messages', 'requested', 'summary'],
    hook: ['messages', 'state'],
    guard: ['block'],
    onGuardFailure: 'block',
  },
  afterExecution: { carries: ['outcome'], hook: ['state'], guard: [] },
  onSessionEnd: { carries: ['sessionId', 'reason'], hook: ['state'], guard: [] },
} as const satisfies { readonly [T in keyof Facts]: TriggerSpec<Facts[T]> }

/** The name of a trigger, such as `'beforeToolUse'`. */
export type HookTrigger = keyof typeof table
type Triggers = typeof table

export const triggerNames = Object.keys(table) as HookTrigger[]

/**
 * Every trigger with what its context carries and what hooks and guards can do there, in the order of the lifecycle. It
 * is also the list of their names.
 *
 * @example
 * for (const trigger of triggers) console.log(trigger, triggers[trigger].carries)
 */
export const triggers: Triggers & Iterable<HookTrigger> = Object.freeze(
  Object.defineProperty(table as Triggers & Iterable<HookTrigger>, Symbol.iterator, {
    value: () => triggerNames[Symbol.iterator](),
  }),
)

export type AroundTrigger = { [T in HookTrigger]: Triggers[T]['hook'] extends 'around' ? T : never }[HookTrigger]
/** A trigger that wraps no call. */
export type PlainTrigger = Exclude<HookTrigger, AroundTrigger>
/** A trigger at which guards decide. */
export type GuardTrigger = { [T in HookTrigger]: Triggers[T]['guard'] extends readonly [] ? never : T }[HookTrigger]

/** The abilities of a transform and of a guard at a trigger, as types. */
export type HookAbility<T extends PlainTrigger> = Extract<Triggers[T]['hook'], readonly Ability[]>[number]
export type GuardAbility<T extends GuardTrigger> = Triggers[T]['guard'][number]

export function isTrigger(name: unknown): name is HookTrigger {
  return typeof name === 'string' && Object.hasOwn(triggers, name)
}

export function isAround(trigger: HookTrigger): trigger is AroundTrigger {
  return triggers[trigger].hook === 'around'
}

/** What is declared about a trigger: what it carries, and what hooks and guards can do there. */
export function specOf(trigger: HookTrigger): TriggerSpec<Record<string, unknown>> {
  return triggers[trigger]
}

export function unknownTrigger(name: unknown): AgentError {
  return new AgentError(
    'HOOK_UNKNOWN_TRIGGER',
    `Unknown trigger ${JSON.stringify(name) ?? String(name)}. Known: ${triggerNames.join(', ')}.`,
    { value: name },
  )
}

import { isStringList, choiceOf, optionTypes, type OptionType, type OptionTypes } from '../state/option-types.ts'
import type { EffectsOptions } from '../effects/effects.ts'
import type { AgentState } from '../state/agent-state.ts'
import type { JsonObject } from '../state/json.ts'
import type { SavedRun } from '../state/saved-run.ts'
import { checkOptions } from '../state/check-options.ts'
import { isPlainObject } from '../state/describe-value.ts'
import type { ResumeOptions } from './loop/resume.ts'
import type { Run } from './run.ts'
import type { SendOptions, WaitOptions } from './session.ts'

/** The options of one run. */
export type RunOptions = {
  /** Facts for hooks, such as the user. The model does not see them. */
  readonly metadata?: JsonObject
  /** Cancels the run. Default none. */
  readonly signal?: AbortSignal
  /** A finished run, or its state, to continue the conversation from. */
  readonly from?: Run<unknown> | SavedRun | AgentState
  /**
   * Whether the model streams its answer, and its pieces are events. `true` in `run` with a session: they are logged, for
   * `watchSession`. Default: `true` for `stream`.
   */
  readonly deltas?: boolean
  /** The clock and the id of the run, from `liveEffects`. Default: the clock of the system. */
  readonly effects?: EffectsOptions
  /** The session to run in. It is stored in the agent's store, and the conversation continues from there. */
  readonly session?: string
  /**
   * If a run of the session waits for an answer or was interrupted: `reject` throws STATE_SUSPENDED; `deny` denies the open
   * questions, ends that run, and takes the input. The model receives both. Default `reject`.
   */
  readonly onNewInput?: 'reject' | 'deny'
  /**
   * An id of the request, such as the id of an HTTP request or of a job. The same turn is the same run: if the session has it,
   * the run is resumed, or returned if it has ended or waits for an answer. It is part of the `input` event. The last 256 turns of a session are known.
   */
  readonly turn?: string
  /**
   * Whether the session stores each model request as a whole: system prompt, messages, tools and settings. `readRuns` returns
   * them. Default false: a fingerprint is stored.
   */
  readonly recordRequests?: boolean
} & WaitOptions

const waitTypes = { waitMs: optionTypes.amount, drain: optionTypes.signal } satisfies Types<WaitOptions>
const sendTypes = {
  signal: optionTypes.signal,
  metadata: optionTypes.object,
  deltas: optionTypes.flag,
  onNewInput: choiceOf('reject', 'deny'),
  turn: [isId, 'a text of 1 to 256 characters'],
  recordRequests: optionTypes.flag,
  ...waitTypes,
} satisfies Types<SendOptions>
const answerTypes = {
  answers: [isPlainObject, 'an object by approval id'],
  acceptMissing: [(value) => value === true || isStringList(value), 'true, or a list of names of guards'],
} satisfies Types<ResumeOptions>
const { signal, deltas, recordRequests } = sendTypes
const effects: OptionType = [
  (value) => typeof value === 'object' && value !== null && 'clock' in value,
  'the result of liveEffects()',
]

type Types<O> = { readonly [K in keyof Required<O>]: OptionType }

/** The options of each way to start or continue a run. */
const types = {
  run: {
    ...sendTypes,
    from: [(value) => typeof value === 'object' && value !== null, 'a finished run, a saved run, or a state'],
    effects,
    session: [(value) => typeof value === 'string', 'the id of a session'],
  } satisfies Types<RunOptions>,
  resume: { ...answerTypes, ...waitTypes, signal, deltas, effects, recordRequests },
  'session.send': sendTypes,
  'session.resume': { ...answerTypes, ...sendTypes },
  'session.stop': { by: optionTypes.any, reason: optionTypes.any, waitMs: waitTypes.waitMs },
} as const satisfies { readonly [where: string]: OptionTypes }

/** Throws for unknown options, and for values of the wrong kind. Whether a session or a state exists is checked later. */
export function checkRunOptions(where: keyof typeof types, options: unknown): void {
  checkOptions(where, options, types[where])
}

export function isId(value: unknown): boolean {
  return typeof value === 'string' && value !== '' && value.length <= 256 && value.isWellFormed()
}

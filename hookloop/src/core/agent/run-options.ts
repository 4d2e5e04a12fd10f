import { isId } from '../../values/is-id.ts'
import type { EffectsOptions } from '../effects/effects.ts'
import type { AgentState } from '../state/agent-state.ts'
import type { JsonObject } from '../../values/json.ts'
import type { SavedRun } from '../state/saved-run.ts'
import { checkOptions, invalidOption } from '../../values/check-options.ts'
import type { ResumeOptions } from '../loop/resume.ts'
import type { Run } from './run.ts'
import type { SendOptions, WaitOptions } from './session.ts'

/**
 * The options of one run.
 *
 * @interface
 */
export type RunOptions = {
  /** Facts for hooks, such as the user. The model does not see them. Default none. */
  readonly metadata?: JsonObject
  /** Cancels the run. Default none. */
  readonly signal?: AbortSignal
  /** A finished run, a saved run or a state, to continue the conversation from. Default none. */
  readonly from?: Run<unknown> | SavedRun | AgentState
  /**
   * Whether the model streams its answer, and its pieces are events. `true` in `run` with a session: they are logged, for
   * `watchSession`. Default: `true` for `stream`.
   */
  readonly deltas?: boolean
  /** The clock and the id of the run, from `liveEffects`. Default: the clock of the system. */
  readonly effects?: EffectsOptions
  /** The session to run in. It is stored in the agent's store, and the conversation continues from there. Default none. */
  readonly session?: string
  /**
   * If a run of the session waits for an answer or was interrupted: `reject` throws STATE_SUSPENDED; `block` blocks the open
   * questions, ends that run, and takes the input. The model receives both. Default `reject`.
   */
  readonly onNewInput?: 'reject' | 'block'
  /**
   * An id of the request, such as the id of an HTTP request or of a job. The same turn is the same run: if the session has it,
   * the run is resumed, or returned if it has ended or waits for an answer. It is part of the `input` event. The last 256 turns of a session are known.
   * Default none.
   */
  readonly turn?: string
} & WaitOptions

const waiting = ['waitMs', 'drain'] as const satisfies Names<WaitOptions>
const watching = ['signal', 'deltas'] as const
const send = [...watching, ...waiting, 'metadata', 'onNewInput', 'turn'] as const satisfies Names<SendOptions>
const answer = ['answers', 'acceptMissing'] as const satisfies Names<ResumeOptions>

type Names<O> = readonly (keyof O)[]

/** The options of each way to start or continue a run. */
const names = {
  run: [...send, 'from', 'effects', 'session'] satisfies Names<RunOptions>,
  resume: [...answer, ...waiting, ...watching, 'effects'],
  'session.send': send,
  'session.resume': [...answer, ...send],
  'session.stop': ['by', 'reason', 'waitMs'],
} as const

export function checkRunOptions(where: keyof typeof names, options: object): void {
  checkOptions(where, options, names[where])
  const { turn }: { readonly turn?: string } = options // often from a request
  if (turn !== undefined && !isId(turn))
    throw invalidOption(where, '"turn" must be a text of 1 to 256 characters', turn)
}

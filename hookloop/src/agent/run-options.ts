import type { EffectsFactory } from '../effects/effects.ts'
import type { AgentState } from '../state/agent-state.ts'
import type { JsonObject } from '../state/json.ts'
import type { SavedRun } from '../state/saved-run.ts'
import { checkArgument, checkOptions, optionNames } from '../state/check-options.ts'
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
   * `store.watch`. Default: `true` for `stream`.
   */
  readonly deltas?: boolean
  /** How effects are performed: live, recorded or replayed. Default live. */
  readonly effects?: EffectsFactory
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

const waitNames = optionNames<WaitOptions>({ waitMs: true, drain: true })
const sendNames = optionNames<SendOptions>({
  signal: true,
  metadata: true,
  deltas: true,
  onNewInput: true,
  turn: true,
  recordRequests: true,
  waitMs: true,
  drain: true,
})
const answerNames = optionNames<ResumeOptions>({ answers: true, acceptMissing: true, onChange: true })

/** The options of each way to start or continue a run. */
const names = {
  run: optionNames<RunOptions>({
    metadata: true,
    signal: true,
    from: true,
    deltas: true,
    effects: true,
    session: true,
    onNewInput: true,
    turn: true,
    recordRequests: true,
    waitMs: true,
    drain: true,
  }),
  resume: [...answerNames, ...waitNames, 'signal', 'deltas', 'effects', 'recordRequests'],
  'session.send': sendNames,
  'session.resume': [...answerNames, ...sendNames],
} as const satisfies { readonly [where: string]: readonly string[] }

/** Throws for unknown options, and for values of the wrong kind. Whether a session or a state exists is checked later. */
export function checkRunOptions(where: keyof typeof names, options: unknown): void {
  checkOptions(where, options, names[where])
  const given = options as Partial<RunOptions & ResumeOptions>
  const { metadata, effects, session, answers, turn, waitMs } = given
  for (const name of ['signal', 'drain'] as const)
    checkArgument(where, [name, given[name]], given[name] === undefined || isSignal(given[name]), 'an AbortSignal')
  for (const name of ['deltas', 'recordRequests'] as const)
    checkArgument(where, [name, given[name]], ['boolean', 'undefined'].includes(typeof given[name]), 'true or false')
  checkArgument(where, ['turn', turn], turn === undefined || isId(turn), 'a text of 1 to 256 characters')
  checkArgument(where, ['waitMs', waitMs], waitMs === undefined || isDuration(waitMs), 'a number of milliseconds')
  checkArgument(where, ['metadata', metadata], metadata === undefined || isPlainObject(metadata), 'an object')
  checkArgument(
    where,
    ['effects', effects],
    effects === undefined || typeof effects === 'function',
    'a factory such as liveEffects()',
  )
  checkArgument(
    where,
    ['session', session],
    session === undefined || typeof session === 'string',
    'the id of a session',
  )
  checkArgument(
    where,
    ['answers', answers],
    answers === undefined || isPlainObject(answers),
    'an object by approval id',
  )
}

/** When a run pauses after a step: when its reader has left, or when it is drained. */
export function pauseWhen({ shouldPause, drain }: WaitOptions & { readonly shouldPause?: ShouldPause }): ShouldPause {
  if (drain === undefined) return shouldPause
  return async (state) => drain.aborted || (await shouldPause?.(state)) === true
}

type ShouldPause = ((state: AgentState) => Promise<boolean>) | undefined

export function isId(value: unknown): boolean {
  return typeof value === 'string' && value !== '' && value.length <= 256 && value.isWellFormed()
}

function isDuration(value: unknown): boolean {
  return typeof value === 'number' && value >= 0
}

function isSignal(value: unknown): boolean {
  const { aborted, addEventListener } = Object(value) as {
    readonly aborted?: unknown
    readonly addEventListener?: unknown
  }
  return typeof aborted === 'boolean' && typeof addEventListener === 'function'
}

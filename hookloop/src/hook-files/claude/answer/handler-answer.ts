import type { Json, JsonObject } from '../../../values/json.ts'
import type { TokenUsage } from '../../../core/state/usage.ts'

export type Failure =
  | 'timedOut'
  | 'cancelled'
  | 'notStarted'
  | 'exited'
  | 'killed'
  | 'invalidOutput'
  | 'tooMuchOutput'
  | 'notAnswered'
  | 'changed'

/** What one handler answered, as far as it has an effect at its event. */
export type HandlerAnswer = {
  /** It blocks, in the way of its event. */
  readonly block?: { readonly reason: string }
  /** Of PreToolUse and PreModelSwitch. */
  readonly permission?: { readonly decision: 'allow' | 'deny' | 'ask' | 'defer'; readonly reason: string }
  /** Of PermissionRequest. */
  readonly request?:
    | { readonly behavior: 'allow'; readonly updatedInput?: JsonObject }
    | { readonly behavior: 'deny'; readonly message: string; readonly interrupt: boolean }
  /** `continue: false`, and why. */
  readonly stop?: { readonly reason: string }
  readonly updatedInput?: JsonObject
  readonly updatedOutput?: Json
  readonly context?: string
  readonly systemMessage?: string
  /** For the terminal, unchecked. */
  readonly terminalSequence?: string
  /** The other fields of `hookSpecificOutput` that have an effect. */
  readonly other?: JsonObject
  /** A problem that stops nothing, or a message for the user. */
  readonly problem?: string
  /** A likely mistake in a valid answer, for the user. */
  readonly hint?: string
  /** A failure, which blocks if the handler has `onFailure: "block"`. */
  readonly failed?: Failure
  /** A valid answer with an exit code other than 0 and 2. It blocks if the handler has `onFailure: "block"`. */
  readonly otherExitCode?: true
  readonly exitCode?: number
  readonly spent?: TokenUsage
}

/** How a handler failed, without anything that its command printed or its settings contain. */
export function howItFailed({ failed, exitCode }: HandlerAnswer): string {
  return failed === undefined || failed === 'exited' ? `exited with ${exitCode ?? 'an error'}` : failures[failed]
}

const failures: { readonly [failed in Exclude<Failure, 'exited'>]: string } = {
  timedOut: 'timed out',
  cancelled: 'was cancelled',
  notStarted: 'could not be started',
  killed: 'was killed',
  invalidOutput: 'gave an invalid answer',
  tooMuchOutput: 'printed too much',
  notAnswered: 'did not answer',
  changed: 'was not run, because its files have changed since they were trusted',
}

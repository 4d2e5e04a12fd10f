import type { Json, JsonObject } from '../../../state/json.ts'
import type { TokenUsage } from '../../../state/usage.ts'

/** How a handler failed: a machine's word beside the sentence in `problem`. */
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

/** What one handler said, as far as its event honours it. */
export type HandlerAnswer = {
  /** It blocks, in whatever way its event has of blocking. */
  readonly block?: { readonly reason: string; readonly by: 'exit' | 'json' }
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
  /** Of one that runs beside the agent: what the model should hear as soon as it can. */
  readonly wakes?: string
  /** For the terminal, as it was said: nobody has looked at it yet. */
  readonly terminalSequence?: string
  /** Everything else of `hookSpecificOutput` that is honoured, by its name. */
  readonly other?: JsonObject
  /** What went wrong without stopping anything, or what is for the user only. */
  readonly problem?: string
  /** How it failed, which counts as a block when the handler says `onFailure: "block"`. */
  readonly failed?: Failure
  /** It answered, and exited with neither 0 nor 2: nothing, unless the handler says `onFailure: "block"`. */
  readonly exitedOddly?: true
  /** Of a command. */
  readonly exitCode?: number
  /** Of an agent: what it has cost. */
  readonly spent?: TokenUsage
}

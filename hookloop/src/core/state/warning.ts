import type { ErrorCode } from '../../errors.ts'
import type { AgentPath } from './subagent.ts'

/** Every code of a warning and its meaning, in addition to the error codes of hooks that failed. */
export const warningCodes = {
  ACTION_WARNING:
    'A hook of a file, such as a Claude Code hook, failed or reported a problem, and nothing was blocked.',
  COMPACTION_FAILED: 'The conversation was to be summarized, and was not.',
  HOOK_WARNING: 'A hook reported a problem with `ctx.warn`, and nothing was blocked.',
  LEFT_OUT:
    'Hooks, skills or servers are left out: a file is not trusted or cannot be read, a server cannot be connected.',
  LIMIT_WAITED:
    'The run or a model call waited for a limit that processes share: see `runLimit`, `callLimit`, `rateLimit`.',
  MODEL_WARNING: 'The provider ignored a setting, or a reply was corrected.',
  TOOLS_MISSING: 'The definition of a subagent names tools that its parent does not have.',
  USAGE_ESTIMATED: 'The provider did not report token usage, or a call did not complete, so usage was estimated.',
  WARNINGS_OMITTED: 'There were more different warnings than are listed.',
} as const

/** A code of `warningCodes`, or the error code of a hook that failed. */
export type WarningCode = keyof typeof warningCodes | ErrorCode

/** Something that went wrong in a run, or that its result does not show. An entry of `run.warnings`. */
export type Warning = {
  readonly code: WarningCode
  readonly message: string
  /** The hook that failed or reported it. */
  readonly hook?: string
  readonly trigger?: string
  /** Where the hook is defined: file and line, or the file and its script. */
  readonly definedAt?: string
  /** The step in which it happened first, counted from 0. */
  readonly step: number
  /** How often it happened. */
  readonly count: number
  /** The path of the subagent in which it happened. */
  readonly path?: AgentPath
}

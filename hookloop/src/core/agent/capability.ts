import type { EntryWarning } from '../state/ledger.ts'
import type { Effects } from '../effects/effects.ts'
import type { RunLimit } from '../effects/run-time.ts'
import type { AgentState } from '../state/agent-state.ts'
import type { ModelSource } from '../state/inference.ts'
import type { Json } from '../../values/json.ts'
import type { Answer, Approval } from '../state/tool-call.ts'
import type { Hook } from '../hooks/hook.ts'
import type { OnUnknownOutcome, Tool } from './tool.ts'

/** How an approver is asked. Hooks decide that approval is needed; this defines how it is requested. */
export type ApprovalPolicy = {
  /** `block`: there is no approver. `suspend`: the run is suspended and can be resumed elsewhere. A function asks now. */
  readonly answer:
    | 'block'
    | 'suspend'
    | ((approval: Approval, signal: AbortSignal, asker: Asker) => AskedAnswer | Promise<AskedAnswer>)
  /** Whether calls of this tool need approval even if no guard asks. */
  readonly asksAbout: (toolName: string) => boolean
  readonly expiresInMs: number | undefined
  /** What happens to a call that a crash interrupted, unless its tool says so. */
  readonly onUnknownOutcome: OnUnknownOutcome
}

/** The agent that makes the call, and its state. Call ids come from models and are not unique across conversations. */
export type Asker = {
  readonly agentId: string
  readonly state: AgentState
  /** Adds warnings to the run. */
  readonly warn?: (warnings: readonly EntryWarning[]) => void
}

/** An answer, or `suspend` to leave the question open. */
export type AskedAnswer = Answer | 'suspend'

/** Amounts that a run and its subagents may spend in total. */
export type Budget = {
  readonly tokens?: number
  readonly costUsd?: number
  readonly toolCalls?: number
  /** Steps of the run itself. Subagents have steps of their own. */
  readonly steps?: number
  /** How long the run may work, and the guard that limits it. Running work is aborted then. */
  readonly time?: RunLimit
}

/** Returns a value of the same type, without secrets. */
export type Redact = (value: Json) => Json

/** A command that users type as `/name arguments`. A hook of the capability replaces it with a text. */
export type SlashCommand = {
  readonly name: string
  readonly description: string
  /** Where its text comes from. */
  readonly source: 'code' | 'user' | 'project'
}

/**
 * A named set of hooks and tools that belong together. Pass it to `createAgent({ use })` or `agent.with()`.
 *
 * @example
 * const quiet: Capability = { name: 'quiet', hooks: [guard('beforeToolUse', (ctx) => ctx.block('No tools.'))] }
 */
export type Capability = {
  /** A capability with the name of a default one, such as `guards`, replaces it. */
  readonly name: string
  readonly hooks?: readonly Hook[]
  readonly tools?: readonly Tool[]
  /** How an approver is asked. See `approval`. */
  readonly approval?: ApprovalPolicy
  /**
   * Removes secrets from user input and tool results. See `redactSecrets`. It gets each `progress` update alone: only the rules of
   * `redactSecrets` find a secret that is split over two.
   */
  readonly redact?: Redact
  /** Models that its hooks may call. They are checked when the agent is created. */
  readonly models?: readonly ModelSource[]
  /** Amounts that a run may spend, shared by concurrent subagents. */
  readonly budget?: Budget
  /** Whether a subagent with one of its tools gets all its transform hooks, not only those of that tool. */
  readonly inheritAllHooks?: boolean
  /**
   * Called before this process continues a run that another one has left, or that was suspended. If it throws, `resume`
   * rejects with its error and the run stays as it is. Not called for subagents, and not in a replay.
   */
  readonly beforeResume?: (state: AgentState, effects: Effects) => Promise<void>
  /** Commands such as `/name` that its hooks handle. */
  readonly slashCommands?: readonly SlashCommand[]
  /** Notes for `agent.describe()`. */
  readonly notes?: readonly string[]
  /** Problems found when it was created, such as hooks of a file that do not run. They are in `run.warnings` of each run. */
  readonly warnings?: readonly string[]
}

/**
 * What `createAgent({ use })` and `agent.with()` take. Lists are flattened and falsy values are ignored, so that
 * `[isProduction && audit, [a, b]]` works.
 */
export type Use = UsePart | readonly Use[] | false | null | undefined | 0 | ''

export type UsePart = Hook | Tool | Capability

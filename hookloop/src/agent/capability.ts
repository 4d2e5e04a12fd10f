import type { AgentState } from '../state/agent-state.ts'
import type { ModelSource } from '../state/inference.ts'
import type { Json } from '../state/json.ts'
import type { Answer, Approval } from '../state/tool-call.ts'
import type { Hook } from '../hooks/hook.ts'
import type { OnUnknownOutcome, Tool } from './tool.ts'

/**
 * How a person is reached. Like a model, a person is behind a port, not behind a hook: hooks decide that somebody must
 * be asked, this says how.
 */
export type ApprovalPolicy = {
  /** `deny`: nobody is there. `suspend`: the run waits and can be resumed elsewhere. A function asks right now. */
  readonly answer:
    | 'deny'
    | 'suspend'
    | ((approval: Approval, signal: AbortSignal, asker: Asker) => AskedAnswer | Promise<AskedAnswer>)
  /** Whether calls of this tool are asked about even if no guard asks. */
  readonly asksAbout: (toolName: string) => boolean
  readonly expiresInMs: number | undefined
  /** What comes of a call that a crash cut off, if its tool does not say. */
  readonly onUnknownOutcome: OnUnknownOutcome
}

/** Whose call it is, and where its run stands. The id of a call is a model's, and two conversations may have the same. */
export type Asker = { readonly agentId: string; readonly state: AgentState }

/** Whoever is asked may also leave the question open. */
export type AskedAnswer = Answer | 'suspend'

/** Amounts that a run and the subagents in it may spend together. */
export type Budget = { readonly tokens?: number; readonly costUsd?: number; readonly toolCalls?: number }

/** Gives back a value of the same kind, without what must not be seen. */
export type Redact = (value: Json) => Json

/** What a person may type as `/name arguments`: a hook of the capability puts a text in its place. */
export type SlashCommand = {
  readonly name: string
  readonly description: string
  /** Where its text is from. */
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
  /** Removes secrets from user input and tool results. See `redactSecrets`. */
  readonly redact?: Redact
  /** Models that its hooks may call. They are checked when the agent is created. */
  readonly models?: readonly ModelSource[]
  /** Amounts that a run may spend, shared by concurrent subagents. */
  readonly budget?: Budget
  /** Whether a subagent with one of its tools gets all its transform hooks, not only those of that tool. */
  readonly isWhole?: boolean
  /** Commands such as `/name` that its hooks handle. */
  readonly slashCommands?: readonly SlashCommand[]
  /** Notes for `agent.describe()`. */
  readonly notes?: readonly string[]
}

/** What `createAgent({ use })` and `agent.with()` take. */
export type Use = Hook | Tool | Capability

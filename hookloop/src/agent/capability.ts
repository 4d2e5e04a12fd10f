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

/** A part of an agent: hooks and tools that belong together, under a name. */
export type Capability = {
  readonly name: string
  readonly hooks?: readonly Hook[]
  readonly tools?: readonly Tool[]
  readonly approval?: ApprovalPolicy
  /** Takes out of what users say and what tools give back what must not get into a run. */
  readonly redact?: Redact
  /** Models that its hooks may ask for: that they can be made is checked when the agent is put together. */
  readonly models?: readonly ModelSource[]
  /** What a run may spend as far as it is concerned: subagents that work at the same time share it. */
  readonly budget?: Budget
  /** Whether all its hooks that change go along with its tools into a subagent, not only those bound to a tool. */
  readonly isWhole?: boolean
  /** What its hooks make of an input that is a command, for whoever lists them or judges before they do. */
  readonly slashCommands?: readonly SlashCommand[]
  /** What a reader of `agent.describe()` should know about it. */
  readonly notes?: readonly string[]
}

/** What an agent is made of, in order of registration. */
export type Use = Hook | Tool | Capability

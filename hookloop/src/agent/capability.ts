import type { ModelSource } from '../data/inference.ts'
import type { Answer, Approval } from '../data/tool-call.ts'
import type { Hook } from '../hooks/hook.ts'
import type { Tool } from './tool.ts'

/**
 * How a person is reached. Like a model, a person is behind a port, not behind a hook: hooks decide that somebody must
 * be asked, this says how.
 */
export type ApprovalPolicy = {
  /** `deny`: nobody is there. `suspend`: the run waits and can be resumed elsewhere. A function asks right now. */
  readonly answer:
    | 'deny'
    | 'suspend'
    | ((approval: Approval, signal: AbortSignal) => AskedAnswer | Promise<AskedAnswer>)
  /** Whether calls of this tool are asked about even if no guard asks. */
  readonly asksAbout: (toolName: string) => boolean
  readonly expiresInMs: number | undefined
}

/** Whoever is asked may also leave the question open. */
export type AskedAnswer = Answer | 'suspend'

/** Amounts that a run and the subagents in it may spend together. */
export type Budget = { readonly tokens?: number; readonly costUsd?: number; readonly toolCalls?: number }

/** A part of an agent: hooks and tools that belong together, under a name. */
export type Capability = {
  readonly name: string
  readonly hooks?: readonly Hook[]
  readonly tools?: readonly Tool[]
  readonly approval?: ApprovalPolicy
  /** Models that its hooks may ask for: that they can be made is checked when the agent is put together. */
  readonly models?: readonly ModelSource[]
  /** What a run may spend as far as it is concerned: subagents that work at the same time share it. */
  readonly budget?: Budget
  /** What a reader of `agent.describe()` should know about it. */
  readonly notes?: readonly string[]
}

/** What an agent is made of, in order of registration. */
export type Use = Hook | Tool | Capability

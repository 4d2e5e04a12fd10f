import type { Usage } from './usage.ts'

/** A subagent in a run, and the call of its parent that it works for. */
export type AgentPlace = {
  readonly agent: string
  /** The step and the id of the call in the parent. */
  readonly step: number
  readonly call: string
}

/** The path to a subagent, from the outermost agent. It is unique in a run. */
export type AgentPath = readonly AgentPlace[]

/** The usage of an ancestor when a subagent starts, including what is reserved for subagents that start with it. */
export type Above = { readonly usage: Usage; readonly workedMs: number }

/** A subagent that is about to end: its call, its status and its usage. */
export type Subagent = {
  readonly name: string
  readonly call: string
  readonly status: 'completed' | 'stopped' | 'failed' | 'cancelled'
  readonly spent: Usage
}

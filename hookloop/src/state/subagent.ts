import type { JsonObject } from './json.ts'
import type { Usage } from './usage.ts'

/** One step of the way to an agent inside a run: who it is, and for which call of its parent it works. */
export type AgentPlace = {
  readonly agent: string
  /** The step and the id of the call, as its parent counts and knows them. */
  readonly step: number
  readonly call: string
}

/** The way to an agent inside a run, from the outermost on. Together its calls are a key that no other agent has. */
export type AgentPath = readonly AgentPlace[]

/** What one ancestor of a subagent counts when the subagent begins, with what is set aside for others that begin with it. */
export type Above = { readonly usage: Usage; readonly workedMs: number }

/** A subagent that waits for a person, in the call of its parent. */
export type OpenChild = {
  readonly agent: string
  /** By ancestor, the outermost first. */
  readonly above: readonly Above[]
  /** The JSON of its state, which is suspended. */
  readonly state: JsonObject
}

/** A subagent that is about to end: who it is, for which call it works, how it ends, and all that it has spent. */
export type Subagent = {
  readonly name: string
  readonly call: string
  readonly status: 'completed' | 'stopped' | 'failed' | 'cancelled'
  readonly spent: Usage
}

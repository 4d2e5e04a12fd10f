import type { Mode } from '../hooks/base-context.ts'

/** What an agent consists of, as data: for people who want to know what will apply before they run it. */
export type AgentDescription = {
  readonly name: string
  readonly model: string
  /** Those that have a name; hooks and tools may also stand on their own. */
  readonly capabilities: readonly string[]
  readonly tools: readonly {
    readonly name: string
    readonly description: string
    readonly concurrent: boolean
    readonly asks: boolean
  }[]
  readonly hooks: readonly {
    readonly name: string
    readonly mode: Mode
    readonly triggers: readonly string[]
    readonly priority: number
    /** The tools its `tool` option selects; an empty list means that it can never fire. */
    readonly tools?: readonly string[]
    /** It decides nothing; what it would have decided is in the ledger. */
    readonly shadow?: true
  }[]
  readonly approval: 'block' | 'suspend' | 'ask'
  readonly notes: readonly string[]
}

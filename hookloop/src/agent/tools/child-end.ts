import type { ContinuationOutcome } from '../../state/continuation.ts'
import type { FinalStatus } from '../../state/execution.ts'
import type { ToolExecution } from '../../state/tool-call.ts'
import type { Usage } from '../../state/usage.ts'

/** What is recorded of a subagent that has ended. Hooks of the parent decide about it in the order of the calls. */
export type ChildEnd = {
  readonly kind: 'child'
  readonly n: number
  readonly agent: string
  readonly status: FinalStatus
  readonly outcome: ContinuationOutcome
  readonly message: string
  readonly usage: Usage
  readonly execution: ToolExecution
  /** Whether a tool call of it succeeded: that resets the count of continuations in a row. */
  readonly hasWorked?: true
  /** Work that may still be running. */
  readonly left?: readonly string[]
}

export function isChildEnd(value: unknown): value is ChildEnd {
  return (value as Partial<ChildEnd> | undefined)?.kind === 'child'
}

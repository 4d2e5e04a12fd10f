import type { ContinuationEvaluation } from '../../state/continuation.ts'
import type { RunTime } from '../../effects/run-time.ts'

/** The guard whose time limit a failed call has exceeded, if that is why it failed. */
export function limitedBy({ value }: { readonly value?: unknown }): string | undefined {
  const by = (value as { readonly limitedBy?: unknown } | null | undefined)?.limitedBy
  return typeof by === 'string' ? by : undefined
}

/** The vote that ends a run whose time is over. */
export function limitVote({ deadline, limit }: RunTime, now: number): ContinuationEvaluation {
  const { ms, by } = limit
  const value = { value: ms + Math.max(0, now - deadline), limit: ms }
  const message = `Time limit reached: ${value.value}/${ms} ms.`
  return Object.freeze({ decision: 'forbidContinuation', reason: 'timeLimit', message, source: by, value })
}

/** The message of a final record, with the work that may still be running. */
export function withLeft(left: readonly string[], message: string): string {
  return left.length === 0 ? message : `${message} Left behind: ${left.join(', ')}.`
}

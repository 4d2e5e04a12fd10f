import type { ContinuationEvaluation } from '../../state/continuation.ts'
import { stopText, type StopRequest } from '../../state/stop-request.ts'
import type { Above } from '../../state/subagent.ts'
import type { RunTime } from '../../effects/run-time.ts'
import type { Budget } from '../capability.ts'

/** The guard whose time limit a failed call has exceeded, if that is why it failed. */
export function limitedBy({ value }: { readonly value?: unknown }): string | undefined {
  const by = (value as { readonly limitedBy?: unknown } | null | undefined)?.limitedBy
  return typeof by === 'string' ? by : undefined
}

/** The limit that is reached first, and when: of a run that has started then, or of its ancestors. */
export function earliestLimit(
  budgets: readonly Budget[],
  start: number,
  ancestors: readonly Above[] | undefined,
): readonly [number, Budget['time']] {
  let [first, limit]: [number, Budget['time']] = [Infinity, undefined]
  for (let level = 0; level < budgets.length; level++) {
    const { time } = budgets[level]!
    if (time === undefined) continue
    const at = start + time.ms - (ancestors?.[level]?.workedMs ?? 0)
    if (at < first) [first, limit] = [at, time]
  }
  return [first, limit]
}

/** The vote that ends a run whose time is over. */
export function limitVote({ deadline, limit }: RunTime, now: number): ContinuationEvaluation {
  const { ms, by } = limit
  const value = { value: ms + Math.max(0, now - deadline), limit: ms }
  const message = `Time limit reached: ${value.value}/${ms} ms.`
  return Object.freeze({ decision: 'forbidContinuation', reason: 'timeLimit', message, source: by, value })
}

const cancelledVote: ContinuationEvaluation = Object.freeze({
  decision: 'forbidContinuation',
  reason: 'userRequested',
  message: 'The run was cancelled.',
  source: 'signal',
})

/** The vote that ends a cancelled run. With the request if it was stopped on one. */
export function cancelVote(request: StopRequest | undefined): ContinuationEvaluation {
  if (request === undefined) return cancelledVote
  return Object.freeze({ ...cancelledVote, message: stopText(request), source: 'stop', value: { ...request } })
}

/** The vote that ends a run whose session has new input. */
export const newInputVote: ContinuationEvaluation = Object.freeze({
  decision: 'forbidContinuation',
  reason: 'userRequested',
  message: 'The user sent a new message.',
  source: 'newInput',
})

/** The message of a final record, with the work that may still be running. */
export function withLeft(left: readonly string[], message: string): string {
  return left.length === 0 ? message : `${message} Left behind: ${left.join(', ')}.`
}

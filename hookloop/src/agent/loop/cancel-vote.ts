import type { ContinuationEvaluation } from '../../state/continuation.ts'
import { stopText, type StopRequest } from '../../state/stop-request.ts'

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

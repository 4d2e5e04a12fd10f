import type { Json } from './json.ts'

/** Why a run ended, most urgent first: of two votes to forbid, the more urgent reason is reported. */
export const stopReasons = [
  'errorForbade',
  'persistenceFailed',
  'stopRequested',
  'userRequested',
  'inputBlocked',
  'stepsLimit',
  'tokenLimit',
  'timeLimit',
  'costLimit',
  'toolCallLimit',
  'retryLimit',
  'continuationLimit',
  'finishReason',
  'completed',
] as const

/** Why a run ended. `stopReasons` has all of them, most urgent first. */
export type StopReason = (typeof stopReasons)[number]

export const continuationDecisions = [
  'forbidContinuation',
  'requestContinuation',
  'allowStop',
  'allowContinuation',
] as const

export type ContinuationDecision = (typeof continuationDecisions)[number]

/** One vote on whether a run continues: which hook cast it, why, and on what value. */
export type ContinuationEvaluation = {
  readonly decision: ContinuationDecision
  readonly reason: StopReason
  readonly message: string
  readonly source: string
  readonly value?: Json
}

/** The result of counting votes. */
export type ContinuationOutcome = {
  readonly shouldContinue: boolean
  readonly stopReason?: StopReason
  readonly resolvedBy?: string
  readonly evaluations: readonly ContinuationEvaluation[]
}

/** The result of no votes: the run continues. Most steps share this value. */
export const noVotes: ContinuationOutcome = Object.freeze({ shouldContinue: true, evaluations: Object.freeze([]) })

/**
 * Counts votes: forbid beats request beats allowStop beats allowContinuation. Among votes of the winning kind the most
 * urgent reason decides, then the order in which they were cast.
 */
export function countVotes(evaluations: readonly ContinuationEvaluation[]): ContinuationOutcome {
  if (evaluations.length === 0) return noVotes
  const winner = winnerOf(evaluations)!
  const stops = winner.decision === 'forbidContinuation' || winner.decision === 'allowStop'
  return Object.freeze({
    shouldContinue: !stops,
    ...(stops && { stopReason: winner.reason }),
    resolvedBy: winner.source,
    evaluations: Object.freeze(evaluations.slice()),
  })
}

/** The vote that decided an outcome. */
export function decidingVote({ evaluations }: ContinuationOutcome): ContinuationEvaluation | undefined {
  return winnerOf(evaluations)
}

export function isForbidden(outcome: ContinuationOutcome): boolean {
  return outcome.evaluations.some((vote) => vote.decision === 'forbidContinuation')
}

function winnerOf(evaluations: readonly ContinuationEvaluation[]): ContinuationEvaluation | undefined {
  return (
    mostUrgent(evaluations, 'forbidContinuation') ??
    evaluations.find((vote) => vote.decision === 'requestContinuation') ??
    mostUrgent(evaluations, 'allowStop') ??
    evaluations[0]
  )
}

function mostUrgent(
  evaluations: readonly ContinuationEvaluation[],
  decision: ContinuationDecision,
): ContinuationEvaluation | undefined {
  let best: ContinuationEvaluation | undefined
  for (const vote of evaluations) {
    if (vote.decision !== decision) continue
    if (best === undefined || stopReasons.indexOf(vote.reason) < stopReasons.indexOf(best.reason)) best = vote
  }
  return best
}

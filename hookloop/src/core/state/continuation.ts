import type { Json } from '../../values/json.ts'
import { clause } from '../../errors.ts'
import { shorten } from '../../values/text.ts'

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

/** How often hooks may request another step of a run, or of a subagent. */
export const MAX_CONTINUATIONS_IN_ROW = 8
export const MAX_CONTINUATIONS = 32

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
    ...(stops && { stopReason: openRequest(evaluations) === undefined ? winner.reason : 'stopRequested' }),
    resolvedBy: winner.source,
    evaluations: Object.freeze(evaluations.slice()),
  })
}

/**
 * A request for another step that a forced stop with the reason `completed` ignores. Such a run is not completed: a hook
 * that must approve the end, such as a critic, has not done so.
 */
function openRequest(evaluations: readonly ContinuationEvaluation[]): ContinuationEvaluation | undefined {
  const winner = winnerOf(evaluations)
  if (winner?.decision !== 'forbidContinuation' || winner.reason !== 'completed') return undefined
  return evaluations.find((vote) => vote.decision === 'requestContinuation')
}

const MAX_REQUEST_CHARS = 200

/** Why a run stopped. Of a forced stop it also says which hook had not approved the end. */
export function stopMessage({ evaluations }: ContinuationOutcome): string {
  const winner = winnerOf(evaluations)
  const request = openRequest(evaluations)
  if (winner === undefined || request === undefined) return winner?.message ?? ''
  const [reason] = request.message.trim().split(/\n\s*\n/) // what follows is for the model
  const wanted = shorten(clause(reason!.replaceAll(/\s+/g, ' ')), MAX_REQUEST_CHARS)
  return `${winner.message} ("${winner.source}" forced the stop; "${request.source}" had not approved it: ${wanted})`
}

/** The vote that decided an outcome. */
export function decidingVote({ evaluations }: ContinuationOutcome): ContinuationEvaluation | undefined {
  return winnerOf(evaluations)
}

export function isForbidden(outcome: ContinuationOutcome): boolean {
  return outcome.evaluations.some(isForbid)
}

/** Whether a vote forbids the run to continue. */
export function isForbid({ decision }: ContinuationEvaluation): boolean {
  return decision === 'forbidContinuation'
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

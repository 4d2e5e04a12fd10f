import { countVotes, isForbidden, type ContinuationOutcome } from '../../state/continuation.ts'
import { sameJson, toJson } from '../../state/json.ts'
import type { Ask } from '../../state/tool-call.ts'
import { isUsedDifferently } from './value-differences.ts'
import type { Judged, RecordedEvent } from './event-recorder.ts'

type Both = {
  readonly was: Judged
  readonly would: Judged
  readonly unanswered: readonly string[]
  /** What is asked if no hook decides. */
  readonly asks: readonly Ask[]
}

/**
 * Why a live run would continue differently from this event on, if it would. Different metadata, or the same decision by another
 * hook, is a difference but not a divergence.
 */
export function divergenceAt(event: RecordedEvent, both: Both): string | undefined {
  const { was, would, unanswered } = both
  const [asked] = unanswered
  if (asked !== undefined) return `the recording has no result of "${asked}"`
  if (event.trigger === 'beforeToolUse') return callDivergence(both) ?? votesDivergence(event, both)
  if (was.failure?.message !== would.failure?.message)
    return would.failure === undefined ? 'no hook would fail' : 'a hook would fail'
  return votesDivergence(event, both) ?? questionDivergence(event, both) ?? valueDivergence(event, both)
}

function questionDivergence(event: RecordedEvent, { was, would }: Both): string | undefined {
  const [before, after] = [questionOf(event, was), questionOf(event, would)]
  if (before === after) return undefined
  if (after === undefined) return 'no approver would be asked'
  return before === undefined ? 'an approver would be asked' : OTHER_QUESTION
}

const OTHER_QUESTION = 'the approver would be asked a different question'

/** What guards ask, if nothing more urgent was decided. */
function questionOf(event: RecordedEvent, judged: Judged): string | undefined {
  const { asks, blocked, failure } = judged
  if (asks.length === 0 || blocked !== undefined || failure !== undefined) return undefined
  return isForbidden(outcomeOf(event, judged)) ? undefined : asks.map(({ message }) => message).join('; ')
}

/** Where votes are counted. Elsewhere only a vote to forbid has an effect. */
const counted: ReadonlySet<string> = new Set(['beforeStep', 'afterStep', 'onStop'])

function votesDivergence(event: RecordedEvent, { was, would }: Both): string | undefined {
  const [before, after] = [outcomeOf(event, was), outcomeOf(event, would)]
  if (before.shouldContinue !== after.shouldContinue)
    return after.shouldContinue ? 'the run would continue' : 'the run would stop'
  if (before.stopReason !== after.stopReason) return 'the run would stop for a different reason'
  const isSame = sameJson(toJson(requestsOf(before)), toJson(requestsOf(after)))
  return before.shouldContinue && !isSame ? 'the model would receive a different message' : undefined
}

function outcomeOf({ trigger, start }: RecordedEvent, { votes }: Judged): ContinuationOutcome {
  const earlier = trigger === 'onStop' ? (start.facts['outcome'] as ContinuationOutcome).evaluations : []
  const counting = counted.has(trigger) ? votes : votes.filter((vote) => vote.decision === 'forbidContinuation')
  return countVotes([...earlier, ...counting])
}

function requestsOf({ evaluations }: ContinuationOutcome): readonly string[] {
  return evaluations.flatMap(({ decision, message }) => (decision === 'requestContinuation' ? [message] : []))
}

function valueDivergence(event: RecordedEvent, { was, would }: Both): string | undefined {
  const isDifferent = (name: string): boolean => isUsedDifferently(name, was, would)
  switch (event.trigger) {
    case 'onUserInput':
      if ((was.blocked === undefined) !== (would.blocked === undefined))
        return would.blocked === undefined ? 'the input would be accepted' : 'the input would be blocked'
      return was.blocked === undefined && isDifferent('input') ? 'a different input would be used' : undefined
    case 'beforeInference':
      return !isForbidden(countVotes(was.votes)) && isDifferent('request')
        ? 'the model would get a different request'
        : undefined
    case 'afterInference':
      return isDifferent('response') ? 'a different response would be used' : undefined
    case 'afterToolUse':
      return isDifferent('toolExecution') ? 'the model would get a different result' : undefined
    case 'onSubagentStop':
      return isDifferent('output') ? 'a different output would be used' : undefined
    case 'beforeCompaction':
    case 'afterCompaction':
      return isDifferent('messages') ? 'a different conversation would be used' : undefined
    case 'onError':
      return sameJson(toJson(was.recovery ?? null), toJson(would.recovery ?? null))
        ? undefined
        : 'the error would be handled differently'
    default:
      return undefined // hooks there can only change the state and the votes, which are compared elsewhere
  }
}

function callDivergence({ was, would, asks }: Both): string | undefined {
  const [before, after] = [fateOf(was, asks), fateOf(would, asks)]
  if (before.what !== after.what) return `the call ${after.what}`
  if (before.why !== after.why)
    return after.what === fates.asked ? OTHER_QUESTION : 'the model would receive a different reason'
  const isUsed = after.what === fates.runs || after.what === fates.asked
  return isUsed && isUsedDifferently('toolCall', was, would) ? 'the call would have different arguments' : undefined
}

const fates = {
  blocked: 'would be blocked',
  failed: 'would not run, because a hook would fail',
  unfit: 'would not fit the tool',
  stopped: 'would not run, because the run would stop',
  asked: 'would wait for approval',
  runs: 'would run',
} as const

type Fate = { readonly what: (typeof fates)[keyof typeof fates]; readonly why?: string }

/** What happens to a call, in the order in which it is decided. */
function fateOf({ blocked, failure, problem, votes, asks, allowed }: Judged, byDefault: readonly Ask[]): Fate {
  if (blocked !== undefined) return { what: fates.blocked, why: `${blocked.by}: ${blocked.message}` }
  if (failure !== undefined) return { what: fates.failed, why: failure.message }
  if (problem !== undefined) return { what: fates.unfit, why: problem }
  const stops = countVotes(votes.filter((vote) => vote.decision === 'forbidContinuation'))
  if (!stops.shouldContinue) return { what: fates.stopped, why: stops.stopReason ?? '' }
  const asked = asks.length > 0 || allowed !== undefined ? asks : byDefault
  if (asked.length > 0) return { what: fates.asked, why: asked.map((ask) => ask.message).join('; ') }
  return { what: fates.runs }
}

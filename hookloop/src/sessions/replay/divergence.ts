import { countVotes, isForbidden, type ContinuationOutcome } from '../../state/continuation.ts'
import { sameJson, toJson } from '../../state/json.ts'
import type { Ask } from '../../state/tool-call.ts'
import { isUsedOtherwise } from './value-differences.ts'
import type { Judged, RecordedEvent } from './watched-run.ts'

type Both = {
  readonly was: Judged
  readonly would: Judged
  readonly unanswered: readonly string[]
  /** What is asked unless a hook has an opinion. */
  readonly asks: readonly Ask[]
}

/**
 * Why a live run would take another way from this event on, if it would. What hooks put into metadata, and who said
 * something that others said as well, is a difference and no other way.
 */
export function divergenceAt(event: RecordedEvent, both: Both): string | undefined {
  const { was, would, unanswered } = both
  const [asked] = unanswered
  if (asked !== undefined) return `the record does not know what "${asked}" would find out`
  if (event.trigger === 'beforeToolUse') return callDivergence(both) ?? votesDivergence(event, both)
  if (was.failure?.message !== would.failure?.message)
    return would.failure === undefined ? 'no hook would fail' : 'a hook would fail'
  return votesDivergence(event, both) ?? valueDivergence(event, both)
}

/** Where votes are counted. Elsewhere only a forbid changes anything. */
const counted: ReadonlySet<string> = new Set(['beforeStep', 'afterStep', 'onStop'])

function votesDivergence(event: RecordedEvent, { was, would }: Both): string | undefined {
  const [before, after] = [outcomeOf(event, was), outcomeOf(event, would)]
  if (before.shouldContinue !== after.shouldContinue)
    return after.shouldContinue ? 'the run would go on' : 'the run would stop'
  if (before.stopReason !== after.stopReason) return 'the run would stop for another reason'
  const isSame = sameJson(toJson(requestsOf(before)), toJson(requestsOf(after)))
  return before.shouldContinue && !isSame ? 'the model would be told something else' : undefined
}

function outcomeOf({ trigger, start }: RecordedEvent, { votes }: Judged): ContinuationOutcome {
  const earlier = trigger === 'onStop' ? (start.facts['outcome'] as ContinuationOutcome).evaluations : []
  const weighty = counted.has(trigger) ? votes : votes.filter((vote) => vote.decision === 'forbidContinuation')
  return countVotes([...earlier, ...weighty])
}

function requestsOf({ evaluations }: ContinuationOutcome): readonly string[] {
  return evaluations.flatMap(({ decision, message }) => (decision === 'requestContinuation' ? [message] : []))
}

function valueDivergence(event: RecordedEvent, { was, would }: Both): string | undefined {
  const otherwise = (name: string): boolean => isUsedOtherwise(name, was, would)
  switch (event.trigger) {
    case 'onUserInput':
      if ((was.blocked === undefined) !== (would.blocked === undefined))
        return would.blocked === undefined ? 'the input would be taken' : 'the input would be refused'
      return was.blocked === undefined && otherwise('input') ? 'another input would be taken' : undefined
    case 'beforeInference':
      return !isForbidden(countVotes(was.votes)) && otherwise('request')
        ? 'the model would be asked something else'
        : undefined
    case 'afterInference':
      return otherwise('response') ? 'another answer would be used' : undefined
    case 'afterToolUse':
      return otherwise('toolExecution') ? 'the model would be given another result' : undefined
    case 'onSubagentStop':
      return otherwise('output') ? 'another output would be used' : undefined
    case 'beforeCompaction':
    case 'afterCompaction':
      return otherwise('messages') ? 'another conversation would be kept' : undefined
    case 'onError':
      return sameJson(toJson(was.recovery ?? null), toJson(would.recovery ?? null))
        ? undefined
        : 'the error would be dealt with otherwise'
    default:
      return undefined // what hooks may do there changes the state and the votes
  }
}

function callDivergence({ was, would, asks }: Both): string | undefined {
  const [before, after] = [fateOf(was, asks), fateOf(would, asks)]
  if (before.what !== after.what) return `the call ${after.what}`
  if (before.why !== after.why)
    return after.what === fates.asked
      ? 'a person would be asked something else'
      : 'the model would be told another reason'
  const isUsed = after.what === fates.runs || after.what === fates.asked
  return isUsed && isUsedOtherwise('toolCall', was, would) ? 'the call would have other arguments' : undefined
}

const fates = {
  blocked: 'would be blocked',
  failed: 'would not be run, because a hook would fail',
  unfit: 'would not fit the tool',
  stopped: 'would not be run, because the run would stop',
  asked: 'would wait for a person',
  runs: 'would be run',
} as const

type Fate = { readonly what: (typeof fates)[keyof typeof fates]; readonly why?: string }

/** What becomes of a call, in the order in which that is decided. */
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

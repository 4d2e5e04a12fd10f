import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  countVotes,
  decidingVote,
  isForbidden,
  stopReasons,
  type ContinuationDecision,
  type ContinuationEvaluation,
  type StopReason,
} from './continuation.ts'

const ranking: readonly ContinuationDecision[] = [
  'forbidContinuation',
  'requestContinuation',
  'allowStop',
  'allowContinuation',
]

// A reason is a reason to stop: only votes that may stop a run have one of their own.
const vote: fc.Arbitrary<ContinuationEvaluation> = fc
  .record({
    decision: fc.constantFrom(...ranking),
    reason: fc.constantFrom(...stopReasons),
    message: fc.string({ maxLength: 3 }),
    source: fc.constantFrom('a', 'b', 'c', 'd'),
  })
  .map((each) => (stops(each.decision) ? each : { ...each, reason: 'completed' as const }))
const votes = fc.array(vote, { minLength: 1, maxLength: 8 })

function stops(decision: ContinuationDecision): boolean {
  return decision === 'forbidContinuation' || decision === 'allowStop'
}

function strongest(cast: readonly ContinuationEvaluation[]): ContinuationDecision {
  return ranking.find((decision) => cast.some((each) => each.decision === decision))!
}

function of(decision: ContinuationDecision, reason: StopReason, source: string): ContinuationEvaluation {
  return { decision, reason, message: source, source }
}

test('forbid beats request beats allowStop beats allowContinuation', () => {
  fc.assert(
    fc.property(votes, (cast) => {
      const outcome = countVotes(cast)
      assert.equal(outcome.shouldContinue, !stops(strongest(cast)))
      assert.equal(decidingVote(outcome)?.decision, strongest(cast))
      assert.equal(isForbidden(outcome), strongest(cast) === 'forbidContinuation')
    }),
  )
})

test('of several votes that stop a run, the most urgent reason is reported', () => {
  fc.assert(
    fc.property(votes, (cast) => {
      const winning = cast.filter((each) => each.decision === strongest(cast))
      const urgent = stopReasons.find((reason) => winning.some((each) => each.reason === reason))
      assert.equal(countVotes(cast).stopReason, stops(strongest(cast)) ? urgent : undefined)
    }),
  )
})

test('of votes that are equally urgent, the one that was cast first decides', () => {
  fc.assert(
    fc.property(votes, (cast) => {
      const outcome = countVotes(cast)
      const kind = strongest(cast)
      const first = cast.find((each) => each.decision === kind && (!stops(kind) || each.reason === outcome.stopReason))!
      assert.equal(outcome.resolvedBy, first.source)
      assert.equal(decidingVote(outcome), first)
    }),
  )
})

test('the order of votes changes neither the decision nor its reason', () => {
  fc.assert(
    fc.property(
      votes.chain((cast) => fc.tuple(fc.constant(cast), fc.shuffledSubarray(cast, { minLength: cast.length }))),
      ([cast, shuffled]) => {
        const [a, b] = [countVotes(cast), countVotes(shuffled)]
        assert.equal(a.shouldContinue, b.shouldContinue)
        assert.equal(a.stopReason, b.stopReason)
      },
    ),
  )
})

test('a vote more can only make a forbid more urgent, never take it back', () => {
  fc.assert(
    fc.property(votes, vote, (cast, more) => {
      const before = countVotes([...cast, of('forbidContinuation', 'timeLimit', 'limit')])
      const after = countVotes([...before.evaluations, more])
      assert.equal(after.shouldContinue, false)
      assert.ok(stopReasons.indexOf(after.stopReason!) <= stopReasons.indexOf(before.stopReason!))
    }),
  )
})

test('counting is pure: the same votes give the same frozen outcome, with every vote in it', () => {
  fc.assert(
    fc.property(votes, (cast) => {
      const given = JSON.stringify(cast)
      const outcome = countVotes(cast)
      assert.deepEqual(countVotes(cast), outcome)
      assert.equal(JSON.stringify(cast), given)
      assert.deepEqual(outcome.evaluations, cast)
      assert.notEqual(outcome.evaluations, cast)
      assert.ok(Object.isFrozen(outcome) && Object.isFrozen(outcome.evaluations))
    }),
  )
})

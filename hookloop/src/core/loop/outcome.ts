import {
  countVotes,
  isForbidden,
  MAX_CONTINUATIONS,
  MAX_CONTINUATIONS_IN_ROW,
  type ContinuationEvaluation,
  type ContinuationOutcome,
} from '../state/continuation.ts'
import { textMessage } from '../state/message.ts'
import { isLeftByLimit } from '../effects/effects.ts'
import { passes } from '../effects/journal.ts'
import { toAgentError, type AgentError } from '../../errors.ts'
import type { RunContext } from '../context/run-context.ts'

const none: readonly never[] = Object.freeze([])

/** Requests for another step that has not been taken yet. */
function requestedBy({ execution }: RunContext): readonly ContinuationEvaluation[] {
  return execution.requested ?? none
}

export function setRequested(run: RunContext, votes: readonly ContinuationEvaluation[] = none): void {
  if (votes.length === 0 && requestedBy(run).length === 0) return
  const { requested: _before, ...rest } = run.execution
  run.execution = votes.length === 0 ? rest : { ...rest, requested: Object.freeze(votes) }
}

/** Counts the votes, after `earlier` ones. A step taken despite an `allowStop` is a continuation; these are limited. */
export function countStep(run: RunContext, earlier: readonly ContinuationEvaluation[] = none): ContinuationOutcome {
  const counted = run.count(earlier)
  // A step that was requested has not been taken yet: a forced stop does not complete the run.
  const untaken = requestedBy(run).filter((vote) => !counted.evaluations.includes(vote))
  const isOpen = untaken.length > 0 && isForbidden(counted)
  const all = isOpen ? countVotes([...counted.evaluations, ...untaken]) : counted
  const outcome = limitContinuations(run, all)
  if (outcome.shouldContinue) addContinuationMessages(run, outcome)
  return outcome
}

function limitContinuations(run: RunContext, outcome: ContinuationOutcome): ContinuationOutcome {
  if (!outcome.shouldContinue || !outcome.evaluations.some(isAllowStop)) return outcome
  const { inRow, total } = run.execution.continuations
  if (inRow < MAX_CONTINUATIONS_IN_ROW && total < MAX_CONTINUATIONS) {
    run.updateExecution({ continuations: Object.freeze({ inRow: inRow + 1, total: total + 1 }) })
    return outcome
  }
  const message = `"${outcome.resolvedBy}" requested another step after ${inRow} continuations in a row and ${total} in total.`
  const limit = { decision: 'forbidContinuation', reason: 'continuationLimit', source: 'hookloop', message } as const
  return countVotes([...outcome.evaluations, Object.freeze({ ...limit, value: { inRow, total } })])
}

function isAllowStop({ decision }: ContinuationEvaluation): boolean {
  return decision === 'allowStop'
}

function addContinuationMessages(run: RunContext, { evaluations }: ContinuationOutcome): void {
  if (evaluations.length === 0) return
  setRequested(
    run,
    evaluations.filter(({ decision }) => decision === 'requestContinuation'),
  )
  for (const { decision, message } of evaluations) {
    if (decision !== 'requestContinuation' || message === '') continue
    run.state = run.state.withMessage(textMessage('user', message))
  }
}

/** In a replay with other hooks, whether there is another step is a fact. */
export function asRecorded(run: RunContext, outcome: ContinuationOutcome): ContinuationOutcome {
  const { journal, scopeLog } = run.effects
  const continues = journal.tape?.continues(scopeLog)
  if (continues === undefined || continues === outcome.shouldContinue) return outcome
  run.noteOverridden('onStop', { by: outcome.resolvedBy ?? 'hookloop', decision: continues ? 'stop' : 'continue' })
  return { ...outcome, shouldContinue: continues }
}

/** How long a schema may take to parse an answer: as long as a guard. */
const READ_TIMEOUT_MS = 60_000

/** Reads the typed answer of a run that is about to end. A run without a valid answer has failed. */
export async function readOutput(run: RunContext, outcome: ContinuationOutcome): Promise<ContinuationOutcome> {
  run.output = undefined // a hook may have requested another step since
  if (!isAnswered(run, outcome)) return outcome
  let error: AgentError
  try {
    const key = run.effects.keyOf({ step: run.step, kind: 'timeout', trigger: 'onStop', n: 'output' })
    const limit = { ms: READ_TIMEOUT_MS, key }
    const read = await run.effects.withTimeout(run.parts.reader!(run.execution.steps.items), limit)
    if ('value' in read) {
      run.output = read
      return outcome
    }
    error = read.error
  } catch (thrown) {
    if (passes(thrown)) throw thrown
    if (isLeftByLimit(thrown)) run.noteStillRunning('schema of the output')
    error = toAgentError(thrown, 'OUTPUT_INVALID')
  }
  run.recordError(error, 'onStop')
  if (run.checkEnd() !== 'limit') {
    run.failure ??= error
    const { message } = error
    run.cast([Object.freeze({ decision: 'forbidContinuation', reason: 'errorForbade', message, source: 'output' })])
  }
  return countStep(run, outcome.evaluations)
}

/** Whether there is an answer to read, even one that was cut off by its length. */
function isAnswered({ state }: RunContext, { stopReason }: ContinuationOutcome): boolean {
  if (stopReason === 'completed' || stopReason === 'continuationLimit') return true
  return stopReason === 'finishReason' && ['length', 'stop'].includes(state.lastStep?.finishReason ?? '')
}

import { countVotes, type ContinuationOutcome } from '../../state/continuation.ts'
import { isLeftByLimit } from '../../effects/effects.ts'
import { passes } from '../../effects/journal.ts'
import { toAgentError, type AgentError } from '../../errors.ts'
import type { RunContext } from '../context/run-context.ts'

/** How long a schema may take to parse an answer: as long as a guard. */
const READ_TIMEOUT_MS = 60_000

/** Reads the typed answer of a run that is about to end. A run without a valid answer has failed. */
export async function readOutput(run: RunContext, outcome: ContinuationOutcome): Promise<ContinuationOutcome> {
  const { reader } = run.parts
  run.output = undefined // a hook may have requested another step since
  if (reader === undefined || !isAnswered(run, outcome)) return outcome
  let error: AgentError
  try {
    const key = run.effects.keyOf({ step: run.step, kind: 'timeout', trigger: 'onStop', n: 'output' })
    const limit = { ms: READ_TIMEOUT_MS, key: () => key }
    const read = await run.effects.withTimeout(reader(run.execution.steps), limit)
    if ('value' in read) {
      run.output = read
      return outcome
    }
    error = read.error
  } catch (thrown) {
    if (passes(thrown)) throw thrown
    if (isLeftByLimit(thrown)) run.leave('schema of the output')
    error = toAgentError(thrown, 'OUTPUT_INVALID')
  }
  run.recordError(error, 'onStop')
  if (run.ended === 'limit') return countVotes([...outcome.evaluations, ...run.count().evaluations])
  run.failure ??= error
  const { message } = error
  const vote = { decision: 'forbidContinuation', reason: 'errorForbade', message, source: 'output' } as const
  return countVotes([...outcome.evaluations, Object.freeze(vote)])
}

/** Whether there is an answer to read, even one that was cut off by its length. */
function isAnswered({ state }: RunContext, { stopReason }: ContinuationOutcome): boolean {
  if (stopReason === 'completed' || stopReason === 'continuationLimit') return true
  return stopReason === 'finishReason' && ['length', 'stop'].includes(state.lastStep?.finishReason ?? '')
}

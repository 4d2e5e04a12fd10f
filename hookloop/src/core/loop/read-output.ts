import type { ContinuationOutcome } from '../state/continuation.ts'
import { isLeftByLimit } from '../effects/effects.ts'
import { passes } from '../effects/journal.ts'
import { toAgentError, type AgentError } from '../../errors.ts'
import type { RunContext } from '../context/run-context.ts'

/** How long a schema may take to parse an answer: as long as a guard. */
const READ_TIMEOUT_MS = 60_000

/** Reads the typed answer of a run that is about to end. A vote fails a run without a valid answer. */
export async function readOutput(run: RunContext, outcome: ContinuationOutcome): Promise<void> {
  run.output = undefined // a hook may have requested another step since
  if (!isAnswered(run, outcome)) return
  let error: AgentError
  try {
    const key = run.effects.keyOf({ step: run.step, kind: 'timeout', trigger: 'onStop', n: 'output' })
    const limit = { ms: READ_TIMEOUT_MS, key }
    const read = await run.effects.withTimeout(run.parts.reader!(run.execution.steps.items), limit)
    if ('value' in read) {
      run.output = read
      return
    }
    error = read.error
  } catch (thrown) {
    if (passes(thrown)) throw thrown
    if (isLeftByLimit(thrown)) run.noteStillRunning('schema of the output')
    error = toAgentError(thrown, 'OUTPUT_INVALID')
  }
  run.recordError(error, 'onStop')
  if (run.checkEnd() === 'limit') return
  run.failure ??= error
  const { message } = error
  run.cast([Object.freeze({ decision: 'forbidContinuation', reason: 'errorForbade', message, source: 'output' })])
}

/** Whether there is an answer to read, even one that was cut off by its length. */
function isAnswered({ state }: RunContext, { stopReason }: ContinuationOutcome): boolean {
  if (stopReason === 'completed' || stopReason === 'continuationLimit') return true
  return stopReason === 'finishReason' && ['length', 'stop'].includes(state.lastStep?.finishReason ?? '')
}

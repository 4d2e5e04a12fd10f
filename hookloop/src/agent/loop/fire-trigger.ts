import type { ContinuationEvaluation } from '../../state/continuation.ts'
import type { ErrorRecord, Execution } from '../../state/execution.ts'
import type { AgentState } from '../../state/agent-state.ts'
import type { LedgerEntry } from '../../state/ledger.ts'
import { messageOf, toAgentError, type AgentError } from '../../errors.ts'
import type { HookHost } from '../../hooks/base-context.ts'
import { Invocation } from '../../hooks/invocation.ts'
import { HookFailure, isFatal, notStored, runTransforms } from '../../hooks/run-hooks.ts'
import type { Plan } from '../../hooks/stack.ts'
import type { HookTrigger } from '../../hooks/triggers.ts'
import type { AgentParts } from '../agent-parts.ts'

/** A hook that always says retry must not be able to hang a run. */
const MAX_RETRIES = 32

/** Where a failing hook leaves a value that must not be used: a call not run, an answer or a result withheld. */
export const givesUp: ReadonlySet<HookTrigger> = new Set([
  'beforeToolUse',
  'afterToolUse',
  'afterInference',
  'onSubagentStop',
])

/** How a cancel ends a run. */
export const cancelledVote: ContinuationEvaluation = Object.freeze({
  decision: 'forbidContinuation',
  reason: 'userRequested',
  message: 'The run was cancelled.',
  source: 'signal',
})

/** As much of a run as it takes to decide about an error. */
export interface Recovering extends HookHost {
  readonly parts: AgentParts
  readonly state: AgentState
  readonly execution: Execution
  updateExecution(change: Partial<Execution>): void
  remember(error: AgentError, during: HookTrigger): ErrorRecord
  conclude(firing: Invocation, plan: Plan): Invocation
  cast(votes: readonly ContinuationEvaluation[]): void
  stoppedBy(): ContinuationEvaluation | undefined
  fail(error: AgentError, during: HookTrigger): void
  noteLoop(trigger: HookTrigger, what: Partial<LedgerEntry>): void
}

/** Asks the `onError` hooks what to do. Without an answer the run fails. */
export async function recover(
  run: Recovering,
  error: AgentError,
  during: HookTrigger,
): Promise<'retry' | 'ignore' | 'end'> {
  if (isFatal(error)) {
    run.fail(error, during)
    return 'end'
  }
  const failures = run.execution.failures + 1
  run.updateExecution({ failures })
  const record = run.remember(error, during)
  const plan = run.parts.stack.plan('onError')
  const firing = new Invocation(run, plan, run.state, { error: record, during, consecutiveFailures: failures })
  try {
    await runTransforms(firing, plan.transforms)
  } catch (second) {
    // The first error is the one to tell, and an error hook that fails is not asked about its own failure.
    const why = second instanceof HookFailure ? second.error.message : messageOf(second)
    run.noteLoop('onError', { error: why, message: 'an onError hook failed, so the run does' })
    run.fail(error, during)
    return 'end'
  }
  run.conclude(firing, plan)
  if (firing.forbidden) return 'end'
  const { recovery } = firing
  if (recovery === undefined) {
    run.fail(error, during)
    return 'end'
  }
  if (recovery.decision === 'ignore') return 'ignore'
  if (failures > MAX_RETRIES) {
    const message = `${recovery.by} asked for another retry after ${MAX_RETRIES} in a row. The last error: ${error.message}`
    const value = { value: failures - 1, limit: MAX_RETRIES }
    run.cast([
      Object.freeze({ decision: 'forbidContinuation', reason: 'retryLimit', message, source: 'hookloop', value }),
    ])
    return 'end'
  }
  try {
    if (recovery.afterMs > 0) await run.effects.sleep(`${run.place}/${during}/backoff`, recovery.afterMs)
  } catch (thrown) {
    run.fail(toAgentError(thrown, 'HOOK_FAILED'), during)
  }
  return run.stoppedBy() === undefined ? 'retry' : 'end'
}

/** Why a run ends that ends with this error. */
export function reasonOf(error: AgentError): 'persistenceFailed' | 'errorForbade' {
  return notStored.has(error.code) ? 'persistenceFailed' : 'errorForbade'
}

import type { FinalRecord, FinalStatus } from '../../state/execution.ts'
import type { RunContext } from './run-context.ts'

/** How a run ends that ends for this reason. */
export function finalStatus(run: RunContext, reason: FinalRecord['reason']): FinalStatus {
  if (run.failure !== undefined) return 'failed'
  if (reason === 'userRequested' && run.cancelled) return 'cancelled'
  return reason === 'completed' ? 'completed' : 'stopped'
}

import type { FinalRecord, FinalStatus } from '../../state/execution.ts'
import type { LiveRun } from './run-context.ts'

/** How a run ends that ends for this reason. */
export function finalStatus(run: LiveRun, reason: FinalRecord['reason']): FinalStatus {
  if (run.failure !== undefined) return 'failed'
  if (reason === 'userRequested' && run.cancelled) return 'cancelled'
  return reason === 'completed' ? 'completed' : 'stopped'
}

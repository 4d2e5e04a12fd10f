import type { Cursor } from '../../state/execution.ts'
import { pendingIn } from '../../state/open-calls.ts'
import type { Approval } from '../../state/tool-call.ts'
import { noUsage } from '../../state/usage.ts'
import { isFatal } from '../../hooks/run-hooks.ts'
import type { RunContext } from './run-context.ts'

type Place = Cursor extends infer C ? (C extends Cursor ? Omit<C, 'waitingSince'> : never) : never

/**
 * Leaves the run where it stands, as a state that says how to go on. It is not over: no `onStop`, no final record.
 * Gives false when the run was cancelled meanwhile, and so goes on to its end.
 */
export async function pause(run: RunContext, place: Place): Promise<boolean> {
  const { votes } = run.execution
  const cursor = Object.freeze({ ...place, waitingSince: run.now }) as Cursor
  run.updateExecution({ status: 'suspended', usage: run.spent, cursor })
  if (run.open !== undefined) run.open.unbilled = noUsage
  const pending: readonly Approval[] = Object.freeze(pendingIn(run.execution))
  const fired = await run.fire('onPause', { pending })
  run.billOpen()
  if (fired?.failure !== undefined && !run.cancelled && !isFatal(fired.failure)) {
    // The hook's failure is told, but a run that waits for a person is not lost for it.
    run.failure = undefined
    run.updateExecution({ votes })
  }
  if (run.stoppedBy() === undefined) {
    if (run.shadows !== undefined) await run.shadows.settle()
    run.checkpoint('suspended')
    return true
  }
  const { cursor: _left, ...execution } = run.execution
  run.replaceExecution({ ...execution, status: 'running' })
  return false
}

import type { Cursor } from '../../state/execution.ts'
import { hashJson } from '../../state/json.ts'
import { pendingIn } from '../../state/open-calls.ts'
import type { Approval } from '../../state/tool-call.ts'
import { isFatal } from '../../hooks/run-hooks.ts'
import { fireTrigger } from './fire-trigger.ts'
import type { RunContext } from './run-context.ts'

type Place = Cursor extends infer C ? (C extends Cursor ? Omit<C, 'waitingSince' | 'hooks'> : never) : never

/**
 * Suspends the run, with a cursor in its state from which it can be resumed. It has not ended: no `onStop`, no final
 * record. Returns false when the run was cancelled or stopped meanwhile.
 */
export async function pause(run: RunContext, place: Place): Promise<boolean> {
  const { votes, hooks } = run.execution
  const waitingSince = Math.max(run.now, run.resumedAt) // after a crash, the replayed clock is behind
  const cursor = Object.freeze({ ...place, waitingSince, hooks: hashJson(hooks) }) as Cursor
  run.updateExecution({ status: 'suspended', usage: run.spent, cursor })
  run.open?.setBilled()
  const pending: readonly Approval[] = Object.freeze(pendingIn(run.execution))
  const fired = await fireTrigger(run, 'onPause', { pending })
  run.billOpen()
  if (fired?.failure !== undefined && run.ended === undefined && !isFatal(fired.failure)) {
    // The failure is recorded, but it must not end a run that waits for approval.
    run.failure = undefined
    run.updateExecution({ votes })
  }
  if (run.stoppedBy() === undefined) {
    if (run.shadows !== undefined) await run.background?.settleShadows()
    run.checkpoint('suspended')
    return true
  }
  const { cursor: _left, ...execution } = run.execution
  run.replaceExecution({ ...execution, status: 'running' })
  return false
}

import { applyChange, stateChange } from '../../state/state-diff.ts'
import { withholdResponse, type InferenceResponse } from '../../state/inference.ts'
import type { ToolExecution } from '../../state/tool-call.ts'
import { messageOf, toAgentError, type AgentError } from '../../errors.ts'
import { modelText } from '../../hooks/failure-text.ts'
import type { FactValues } from '../../hooks/base-context.ts'
import { Invocation } from '../../hooks/invocation.ts'
import { HookFailure, isFatal, runGuards, runObservers, runTransforms } from '../../hooks/run-hooks.ts'
import type { Plan } from '../../hooks/stack.ts'
import type { HookTrigger } from '../../hooks/triggers.ts'
import { withheldExecution } from '../tools/result.ts'
import type { Recovered, RunContext } from './run-context.ts'

/** A hook that always retries must not be able to keep a run going forever. */
const MAX_RETRIES = 32

/** Where a hook that fails leaves a value that must not be used: a call is not run, an answer or a result is withheld. */
export const withholdsOnFailure: ReadonlySet<HookTrigger> = new Set([
  'beforeToolUse',
  'afterToolUse',
  'afterInference',
  'onSubagentStop',
])

export type CallPlace = { readonly index: number; readonly toolName: string }

/**
 * Fires a trigger: transforms, guards, observers. The run adopts their state and votes. Returns at once when no hook is
 * asynchronous, and undefined when there are no hooks.
 */
export function fireTrigger(
  run: RunContext,
  trigger: HookTrigger,
  facts: FactValues = {},
  call?: CallPlace,
): Invocation | undefined | Promise<Invocation> {
  if (run.isAbandoned) return undefined
  const plan = run.parts.stack.plan(trigger, call?.toolName)
  if (plan.empty && !plan.shadowed && run.witness?.started === undefined) return undefined
  const invocation = new Invocation(run, plan, run.state, facts, call?.index)
  run.witness?.started?.(run, invocation, true)
  const changing = applyTransforms(run, invocation)
  return changing === undefined
    ? finishInvocation(run, invocation)
    : changing.then(() => finishInvocation(run, invocation))
}

/** An invocation in a run, before its first hook. `changes` is false when only guards are to run. */
export function startInvocation(
  run: RunContext,
  plan: Plan,
  facts: FactValues,
  { callIndex, changes = true }: { readonly callIndex?: number | undefined; readonly changes?: boolean } = {},
): Invocation {
  const invocation = new Invocation(run, plan, run.state, facts, callIndex)
  run.witness?.started?.(run, invocation, changes)
  return invocation
}

/** The first half of an invocation: the transforms. When one fails, `onError` decides. */
export function applyTransforms(run: RunContext, invocation: Invocation): void | Promise<void> {
  const changing = applyWithRecovery(run, invocation)
  const changed = run.witness?.changed
  if (changed === undefined) return changing
  return changing === undefined ? changed(invocation) : changing.then(() => changed(invocation))
}

function applyWithRecovery(run: RunContext, invocation: Invocation): void | Promise<void> {
  try {
    return runTransforms(invocation, invocation.plan.transforms)?.catch((thrown: unknown) =>
      recoverTransforms(run, invocation, thrown),
    )
  } catch (thrown) {
    return recoverTransforms(run, invocation, thrown)
  }
}

/** The same without `onError`, for triggers that fire before or beside an execution. */
export async function applyTransformsOrThrow(run: RunContext, invocation: Invocation): Promise<void> {
  try {
    await runTransforms(invocation, invocation.plan.transforms)
  } catch (thrown) {
    const failure = thrown instanceof HookFailure ? thrown.error : toAgentError(thrown, 'HOOK_FAILED')
    run.witness?.decided?.(run, invocation, failure)()
    throw thrown
  }
}

/** The second half: the guards, on the value as it will be used, and then the observers. */
export function finishInvocation(
  run: RunContext,
  invocation: Invocation,
  guards = invocation.plan.guards,
): Invocation | Promise<Invocation> {
  if (invocation.failure !== undefined || guards.length === 0) return conclude(run, invocation)
  try {
    return (
      runGuards(invocation, guards)?.then(
        () => conclude(run, invocation),
        (fatal: unknown) => concludeFailed(run, invocation, fatal),
      ) ?? conclude(run, invocation)
    )
  } catch (fatal) {
    return concludeFailed(run, invocation, fatal)
  }
}

/** Adopts the state and the votes of the hooks, and starts the observers. */
function conclude(run: RunContext, invocation: Invocation): Invocation {
  const adopted = run.witness?.decided?.(run, invocation)
  if (invocation.state !== run.state) run.adoptState(invocation.state)
  // Votes at onSubagentStop are about the subagent.
  if (invocation.votes.length > 0 && invocation.trigger !== 'onSubagentStop') run.cast(invocation.votes)
  const { observers } = invocation.plan
  if (observers.length > 0) {
    invocation.update(run.state, usedFacts(invocation))
    runObservers(invocation, observers)
  }
  adopted?.()
  return invocation
}

function concludeFailed(run: RunContext, invocation: Invocation, fatal: unknown): Invocation {
  failInvocation(run, invocation, fatal)
  return conclude(run, invocation)
}

function failInvocation(run: RunContext, invocation: Invocation, thrown: unknown): void {
  invocation.failure = toAgentError(thrown, 'HOOK_FAILED')
  run.fail(invocation.failure, invocation.trigger)
}

/** The facts as they will be used: observers do not see what was withheld. */
export function usedFacts({ facts, blocked, failure }: Pick<Invocation, 'facts' | 'blocked' | 'failure'>): FactValues {
  const by = blocked?.by ?? 'hookloop'
  const why = blocked?.message ?? (failure && modelText(failure))
  if (why === undefined) return facts
  const { toolExecution, response } = facts as { toolExecution?: ToolExecution; response?: InferenceResponse }
  return {
    ...facts,
    ...(toolExecution && { toolExecution: withheldExecution(toolExecution, by, why) }),
    ...(response && { response: withholdResponse(response, `[withheld by "${by}": ${why}]`) }),
  }
}

/**
 * Fires a trigger where errors have no consequences: a hook that throws is recorded in the ledger, and the others still
 * run. Guards fail closed as everywhere.
 */
export async function fireQuietly(run: RunContext, trigger: HookTrigger, facts: FactValues): Promise<Invocation> {
  const invocation = startInvocation(run, run.parts.stack.plan(trigger), facts)
  const { transforms } = invocation.plan
  if (run.isAbandoned) return invocation
  for (let from = 0; from <= transforms.length;) {
    try {
      await runTransforms(invocation, transforms, from)
      break
    } catch (thrown) {
      if (thrown instanceof HookFailure) {
        from = thrown.index + 1
        continue
      }
      if (run.execution.final === undefined) run.fail(toAgentError(thrown, 'HOOK_FAILED'), trigger)
      else run.noteLoop(trigger, { error: messageOf(thrown) })
      break
    }
  }
  return finishInvocation(run, invocation)
}

/** A transform failed: `onError` decides whether to repeat the trigger, to continue without the hook, or to end the run. */
async function recoverTransforms(run: RunContext, invocation: Invocation, first: unknown): Promise<void> {
  const { start, plan, trigger } = invocation
  for (let thrown = first; ;) {
    if (!(thrown instanceof HookFailure)) return failInvocation(run, invocation, thrown)
    const { error, index } = thrown
    if (run.ended !== undefined || (error.code === 'MODEL_FORBIDDEN' && run.forbidden !== undefined)) {
      invocation.failure = error // the hook was aborted because the run ends; there is nothing to recover
      return
    }
    const done = stateChange(start.state, invocation.state)
    const next = await recover(run, error, trigger)
    run.witness?.recovered?.(run, invocation, error, next)
    if (next === 'retry') invocation.restart(run.state, start.facts)
    else invocation.update(applyChange(run.state, done), invocation.facts)
    if (next === 'end' || (next === 'ignore' && withholdsOnFailure.has(trigger))) {
      invocation.failure = error
      return
    }
    try {
      return await runTransforms(invocation, plan.transforms, next === 'retry' ? 0 : index + 1)
    } catch (again) {
      thrown = again
    }
  }
}

/** Lets the `onError` hooks decide what to do about an error. Without a decision the run fails. */
export async function recover(run: RunContext, error: AgentError, during: HookTrigger): Promise<Recovered> {
  if (isFatal(error)) return failed(run, error, during)
  const failures = run.execution.failures + 1
  run.updateExecution({ failures })
  const facts = { error: run.recordError(error, during), during, consecutiveFailures: failures }
  const invocation = startInvocation(run, run.parts.stack.plan('onError'), facts)
  try {
    await runTransforms(invocation, invocation.plan.transforms)
  } catch (second) {
    // The run fails with the first error, and onError is not fired for an error of its own hooks.
    run.noteLoop('onError', { error: messageOf(second), message: 'an onError hook failed, so the run failed' })
    return failed(run, error, during)
  }
  conclude(run, invocation)
  if (invocation.forbidden !== undefined) return 'end'
  const { recovery } = invocation
  if (recovery === undefined) return failed(run, error, during)
  if (recovery.decision === 'ignore') return 'ignore'
  if (failures > MAX_RETRIES) {
    const message = `"${recovery.by}" requested another retry after ${MAX_RETRIES} in a row. The last error: ${error.message}`
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

function failed(run: RunContext, error: AgentError, during: HookTrigger): Recovered {
  run.fail(error, during)
  return 'end'
}

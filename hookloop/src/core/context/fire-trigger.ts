import { applyChange, stateChange } from '../state/state-diff.ts'
import { withholdResponse, type InferenceResponse } from '../state/inference.ts'
import { withheldExecution, type ToolExecution } from '../state/tool-call.ts'
import { passes } from '../effects/journal.ts'
import type { EffectKey } from '../effects/keys.ts'
import { messageOf, type AgentError } from '../../errors.ts'
import { modelText } from '../hooks/failure-text.ts'
import type { FactValues } from '../hooks/base-context.ts'
import { Invocation } from '../hooks/invocation.ts'
import { HookFailure, isFatal, runGuards, runObservers, runTransforms } from '../hooks/run-hooks.ts'
import type { HookTrigger } from '../hooks/triggers.ts'
import type { RunContext } from './run-context.ts'

/** A hook that always retries must not be able to keep a run going forever. */
const MAX_RETRIES = 32

/** Where a hook that fails leaves a value that must not be used: a call is not run, an answer or a result is withheld. */
const withholdsOnFailure: ReadonlySet<HookTrigger> = new Set([
  'beforeToolUse',
  'afterToolUse',
  'afterInference',
  'onSubagentStop',
])

/** The tool call that a trigger is about. */
export type CallPlace = { readonly id: string; readonly toolName: string }

export type Recovered = 'retry' | 'ignore' | 'end'

/**
 * Fires a trigger: transforms, guards, observers. The run adopts their state and votes. Undefined when there are no hooks.
 */
export async function fireTrigger(
  run: RunContext,
  trigger: HookTrigger,
  facts: FactValues = {},
  call?: CallPlace,
): Promise<Invocation | undefined> {
  const plan = run.parts.plans.of(trigger, call?.toolName)
  if (plan.empty && !plan.shadowed) return undefined
  const invocation = new Invocation(run, plan, run.state, facts, call?.id)
  await applyTransforms(run, invocation)
  return finishInvocation(run, invocation)
}

/** Whether guards ask, and nothing more urgent was decided. */
export function hasQuestion(invocation: Invocation | undefined): invocation is Invocation {
  if (invocation === undefined || invocation.asks.length === 0) return false
  return invocation.blocked === undefined && invocation.failure === undefined
}

/** The first half of an invocation: the transforms. When one fails, `onError` decides. */
export async function applyTransforms(run: RunContext, invocation: Invocation): Promise<void> {
  const { transforms } = invocation.plan
  if (transforms.length === 0) return
  try {
    await runTransforms(invocation, transforms)
  } catch (thrown) {
    await recoverTransforms(run, invocation, thrown)
  }
}

/** The second half: the guards, on the value as it will be used, and then the observers. */
export async function finishInvocation(
  run: RunContext,
  invocation: Invocation,
  guards = invocation.plan.guards,
): Promise<Invocation> {
  if (invocation.failure === undefined && guards.length > 0) {
    try {
      await runGuards(invocation, guards)
    } catch (fatal) {
      invocation.failure = run.failWith(fatal, invocation.trigger)
    }
  }
  conclude(run, invocation)
  return invocation
}

/** Adopts the state and the votes of the hooks, and starts the observers. */
function conclude(run: RunContext, invocation: Invocation): void {
  const { state } = invocation.draft
  if (state !== invocation.start.state) run.state = state
  // Votes at onSubagentStop are about the subagent.
  if (invocation.votes.length > 0 && invocation.trigger !== 'onSubagentStop') run.cast(invocation.votes)
  const { observers } = invocation.plan
  const { journal, isRepeated } = run.effects
  const isFirst = (journal.isLive && !isRepeated) || invocation.trigger === 'onResume'
  if (observers.length === 0 || !isFirst) return // what is repeated was observed before
  invocation.update(run.state, usedFacts(invocation))
  runObservers(invocation, observers)
}

/** The facts as they will be used: observers do not see what was withheld. */
function usedFacts({ facts, blocked, failure }: Pick<Invocation, 'facts' | 'blocked' | 'failure'>): FactValues {
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
  const invocation = new Invocation(run, run.parts.plans.of(trigger), run.state, facts)
  const { transforms } = invocation.plan
  for (let from = 0; from <= transforms.length;) {
    try {
      await runTransforms(invocation, transforms, from)
      break
    } catch (thrown) {
      if (thrown instanceof HookFailure) {
        from = thrown.index + 1
        continue
      }
      if (passes(thrown)) throw thrown
      if (run.execution.final === undefined) run.failWith(thrown, trigger)
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
    if (!(thrown instanceof HookFailure)) {
      invocation.failure = run.failWith(thrown, trigger)
      return
    }
    const { error, index } = thrown
    if (run.checkEnd() !== undefined || (error.code === 'MODEL_FORBIDDEN' && run.forbidden !== undefined)) {
      invocation.failure = error // the hook was aborted because the run ends; there is nothing to recover
      return
    }
    const done = stateChange(start.state, invocation.state)
    const next = await recover(run, error, trigger)
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

/**
 * Lets the `onError` hooks decide what to do about an error. Without a decision the run fails. `next` is the key of the next
 * attempt: if it has begun, it is used, whatever hooks decide now.
 */
export async function recover(
  run: RunContext,
  error: AgentError,
  during: HookTrigger,
  next?: EffectKey,
): Promise<Recovered> {
  if (isFatal(error)) return failed(run, error, during)
  const failures = run.countFailure()
  const facts = { error: run.recordError(error, during), during, consecutiveFailures: failures }
  const hasRetried = next !== undefined && run.effects.scopeLog.find(next) !== undefined
  const invocation = new Invocation(run, run.parts.plans.of('onError'), run.state, facts)
  try {
    await runTransforms(invocation, invocation.plan.transforms)
  } catch (second) {
    if (passes(second)) throw second
    // The run fails with the first error, and onError is not fired for an error of its own hooks.
    run.noteLoop('onError', { error: messageOf(second), message: 'an onError hook failed, so the run failed' })
    if (!hasRetried) return failed(run, error, during)
  }
  conclude(run, invocation)
  const { recovery } = invocation
  if (hasRetried) {
    const backoff = backoffKey(run, during, failures)
    if (run.effects.scopeLog.find(backoff) !== undefined) await run.effects.sleep(backoff, recovery?.afterMs ?? 0)
    void run.stoppedBy()
    if (recovery?.decision !== 'retry')
      run.noteOverridden('onError', { by: recovery?.by ?? 'hookloop', decision: 'end' })
    return 'retry'
  }
  if (invocation.forbidden !== undefined) return 'end'
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
    if (recovery.afterMs > 0) await run.effects.sleep(backoffKey(run, during, failures), recovery.afterMs)
  } catch (thrown) {
    run.failWith(thrown, during)
  }
  return run.stoppedBy() === undefined ? 'retry' : 'end'
}

function backoffKey(run: RunContext, trigger: HookTrigger, failures: number): EffectKey {
  return run.effects.keyOf({ step: run.step, kind: 'sleep', trigger, n: failures })
}

function failed(run: RunContext, error: AgentError, during: HookTrigger): Recovered {
  run.fail(error, during)
  return 'end'
}

/** Fires a trigger whose failures `onError` does not decide about. Throws them. */
export async function fireOrThrow(
  run: RunContext,
  trigger: HookTrigger,
  facts: FactValues,
  state = run.state,
): Promise<Invocation> {
  const invocation = new Invocation(run, run.parts.plans.of(trigger), state, facts)
  try {
    await runTransforms(invocation, invocation.plan.transforms)
  } catch (thrown) {
    throw thrown instanceof HookFailure ? thrown.error : thrown
  }
  await finishInvocation(run, invocation)
  if (invocation.failure !== undefined) throw invocation.failure
  return invocation
}

import type { AgentState } from '../state/agent-state.ts'
import { applyChange, stateChange } from '../state/state-diff.ts'
import { withholdResponse, type InferenceResponse } from '../state/inference.ts'
import { withheldExecution, type ToolExecution } from '../state/tool-call.ts'
import { passes } from '../effects/journal.ts'
import type { EffectKey } from '../effects/keys.ts'
import { messageOf, toAgentError, type AgentError } from '../../errors.ts'
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

export type Recovered = 'retry' | 'ignore' | 'end'

/** What a hook that fails means: `onError` decides, the caller gets the error, or the others run without it. */
type FailurePolicy = 'recover' | 'throw' | 'skip'

const failurePolicies: { readonly [T in HookTrigger]?: FailurePolicy } = {
  onSessionStart: 'throw',
  onUserInput: 'throw',
  onStop: 'skip',
  beforeCompaction: 'throw',
  afterCompaction: 'throw',
  afterExecution: 'skip',
  onSessionEnd: 'throw',
}

type Firing = {
  /** The tool call that the trigger is about. */
  readonly call?: { readonly id: string; readonly toolName: string }
  /** The state that hooks get. Default: that of the run. */
  readonly state?: AgentState
}

/** Fires a trigger: transforms, guards, observers. The run adopts their state and votes. Undefined when there are no hooks. */
export async function fireTrigger(
  run: RunContext,
  trigger: HookTrigger,
  facts: FactValues = {},
  { call, state }: Firing = {},
): Promise<Invocation | undefined> {
  const plan = run.parts.plans.of(trigger, call?.toolName)
  if (plan.empty && !plan.shadowed) return undefined
  const invocation = new Invocation(run, plan, state ?? run.state, facts, call?.id)
  if (plan.transforms.length > 0) await applyTransforms(run, invocation)
  if (plan.guards.length > 0) await applyGuards(run, invocation)
  else conclude(run, invocation)
  return invocation
}

/** Whether guards ask, and nothing more urgent was decided. */
export function hasQuestion(invocation: Invocation | undefined): invocation is Invocation {
  if (invocation === undefined || invocation.asks.length === 0) return false
  return invocation.blocked === undefined && invocation.failure === undefined
}

/** The first half of an invocation: the transforms. */
export async function applyTransforms(run: RunContext, invocation: Invocation): Promise<void> {
  const { transforms } = invocation.plan
  for (let from: number | undefined = 0; from !== undefined && from < transforms.length;) {
    try {
      return await runTransforms(invocation, transforms, from)
    } catch (thrown) {
      from = await afterFailure(run, invocation, thrown)
    }
  }
}

/** The second half: the guards, on the value as it will be used, and then the observers. */
export async function applyGuards(
  run: RunContext,
  invocation: Invocation,
  guards = invocation.plan.guards,
): Promise<void> {
  if (invocation.failure === undefined && guards.length > 0) {
    try {
      await runGuards(invocation, guards)
    } catch (fatal) {
      invocation.failure = failWith(run, fatal, invocation.trigger)
    }
  }
  conclude(run, invocation)
  if (invocation.failure !== undefined && failurePolicies[invocation.trigger] === 'throw') throw invocation.failure
}

/** Ends the run as failed. What ends the work of this process, and not the run, is thrown again. */
function failWith(run: RunContext, thrown: unknown, during: HookTrigger): AgentError {
  if (passes(thrown)) throw thrown
  const error = toAgentError(thrown, 'HOOK_FAILED')
  run.fail(error, during)
  return error
}

/** A transform has failed. Returns the one to continue with; undefined if the trigger has ended. */
async function afterFailure(run: RunContext, invocation: Invocation, thrown: unknown): Promise<number | undefined> {
  const { start, trigger } = invocation
  const policy = failurePolicies[trigger] ?? 'recover'
  if (!(thrown instanceof HookFailure)) {
    if (policy === 'throw') throw thrown
    invocation.failure = failWith(run, thrown, trigger)
    return undefined
  }
  const { error, index } = thrown
  if (policy === 'throw') throw error
  if (policy === 'skip') return index + 1
  if (run.checkEnd() !== undefined || (error.code === 'MODEL_FORBIDDEN' && run.forbidden !== undefined)) {
    invocation.failure = error // the hook was aborted because the run ends; there is nothing to recover
    return undefined
  }
  const done = stateChange(start.state, invocation.state)
  const next = await recover(run, error, trigger)
  if (next === 'retry') {
    invocation.restart(run.state, start.facts)
    return 0
  }
  invocation.update(applyChange(run.state, done), invocation.facts)
  if (next === 'ignore' && !withholdsOnFailure.has(trigger)) return index + 1
  invocation.failure = error
  return undefined
}

/** Adopts the state and the votes of the hooks, and starts the observers. */
function conclude(run: RunContext, invocation: Invocation): void {
  const { state } = invocation.draft
  if (state !== invocation.start.state) run.state = state
  // Votes at onSubagentStop are about the subagent.
  if (invocation.votes.length > 0 && invocation.trigger !== 'onSubagentStop') run.cast(invocation.votes)
  const { observers } = invocation.plan
  if (observers.length === 0) return
  const { journal, isRepeated } = run.effects
  const isFirst = (journal.isLive && !isRepeated) || invocation.trigger === 'onResume'
  if (!isFirst) return // what is repeated was observed before
  invocation.update(run.state, usedFacts(invocation))
  runObservers(invocation, observers)
}

/** Who withholds the value of a trigger, and why: a guard has blocked it, or a hook has failed. */
export function withheldBy({ blocked, failure }: Invocation): Invocation['blocked'] {
  return blocked ?? (failure && { by: 'hookloop', message: modelText(failure) })
}

/** The facts as they will be used: neither the model nor observers see what was withheld. */
export function usedFacts(invocation: Invocation): FactValues {
  const { facts } = invocation
  const withheld = withheldBy(invocation)
  if (withheld === undefined) return facts
  const { by, message } = withheld
  const { toolExecution, response } = facts as { toolExecution?: ToolExecution; response?: InferenceResponse }
  return {
    ...facts,
    ...(toolExecution && { toolExecution: withheldExecution(toolExecution, by, message) }),
    ...(response && { response: withholdResponse(response, `[withheld by "${by}": ${message}]`) }),
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
    run.stoppedBy()
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
    failWith(run, thrown, during)
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

import { noTokens } from '../../state/usage.ts'
import type { Effect } from '../../effects/effects.ts'
import { askModel } from './ask-model.ts'
import { WrappedCall } from './attempts.ts'
import { fingerprintRequest } from './fingerprint-request.ts'
import type { RunContext } from '../loop/run-context.ts'
import {
  billed,
  failedRecord,
  none,
  unansweredRecord,
  type ModelCallPlan,
  type ModelCallRecord,
} from './model-call-record.ts'

/** The model inside its around hooks, as one recorded effect. How it failed is part of what is recorded. */
export function performModelCall(run: RunContext, call: ModelCallPlan, attempt: number): Promise<ModelCallRecord> {
  const key = attempt === 1 ? `${run.place}/inference` : `${run.place}/inference.${attempt}`
  const effect: Effect = { key, kind: 'inference', input: () => fingerprintRequest(call.request) }
  const { arounds } = run.parts.stack.plan('aroundInference')
  if (call.stream !== undefined) call.stream.spent = noTokens // the call before was billed for it
  try {
    const asking = run.effects.perform(effect, (signal) =>
      arounds.length === 0 ? callBare(run, call, signal) : new WrappedCall(run, call, { key, signal }).run(arounds),
    )
    return asking instanceof Promise ? asking : Promise.resolve(asking)
  } catch (thrown) {
    return Promise.resolve(unansweredRecord(thrown))
  }
}

function callBare(run: RunContext, call: ModelCallPlan, signal: AbortSignal): Promise<ModelCallRecord> {
  return askModel(run, call, { request: call.request, signal, number: ++run.open!.attempts }).then(
    (response) => ({ response, error: null, usage: billed(call, response.usage), trail: none, votes: none }),
    (thrown: unknown) => failedRecord(thrown, { usage: billed(call, noTokens), trail: none, votes: none }),
  )
}

import { AgentState } from '../data/agent-state.ts'
import { withholdResponse, type InferenceRequest, type InferenceResponse } from '../data/inference.ts'
import { toAgentError } from '../errors.ts'
import { Firing } from '../hooks/firing.ts'
import { AnswerStream } from './answer-stream.ts'
import type { LiveRun } from './live-run.ts'
import { durationsOf, failureOf, performModelCall, type ModelCallPlan, type ModelCallRecord } from './model-call.ts'
import type { OpenedStep } from './opened-step.ts'

/** beforeInference, the model inside its around hooks, afterInference. Leaves the response in the open step. */
export async function infer(run: LiveRun, step: OpenedStep): Promise<void> {
  const fired = run.fire('beforeInference', { request: requestOf(run) })
  const before = fired instanceof Promise ? await fired : fired
  if (run.over !== undefined || before?.failure !== undefined) return
  const request = before === undefined ? requestOf(run) : (before.facts['request'] as InferenceRequest)
  const stream = run.streams ? new AnswerStream(run, step.index) : undefined
  const call: ModelCallPlan = { request, stream }
  let response: InferenceResponse | null = null
  for (let attempt = 1; response === null; attempt++) {
    let record: ModelCallRecord
    if (attempt > 1 && !(await mayCallAgain(run, request))) return
    try {
      record = await performModelCall(run, call, attempt)
    } catch (thrown) {
      // The model cannot make it reject, only the port can: the run must not go on.
      return run.fail(toAgentError(thrown, 'MODEL_FAILED'), 'aroundInference')
    }
    takeRecord(run, step, record)
    response = record.response
    if (response === null && (await giveUp(run, call, record))) return
  }
  const judged = run.fire('afterInference', { request, response })
  const after = judged instanceof Promise ? await judged : judged
  const passed = after === undefined ? response : passedResponse(after, response)
  stream?.finish(response, passed)
  const message = step.respond(passed, run.state.messages.length)
  run.state = AgentState.patch(run.state, { messages: run.state.messages.append(message) })
  run.effects.emit?.({ type: 'responded', step: step.index, text: passed.text, usage: step.usage })
}

/** A further attempt is a call like the first: limits and policies are asked again. */
async function mayCallAgain(run: LiveRun, request: InferenceRequest): Promise<boolean> {
  const plan = run.parts.stack.plan('beforeInference')
  await run.judge(new Firing(run, plan, run.state, { request }), plan)
  return run.over === undefined
}

/** What the call cost, and what hooks around it did and voted. */
function takeRecord(run: LiveRun, step: OpenedStep, record: ModelCallRecord): void {
  if (record.trail.length > 0) run.noteTrail(record.trail, durationsOf(record))
  if (record.votes.length > 0) run.cast(record.votes)
  step.spend(record.usage)
}

/** A failed call: `onError` decides whether it is tried again. */
async function giveUp(run: LiveRun, { stream }: ModelCallPlan, record: ModelCallRecord): Promise<boolean> {
  stream?.retract('the model call failed')
  return run.over !== undefined || (await run.recover(failureOf(record), 'aroundInference')) !== 'retry'
}

function requestOf({ parts, state }: LiveRun): InferenceRequest {
  return Object.freeze({
    model: parts.model,
    system: state.systemPrompt,
    messages: state.messages,
    tools: parts.toolNames,
    ...(state.responseFormat !== undefined && { responseFormat: state.responseFormat }),
    ...(parts.settings !== undefined && { settings: parts.settings }),
  })
}

function passedResponse(after: Firing, response: InferenceResponse): InferenceResponse {
  if (after.blocked !== undefined) {
    return withholdResponse(response, `[withheld by "${after.blocked.by}": ${after.blocked.message}]`)
  }
  if (after.failure !== undefined) return withholdResponse(response, `[withheld: ${after.failure.message}]`)
  return after.facts['response'] as InferenceResponse
}

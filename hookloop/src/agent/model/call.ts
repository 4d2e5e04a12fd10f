import { AgentState } from '../../state/agent-state.ts'
import { withholdResponse, type InferenceRequest, type InferenceResponse } from '../../state/inference.ts'
import { Invocation } from '../../hooks/invocation.ts'
import { AnswerStream } from './stream.ts'
import { modelFor } from './hook-infer.ts'
import type { RunContext } from '../loop/run-context.ts'
import { performModelCall } from './model-call.ts'
import {
  durationsOf,
  failureOf,
  unansweredRecord,
  type ModelCallPlan,
  type ModelCallRecord,
} from './model-call-record.ts'
import type { OpenStep } from '../loop/open-step.ts'
import { limitedBy, limitFromNow } from '../loop/run-lifetime.ts'
import { noteTrail } from '../loop/note-trail.ts'

// Written as continuations and not as one async function: this is waited for in every step of every run, and a frame
// that is kept for each of a thousand runs at once costs more than all the work in it.

/** beforeInference, the model inside its around hooks, afterInference. Leaves the response in the open step. */
export function infer(run: RunContext, step: OpenStep): void | Promise<void> {
  const fired = run.fire('beforeInference', { request: requestOf(run) })
  if (fired instanceof Promise) return fired.then((before) => callModel(run, step, before))
  return callModel(run, step, fired)
}

function callModel(run: RunContext, step: OpenStep, before: Invocation | undefined): void | Promise<void> {
  if (run.stoppedBy() !== undefined || before?.failure !== undefined) return
  const call = planCall(run, step, before)
  step.offered = call.request.tools
  const asking = performModelCall(run, call, 1)
  return asking.then(
    (record) => takeAnswer(run, step, { call, record }),
    (thrown: unknown) => takeAnswer(run, step, { call, record: unansweredRecord(thrown) }), // the port itself failed
  )
}

type Asked = { readonly call: ModelCallPlan; readonly record: ModelCallRecord }

function takeAnswer(run: RunContext, step: OpenStep, { call, record }: Asked): void | Promise<void> {
  takeRecord(run, step, record)
  if (record.response !== null) return judgeResponse(run, step, { call, response: record.response })
  return tryAgain(run, step, { call, record }).then((response) =>
    response === null ? undefined : judgeResponse(run, step, { call, response }),
  )
}

type Answered = { readonly call: ModelCallPlan; readonly response: InferenceResponse }

function judgeResponse(run: RunContext, step: OpenStep, { call, response }: Answered): void | Promise<void> {
  if (response.warnings !== undefined) for (const message of response.warnings) warn(run, message)
  const judged = run.fire('afterInference', { request: call.request, response })
  if (judged instanceof Promise) return judged.then((after) => takeJudged(run, step, { call, response, after }))
  takeJudged(run, step, { call, response, after: judged })
}

function takeJudged(
  run: RunContext,
  step: OpenStep,
  { call, response, after }: Answered & { readonly after: Invocation | undefined },
): void {
  const passed = after === undefined ? response : passedResponse(after, response)
  call.stream?.finish(response, passed)
  takeResponse(run, step, passed)
}

/** What the provider had to say is for people, and changes nothing. */
function warn(run: RunContext, message: string): void {
  run.noteLoop('aroundInference', { decision: 'warning', message })
  run.effects.emit?.({ type: 'warning', step: run.step, message })
}

function planCall(run: RunContext, step: OpenStep, before: Invocation | undefined): ModelCallPlan {
  const request = before === undefined ? requestOf(run) : (before.facts['request'] as InferenceRequest)
  const stream = run.streams ? new AnswerStream(run, step.index, request) : undefined
  return { request, stream, limit: before?.within && limitFromNow(before.within) }
}

/** A call failed. As long as `onError` says so, and guards let it, it is made again. */
async function tryAgain(run: RunContext, step: OpenStep, { call, record }: Asked): Promise<InferenceResponse | null> {
  let last = record
  for (let attempt = 2; last.response === null; attempt++) {
    if (run.stoppedBy() !== undefined) return null // what was seen of it stays as it is: nothing will take its place
    call.stream?.retract('the model call failed')
    if ((await run.recover(failureOf(last), 'aroundInference')) !== 'retry') return null
    if (!(await mayCallAgain(run, call.request))) return null
    try {
      last = await performModelCall(run, call, attempt)
    } catch (thrown) {
      last = unansweredRecord(thrown)
    }
    takeRecord(run, step, last)
  }
  return last.response
}

/** A further attempt is a call like the first: limits and policies are asked again. */
async function mayCallAgain(run: RunContext, request: InferenceRequest): Promise<boolean> {
  const plan = run.parts.stack.plan('beforeInference')
  await run.judge(new Invocation(run, plan, run.state, { request }), plan)
  return run.stoppedBy() === undefined
}

/** What the call cost, and what hooks around it did and voted. */
function takeRecord(run: RunContext, step: OpenStep, record: ModelCallRecord): void {
  if (record.trail.length > 0) noteTrail(run, record.trail, durationsOf(record))
  if (record.votes.length > 0) run.cast(record.votes)
  const by = record.error === null ? undefined : limitedBy(record.error)
  if (by !== undefined) {
    const { message } = record.error!
    run.cast([Object.freeze({ decision: 'forbidContinuation', reason: 'timeLimit', message, source: by })])
  }
  step.spend(record.usage)
}

function takeResponse(run: RunContext, step: OpenStep, response: InferenceResponse): void {
  const { messages } = run.state
  const message = step.respond(response, messages.length)
  run.state = AgentState.patch(run.state, { messages: messages.append(message) })
  run.effects.emit?.({ type: 'responded', step: step.index, text: response.text, usage: step.usage })
}

/** What the model is asked, before hooks have their say. */
export function requestOf({ parts, state }: Pick<RunContext, 'parts' | 'state'>): InferenceRequest {
  return Object.freeze({
    model: modelFor(parts, state),
    system: state.systemPrompt,
    messages: state.messages,
    tools: parts.toolNames,
    ...(state.responseFormat !== undefined && { responseFormat: state.responseFormat }),
    ...(parts.settings !== undefined && { settings: parts.settings }),
  })
}

function passedResponse(after: Invocation, response: InferenceResponse): InferenceResponse {
  if (after.blocked !== undefined) {
    return withholdResponse(response, `[withheld by "${after.blocked.by}": ${after.blocked.message}]`)
  }
  if (after.failure !== undefined) return withholdResponse(response, `[withheld: ${after.failure.message}]`)
  return after.facts['response'] as InferenceResponse
}

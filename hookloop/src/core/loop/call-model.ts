import { AgentState } from '../state/agent-state.ts'
import {
  messagesOf,
  withMessages,
  type InferenceRequest,
  type InferenceResponse,
  type ModelRequest,
  type ToolDescription,
} from '../state/inference.ts'
import { AgentError, toAgentError } from '../../errors.ts'
import type { AgentParts } from '../agent/agent-parts.ts'
import { textOf, type ToolCallPart } from '../state/message.ts'
import { addTokens, noTokens } from '../state/usage.ts'
import { incompleteCall, toWarning } from '../model/estimate-usage.ts'
import { Invocation } from '../hooks/invocation.ts'
import { applyGuards, fireTrigger, hasQuestion, recover, usedFacts } from '../context/fire-trigger.ts'
import { askAt, deniedVote } from '../context/ask.ts'
import type { OpenStep } from '../context/open-step.ts'
import type { RunContext } from '../context/run-context.ts'
import { errorOf, passes } from '../effects/journal.ts'
import { attemptKey, type EffectKey } from '../effects/keys.ts'
import { limitedBy, untilEnd } from '../effects/run-time.ts'
import { AroundInference, usageOfFailed, type Attempt, type ModelCall } from './attempts.ts'
import { fingerprintRequest } from '../model/fingerprint-request.ts'
import {
  answeredRecord,
  failedRecord,
  limitFromNow,
  modelFor,
  nameOf,
  responseOf,
  sendRequest,
  type ModelCallRecord,
  type SentRequest,
} from '../model/send-request.ts'
import { AnswerStream } from './answer-stream.ts'

const none: readonly never[] = Object.freeze([])

/**
 * beforeInference, the model inside its around hooks, afterInference. Stores the response in the open step. A failed call is made
 * again as long as `onError` retries and the guards permit it.
 */
export async function callModel(run: RunContext, step: OpenStep): Promise<void> {
  const { forbidden } = run
  const asked = requestOf(run)
  const before = await fireTrigger(run, 'beforeInference', { request: asked })
  const hasBegun = run.effects.scopeLog.find(modelKey(step.index, 1)) !== undefined
  const stopped = run.stoppedBy()
  if (!hasBegun && (before?.failure !== undefined || stopped !== undefined)) return
  if (hasQuestion(before) && run.forbidden === undefined) {
    const request = before.facts['request'] as InferenceRequest
    const messages = messagesOf(request).length
    const subject = { model: nameOf(request.model), step: step.index + 1, messages }
    const blocked = await askAt(run, before, { at: 'beforeInference', subject, hasBegun })
    if (run.stoppedBy() !== undefined && !hasBegun) return // also if it was cancelled while the approver was asked
    if (blocked !== undefined) run.cast([deniedVote('forbidContinuation', blocked)])
    if (blocked !== undefined && !hasBegun) return
  }
  if (hasBegun && (before?.failure !== undefined || run.forbidden !== forbidden))
    run.noteOverridden('beforeInference', { by: run.forbidden?.source ?? 'hookloop', decision: 'stop' })
  const request = before === undefined ? asked : (before.facts['request'] as InferenceRequest)
  const stream = run.streams ? new AnswerStream(run, step.index, request) : undefined
  const call: ModelCall = { request, stream, limit: before?.within && limitFromNow(before.within) }
  step.offered = request.tools
  for (let n = 1; ; n++) {
    const record = await performCall(run, call, n)
    applyRecord(run, step, { call, record })
    const response = responseOf(record)
    if (response !== undefined) return passResponse(run, step, { call, response })
    if (!(await mayCallAgain(run, call, { failed: record, next: modelKey(step.index, n + 1) }))) return
  }
}

async function passResponse(
  run: RunContext,
  step: OpenStep,
  { call, response }: { readonly call: ModelCall; readonly response: InferenceResponse },
): Promise<void> {
  for (const message of response.warnings ?? []) run.noteLoop('aroundInference', { warnings: [toWarning(message)] })
  const after = await fireTrigger(run, 'afterInference', { request: call.request, response, durationMs: call.ranMs })
  const used = after === undefined ? response : (usedFacts(after)['response'] as InferenceResponse)
  const passed = withBegunCalls(run, response, used)
  call.stream?.finish(response, passed)
  addResponse(run, step, passed)
}

/** Hooks cannot remove a call that has begun: its result belongs to it. */
function withBegunCalls(run: RunContext, recorded: InferenceResponse, passed: InferenceResponse): InferenceResponse {
  if (passed === recorded) return passed
  const kept = new Set(callsIn(passed).map(({ toolCallId }) => toolCallId))
  const lost = callsIn(recorded).filter(
    ({ toolCallId: id }) => !kept.has(id) && run.effects.scopeLog.begun(id) !== undefined,
  )
  if (lost.length === 0) return passed
  for (const { toolCallId: call } of lost)
    run.noteOverridden('afterInference', { by: 'hookloop', decision: 'call removed', call })
  return Object.freeze({ ...passed, content: Object.freeze([...passed.content, ...lost]) })
}

function callsIn({ content }: InferenceResponse): readonly ToolCallPart[] {
  return content.filter((part) => part.type === 'tool-call')
}

/** The request before hooks change it. */
export function requestOf({ parts, state }: Pick<RunContext, 'parts' | 'state'>): InferenceRequest {
  const request = {
    model: modelFor(parts, state),
    system: state.systemPrompt,
    tools: parts.toolNames,
    ...(state.responseFormat !== undefined && { responseFormat: state.responseFormat }),
    ...(parts.settings !== undefined && { settings: parts.settings }),
  }
  return withMessages(request, AgentState.fieldsOf(state).messages)
}

async function mayCallAgain(
  run: RunContext,
  call: ModelCall,
  { failed, next }: { readonly failed: ModelCallRecord; readonly next: EffectKey },
): Promise<boolean> {
  const hasBegun = run.effects.scopeLog.find(next) !== undefined
  if (run.stoppedBy() !== undefined && !hasBegun) return false // streamed text is not retracted: nothing will replace it
  call.stream?.retract('the model call failed')
  if ((await recover(run, call.thrown ?? errorOf(failed.error!), 'aroundInference', next)) !== 'retry') return false
  // Another attempt is a call like the first: guards decide on it again.
  const { request } = call
  const plan = run.parts.plans.of('beforeInference')
  await applyGuards(run, new Invocation(run, plan, run.state, { request }))
  return run.stoppedBy() === undefined || hasBegun
}

function modelKey(step: number, n: number): EffectKey {
  return { step, kind: 'model', n }
}

/** The n-th model call of the step inside its around hooks, as one recorded effect. A failure is part of the record. */
async function performCall(run: RunContext, call: ModelCall, n: number): Promise<ModelCallRecord> {
  const { effects, step, parts } = run
  const { request, stream } = call
  if (stream !== undefined) stream.spent = noTokens // billed with the attempt before
  call.thrown = undefined
  call.ranMs = undefined
  const effect = { key: modelKey(step, n), input: () => fingerprintRequest(request) }
  return effects.perform<ModelCallRecord>(effect, async (signal) => {
    const started = performance.now()
    // An attempt that is recorded has begun: it is not made again, also if the hooks around it are gone.
    const hasAttempt = effects.scopeLog.find(attemptKey(step, `${n}.1`)) !== undefined
    const isPlain = parts.plans.of('aroundInference').arounds.length === 0 && !hasAttempt
    const send = (attempt: Attempt): Promise<InferenceResponse> => sendAttempt(run, call, attempt)
    const work = isPlain ? callOnce(run, call, signal) : new AroundInference(run, call, { n, signal, send }).run()
    const record = await work
    call.ranMs = performance.now() - started
    return record
  })
}

async function callOnce(run: RunContext, call: ModelCall, signal: AbortSignal): Promise<ModelCallRecord> {
  const attempt: Attempt = { request: call.request, signal, number: ++run.open!.attempts, isSent: false, streamed: 0 }
  const { stream } = call
  try {
    const response = await sendAttempt(run, call, attempt)
    return answeredRecord(response, stream?.withSpent(response.usage) ?? response.usage)
  } catch (thrown) {
    if (passes(thrown)) throw thrown
    call.thrown = toAgentError(thrown, 'MODEL_FAILED')
    const estimate = usageOfFailed(attempt, thrown)
    const usage = stream?.withSpent(estimate ?? noTokens) ?? estimate ?? noTokens
    return failedRecord(thrown, usage, { isEstimated: estimate !== undefined })
  }
}

/** Sends one attempt to the model, and streams its answer if the run does. Rejects if a hook has offered an unknown tool. */
async function sendAttempt(
  run: RunContext,
  { limit, stream }: ModelCall,
  attempt: Attempt,
): Promise<InferenceResponse> {
  const { request, signal, number } = attempt
  attempt.isSent = !signal.aborted
  const sent: SentRequest = { model: request.model, request: toModelRequest(run.parts, request), signal, limit, number }
  if (stream === undefined) return sendRequest(run, sent)
  const answer = stream.open()
  try {
    return await sendRequest(run, {
      ...sent,
      onDelta: (delta) => {
        attempt.streamed += delta.delta.length
        answer.write(delta)
      },
    })
  } finally {
    const checking = signal.aborted ? undefined : answer.settled()
    if (checking !== undefined) await run.effects.time.wait(checking, untilEnd).catch(() => undefined)
  }
}

function toModelRequest(parts: AgentParts, request: InferenceRequest): ModelRequest {
  const { system, tools, toolChoice, responseFormat, settings } = request
  const sent = {
    system,
    tools: tools === parts.toolNames ? parts.descriptionList : tools.map((name) => describeTool(parts, name)),
    ...(toolChoice !== undefined && { toolChoice }),
    ...(responseFormat !== undefined && { responseFormat }),
    ...(settings !== undefined && { settings }),
  }
  return withMessages(sent, messagesOf(request))
}

function describeTool({ descriptions }: AgentParts, name: string): ToolDescription {
  const found = descriptions.get(name)
  if (found !== undefined) return found
  throw new AgentError('HOOK_FAILED', `A hook offered the model a tool "${name}" that the agent does not have.`, {
    value: name,
  })
}

/** Bills the call, and applies what hooks around it did and voted. */
function applyRecord(
  run: RunContext,
  step: OpenStep,
  { call, record }: { readonly call: ModelCall; readonly record: ModelCallRecord },
): void {
  const { trail, votes, error } = record
  if (trail !== undefined) run.noteTrail(trail, call.durations ?? none)
  if (votes !== undefined) run.cast(votes)
  if (record.isEstimated === true) run.noteLoop('aroundInference', { warnings: [incompleteCall] })
  const by = error && limitedBy(error)
  if (by !== undefined) {
    const { message } = error!
    run.cast([Object.freeze({ decision: 'forbidContinuation', reason: 'timeLimit', message, source: by })])
  }
  // The recorded object itself, so that the step refers to it.
  step.usage = step.usage === noTokens ? record.usage : addTokens(step.usage, record.usage)
  step.inFlight = noTokens
  run.spend(record.usage)
}

function addResponse(run: RunContext, step: OpenStep, response: InferenceResponse): void {
  const { messages } = AgentState.fieldsOf(run.state)
  const message = step.respond(response)
  run.state = AgentState.patch(run.state, { messages: messages.append(message) })
  if (run.effects.emit === undefined) return
  const reasoning = textOf(response.content, 'reasoning')
  const { text } = response
  const said = reasoning === '' ? { text } : { text, reasoning }
  run.effects.emit({ type: 'responded', step: step.index, at: run.now, ...said, usage: step.usage })
}

import { AgentState } from '../../state/agent-state.ts'
import {
  withholdResponse,
  type InferenceDelta,
  type InferenceRequest,
  type InferenceResponse,
  type ModelReply,
  type ModelRequest,
  type ToolDescription,
} from '../../state/inference.ts'
import type { Json, JsonObject } from '../../state/json.ts'
import { textOf } from '../../state/message.ts'
import { addTokens, noTokens, type TokenUsage } from '../../state/usage.ts'
import { AgentError } from '../../errors.ts'
import { incompleteCall, toWarning } from './estimate-usage.ts'
import type { Invocation } from '../../hooks/invocation.ts'
import { andThen, type MaybePromise } from '../../state/thenable.ts'
import type { AgentParts } from '../agent-parts.ts'
import { finishInvocation, fireTrigger, recover, startInvocation } from '../loop/fire-trigger.ts'
import { askAt, deniedVote, hasQuestion } from '../loop/ask-at-trigger.ts'
import type { OpenStep } from '../loop/open-step.ts'
import type { RunContext } from '../loop/run-context.ts'
import { limitedBy } from '../loop/time-limit.ts'
import type { Effect } from '../../effects/effects.ts'
import { untilEnd, type Settle } from '../../effects/run-time.ts'
import { AroundInference, usageOfFailed, type Attempt } from './attempts.ts'
import { failedRecord, failureOf, type ModelCall, type ModelCallRecord } from './call-record.ts'
import { describeRequest, fingerprintRequest } from './fingerprint-request.ts'
import { limitFromNow, modelFor, sendAndSettle, sendRequest, toCheckedReply, type SentRequest } from './send-request.ts'
import { AnswerStream } from './stream.ts'

const none: readonly never[] = Object.freeze([])

/** beforeInference, the model inside its around hooks, afterInference. Stores the response in the open step. */
export function callModel(run: RunContext, step: OpenStep): MaybePromise<void> {
  const { state, approved } = run
  run.approved = undefined
  const fired = fireTrigger(run, 'beforeInference', { request: requestOf(run) })
  return andThen(fired, sendUnlessStopped, run, step, { state, isApproved: approved === 'beforeInference' })
}

function sendUnlessStopped(
  before: Invocation | undefined,
  run: RunContext,
  step: OpenStep,
  { state, isApproved }: { readonly state: AgentState; readonly isApproved: boolean },
): MaybePromise<void> {
  if (run.stoppedBy() !== undefined || before?.failure !== undefined) return undefined
  if (!isApproved && hasQuestion(run, before)) return askFirst(run, step, { before: before!, state })
  const call = planCall(run, step, before)
  step.offered = call.request.tools
  return getResponse(run, step, call)
}

async function askFirst(
  run: RunContext,
  step: OpenStep,
  { before, state }: { readonly before: Invocation; readonly state: AgentState },
): Promise<void> {
  const { model, messages } = before.facts['request'] as InferenceRequest
  const subject = { model: `${model.provider}/${model.modelId}`, step: step.index + 1, messages: messages.length }
  const asked = await askAt(run, before, 'beforeInference', subject)
  if ('open' in asked) {
    step.question = { open: asked.open, state }
    return
  }
  if (run.stoppedBy() !== undefined) return // also if it was cancelled while the approver was asked
  if (asked.answer !== 'allow') return run.cast([deniedVote('forbidContinuation', asked.answer)])
  const call = planCall(run, step, before)
  step.offered = call.request.tools
  await getResponse(run, step, call)
}

/** The same with an answer that an earlier process has recorded. `change` is applied to it after the hooks. */
export async function useRecordedResponse(
  run: RunContext,
  step: OpenStep,
  recorded: {
    readonly response: InferenceResponse
    readonly usage: TokenUsage
    readonly change: (passed: InferenceResponse) => InferenceResponse
  },
): Promise<void> {
  const { response, usage, change } = recorded
  const before = await fireTrigger(run, 'beforeInference', { request: requestOf(run) })
  const { request } = planCall(run, step, before)
  step.spend(usage)
  const after = await fireTrigger(run, 'afterInference', { request, response })
  addResponse(run, step, change(after === undefined ? response : passedResponse(after, response)))
}

function passResponse(
  run: RunContext,
  step: OpenStep,
  { call, response }: { readonly call: ModelCall; readonly response: InferenceResponse },
): MaybePromise<void> {
  if (response.warnings !== undefined) for (const message of response.warnings) warn(run, message)
  const fired = fireTrigger(run, 'afterInference', { request: call.request, response })
  return andThen(fired, usePassed, run, step, { call, response })
}

function usePassed(
  after: Invocation | undefined,
  run: RunContext,
  step: OpenStep,
  { call, response }: { readonly call: ModelCall; readonly response: InferenceResponse },
): void {
  const passed = after === undefined ? response : passedResponse(after, response)
  call.stream?.finish(response, passed)
  addResponse(run, step, passed)
}

/** The request before hooks change it. */
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

function planCall(run: RunContext, step: OpenStep, before: Invocation | undefined): ModelCall {
  const request = before === undefined ? requestOf(run) : (before.facts['request'] as InferenceRequest)
  const stream = run.streams ? new AnswerStream(run, step.index, request) : undefined
  const limit = before?.within && limitFromNow(before.within)
  return { request, stream, limit, thrown: undefined, durations: none }
}

// The functions that wait for the model are not async: a run spends most of its time there, and each frame that is kept
// for each of a thousand runs costs more than the work in it.

/**
 * Calls the model, and again after a failure as long as `onError` retries and the guards permit it. A response passes
 * afterInference.
 */
function getResponse(run: RunContext, step: OpenStep, call: ModelCall, attempt = 1): Promise<void> {
  const apply = (record: ModelCallRecord): MaybePromise<void> => {
    applyRecord(run, step, { call, record })
    const { response } = record
    if (response !== null) return passResponse(run, step, { call, response })
    return mayCallAgain(run, call, record).then((may) => (may ? getResponse(run, step, call, attempt + 1) : undefined))
  }
  return performCall(run, call, attempt).then(
    apply,
    (thrown: unknown) => apply(failedRecord(call, thrown, { usage: noTokens, trail: none, votes: none })), // the effects port failed
  )
}

async function mayCallAgain(run: RunContext, call: ModelCall, failed: ModelCallRecord): Promise<boolean> {
  if (run.stoppedBy() !== undefined) return false // streamed text is not retracted: nothing will replace it
  call.stream?.retract('the model call failed')
  if ((await recover(run, failureOf(call, failed), 'aroundInference')) !== 'retry') return false
  // Another attempt is a call like the first: guards decide on it again.
  const { request } = call
  const plan = run.parts.stack.plan('beforeInference')
  await finishInvocation(run, startInvocation(run, plan, { request }, { changes: false }))
  return run.stoppedBy() === undefined
}

/** The model inside its around hooks, as one recorded effect. A failure is part of the record. */
function performCall(run: RunContext, call: ModelCall, attempt: number): Promise<ModelCallRecord> {
  const { arounds } = run.parts.stack.plan('aroundInference')
  if (call.stream !== undefined) call.stream.spent = noTokens // billed with the attempt before
  call.thrown = undefined
  const effect = new ModelEffect(run, call, attempt)
  try {
    const record = run.effects.perform(effect, (signal) => {
      if (arounds.length === 0) return callOnce(run, call, signal)
      return new AroundInference(run, call, { key: effect.key, signal, send: sendAttempt }).run(arounds)
    })
    return Promise.resolve(record)
  } catch (thrown) {
    return Promise.reject(thrown)
  }
}

/** A model call as an effect. Its key is made when it is read: most runs are not recorded. */
class ModelEffect implements Effect {
  readonly kind = 'inference'
  readonly #step: OpenStep
  readonly #call: ModelCall
  readonly #attempt: number
  readonly #tools: AgentParts['descriptions']

  constructor({ open, parts }: RunContext, call: ModelCall, attempt: number) {
    this.#step = open!
    this.#tools = parts.descriptions
    this.#call = call
    this.#attempt = attempt
  }

  get key(): string {
    return `${this.#step.place}/inference${this.#attempt === 1 ? '' : `.${this.#attempt}`}`
  }

  input(): Json {
    return fingerprintRequest(this.#call.request)
  }

  request(): JsonObject {
    return describeRequest(this.#call.request, this.#tools)
  }
}

function callOnce(run: RunContext, call: ModelCall, signal: AbortSignal): Promise<ModelCallRecord> {
  const attempt = new OnlyAttempt(call, signal, ++run.open!.attempts)
  if (call.stream === undefined && run.effects.emit === undefined) return sendOnly(run, call, attempt)
  return sendAttempt(run, call, attempt).then(
    (response) => attempt.answered(response),
    (thrown: unknown) => attempt.failed(thrown),
  )
}

/** The attempt of a call without hooks around it, and what is recorded of it. */
class OnlyAttempt implements Attempt, Settle<ModelReply, ModelCallRecord> {
  readonly request: InferenceRequest
  readonly signal: AbortSignal
  readonly number: number
  isSent = false
  streamed = 0
  readonly #call: ModelCall

  constructor(call: ModelCall, signal: AbortSignal, number: number) {
    this.#call = call
    this.request = call.request
    this.signal = signal
    this.number = number
  }

  done(reply: ModelReply): ModelCallRecord {
    try {
      return this.answered(toCheckedReply(reply, this.request.model, this.request))
    } catch (thrown) {
      return this.failed(thrown)
    }
  }

  answered(response: InferenceResponse): ModelCallRecord {
    const usage = this.#call.stream?.withSpent(response.usage) ?? response.usage
    return { response, error: null, usage, trail: none, votes: none }
  }

  failed(thrown: unknown): ModelCallRecord {
    const spent = this.#call.stream?.spent ?? noTokens
    const estimate = usageOfFailed(this, thrown)
    const rest = { trail: none, votes: none }
    if (estimate === undefined) return failedRecord(this.#call, thrown, { usage: spent, ...rest })
    return failedRecord(this.#call, thrown, { usage: addTokens(estimate, spent), isEstimated: true, ...rest })
  }
}

/** Sends the attempt of a call that nothing listens to: its record needs no promise of its own. */
function sendOnly(run: RunContext, call: ModelCall, attempt: OnlyAttempt): Promise<ModelCallRecord> {
  try {
    return sendAndSettle(run, toSent(run, call, attempt), attempt)
  } catch (thrown) {
    return Promise.resolve(attempt.failed(thrown)) // a hook has offered a tool that does not exist
  }
}

/** Sends one attempt to the model, and streams its answer if the run does. */
function sendAttempt(run: RunContext, call: ModelCall, attempt: Attempt): Promise<InferenceResponse> {
  return call.stream === undefined ? send(run, call, attempt) : sendStreaming(run, call, attempt)
}

async function sendStreaming(run: RunContext, call: ModelCall, attempt: Attempt): Promise<InferenceResponse> {
  const answer = call.stream!.open()
  try {
    return await send(run, call, attempt, (delta) => {
      attempt.streamed += delta.delta.length
      answer.write(delta)
    })
  } finally {
    const checking = attempt.signal.aborted ? undefined : answer.settled()
    if (checking !== undefined) await run.effects.time.wait(checking, untilEnd).catch(() => undefined)
  }
}

function send(
  run: RunContext,
  call: ModelCall,
  attempt: Attempt,
  onDelta?: (delta: InferenceDelta) => void,
): Promise<InferenceResponse> {
  try {
    return sendRequest(run, toSent(run, call, attempt, onDelta))
  } catch (thrown) {
    return Promise.reject(thrown) // a hook has offered a tool that does not exist
  }
}

function toSent(
  run: RunContext,
  { limit }: ModelCall,
  attempt: Attempt,
  onDelta?: (delta: InferenceDelta) => void,
): SentRequest {
  const { request, signal, number } = attempt
  attempt.isSent = !signal.aborted
  return { model: request.model, request: toModelRequest(run, request), signal, limit, number, onDelta }
}

function toModelRequest({ parts }: RunContext, request: InferenceRequest): ModelRequest {
  const { system, messages, tools, toolChoice, responseFormat, settings } = request
  const { toolNames, descriptionList } = parts
  return {
    system,
    messages,
    tools: tools === toolNames ? descriptionList : tools.map((name) => describeTool(parts, name)),
    ...(toolChoice !== undefined && { toolChoice }),
    ...(responseFormat !== undefined && { responseFormat }),
    ...(settings !== undefined && { settings }),
  }
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
  if (record.trail.length > 0) run.noteTrail(record.trail, call.durations)
  if (record.votes.length > 0) run.cast(record.votes)
  if (record.isEstimated === true) run.noteLoop('aroundInference', { warnings: [incompleteCall] })
  const by = record.error === null ? undefined : limitedBy(record.error)
  if (by !== undefined) {
    const { message } = record.error!
    run.cast([Object.freeze({ decision: 'forbidContinuation', reason: 'timeLimit', message, source: by })])
  }
  step.spend(record.usage)
}

/** Warnings of the provider are for people; they change nothing. */
function warn(run: RunContext, message: string): void {
  run.noteLoop('aroundInference', { warnings: [toWarning(message)] })
}

function passedResponse(after: Invocation, response: InferenceResponse): InferenceResponse {
  if (after.blocked !== undefined) {
    return withholdResponse(response, `[withheld by "${after.blocked.by}": ${after.blocked.message}]`)
  }
  if (after.failure !== undefined) return withholdResponse(response, `[withheld: ${after.failure.message}]`)
  return after.facts['response'] as InferenceResponse
}

function addResponse(run: RunContext, step: OpenStep, response: InferenceResponse): void {
  const { messages } = run.state
  const message = step.respond(response, messages.length)
  run.state = AgentState.patch(run.state, { messages: messages.append(message) })
  if (run.effects.emit === undefined) return
  const reasoning = textOf(response.content, 'reasoning')
  const { text } = response
  const said = reasoning === '' ? { text } : { text, reasoning }
  run.effects.emit({ type: 'responded', step: step.index, at: run.now, ...said, usage: step.usage })
}

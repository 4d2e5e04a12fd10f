import type { ContinuationEvaluation } from '../state/continuation.ts'
import {
  isFinishReason,
  toBilledResponse,
  type InferenceRequest,
  type InferenceResponse,
  type RequestChange,
} from '../state/inference.ts'
import { isJsonObject, sameJson, toJson } from '../../values/json.ts'
import { areReplyParts } from '../state/message.ts'
import { addTokens, addUsage, noTokens, toTokens, type TokenUsage } from '../state/usage.ts'
import { AgentError, messageOf, toAgentError } from '../../errors.ts'
import { passes } from '../effects/journal.ts'
import { attemptKey } from '../effects/keys.ts'
import { untilEnd, type WorkLimit } from '../effects/run-time.ts'
import { changeRequest, requestFields } from '../hooks/context-methods.ts'
import { checkOptions } from '../../values/check-options.ts'
import { Trail, type HookHost } from '../hooks/hook-host.ts'
import { Invocation } from '../hooks/invocation.ts'
import { runAround } from '../hooks/run-around.ts'
import { runGuards } from '../hooks/run-hooks.ts'
import type { RunContext } from '../context/run-context.ts'
import { estimateStarted, estimateUsage } from '../model/estimate-usage.ts'
import { fingerprintRequest } from '../model/fingerprint-request.ts'
import {
  answeredRecord,
  callForbidden,
  failedRecord,
  isBilled,
  nameOf,
  noteBegun,
  type CallLimit,
  type ModelCallRecord,
} from '../model/send-request.ts'
import type { AnswerStream } from './answer-stream.ts'

/** The model call of a step. */
export type ModelCall = {
  readonly request: InferenceRequest
  readonly stream: AnswerStream | undefined
  /** The time limit, if a guard has set one. */
  readonly limit: CallLimit | undefined
  /** Not recorded: the error as it was thrown, how long the hooks around the call took, and how long it took with them. */
  thrown?: AgentError | undefined
  durations?: readonly number[]
  ranMs?: number | undefined
}

/** One request of a model call. */
export type Attempt = {
  readonly request: InferenceRequest
  signal: AbortSignal
  number: number
  /** Whether the model was called, and how many characters of its answer were streamed. */
  isSent: boolean
  streamed: number
}

/**
 * The estimated usage of an attempt that failed, if the provider has probably billed it: it was aborted, timed out, had
 * begun to answer, or its answer cannot be used. A request that was rejected costs nothing.
 */
export function usageOfFailed(
  { request, signal, isSent, streamed }: Attempt,
  thrown?: unknown,
): TokenUsage | undefined {
  if (streamed > 0) noteBegun(thrown)
  const hasCost = signal.aborted || streamed > 0 || isBilled(thrown)
  return isSent && hasCost ? estimateStarted(request, streamed) : undefined
}

type Performing = {
  /** The number of the call in its step. */
  readonly n: number
  readonly signal: AbortSignal
  readonly send: (attempt: Attempt) => Promise<InferenceResponse>
}

/** The call inside fails at once when the time of the run is over; hooks around it have a moment to react. */
const aroundLimit: WorkLimit = { ...untilEnd, graceMs: (end) => (end === 'limit' ? 250 : 0) }

/** A model call with hooks around it, which may make any number of attempts. */
export class AroundInference {
  readonly #run: RunContext
  readonly #call: ModelCall
  readonly #way: Performing
  readonly #trail = new Trail()
  readonly #votes: ContinuationEvaluation[] = []
  readonly #race = new AbortController()
  #usage: TokenUsage = noTokens
  #spentByHooks: TokenUsage = noTokens
  #attempts = 0
  readonly #running = new Set<Attempt>()
  #isEstimated = false
  /** What is streamed now. */
  #last: InferenceResponse | undefined
  #ended = false

  constructor(run: RunContext, call: ModelCall, way: Performing) {
    this.#run = run
    this.#call = call
    this.#way = way
    call.durations = this.#trail.durations
  }

  async run(): Promise<ModelCallRecord> {
    const run = this.#run
    const call = this.#call
    const plan = run.parts.plans.of('aroundInference')
    const host = this.#host({})
    const chain = runAround<InferenceResponse, RequestChange>({
      hooks: plan.arounds,
      invocation: (change) => new Invocation(host, plan, run.state, { request: this.#changed(change) }),
      attempt: (change) => this.#attempt(change),
      merge: mergeChanges,
      check: toCheckedResponse,
      note: (entry, ms) => this.#trail.add(entry, ms),
    })
    try {
      const response = await run.effects.time.wait(chain, aroundLimit)
      this.#end()
      const isShown = this.#last !== undefined && sameJson(this.#last.content, response.content)
      if (!isShown) call.stream?.retract('a hook replaced the answer')
      return answeredRecord(response, this.#cost(), this.#rest())
    } catch (thrown) {
      this.#end()
      if (passes(thrown)) throw thrown
      if (this.#way.signal.aborted) this.#billSent()
      call.thrown = toAgentError(thrown, 'MODEL_FAILED')
      return failedRecord(thrown, this.#cost(), this.#rest())
    }
  }

  /** The host of hooks inside the call. */
  #host(overrides: Partial<HookHost>): HookHost {
    const spend = (usage: TokenUsage): void => {
      this.#spentByHooks = addTokens(this.#spentByHooks, usage)
      this.#run.open!.inFlight = this.#cost()
    }
    return this.#trail.hostIn(this.#run, { spend }, overrides)
  }

  /** Aborts attempts that are still running: another one has won. */
  #end(): void {
    this.#ended = true
    this.#trail.isClosed = true
    if (this.#running.size > 0) this.#race.abort(anotherAnswered())
  }

  /** Bills attempts that are aborted with the run for what they have streamed, not for what they may have cost. */
  #billSent(): void {
    for (const attempt of this.#running) this.#bill(usageOfFailed(attempt))
    this.#running.clear()
  }

  #bill(estimate: TokenUsage | undefined): void {
    if (estimate === undefined) return
    this.#usage = addTokens(this.#usage, estimate)
    this.#isEstimated = true
  }

  #changed(change: RequestChange | undefined): InferenceRequest {
    return change === undefined ? this.#call.request : changeRequest(this.#call.request, change, this.#run.toModel)
  }

  async #attempt(change: RequestChange | undefined): Promise<InferenceResponse> {
    const forbidden = this.#votes.find((vote) => vote.decision === 'forbidContinuation')
    if (forbidden !== undefined) throw callForbidden(forbidden)
    const run = this.#run
    const request = this.#changed(change)
    const nth = ++this.#attempts
    const isRepeated = nth > 1
    const n = `${this.#way.n}.${nth}`
    const attempt: Attempt = { request, signal: this.#race.signal, number: 0, isSent: false, streamed: 0 }
    this.#running.add(attempt) // before the guards run: concurrent attempts count each other
    try {
      if (isRepeated || change !== undefined) await this.#runGuards(attempt, `attempt ${n}`)
      if (this.#ended) throw anotherAnswered()
      if (isRepeated) this.#call.stream?.retract('another attempt starts')
      this.#last = undefined // what is shown from now on belongs to this attempt
      attempt.number = ++run.open!.attempts
      const effect = { key: attemptKey(run.step, n), input: () => fingerprintRequest(request) }
      const response = await run.effects.scope().perform<InferenceResponse>(effect, (signal) => {
        attempt.signal = AbortSignal.any([signal, this.#race.signal])
        return this.#way.send(attempt)
      })
      if (this.#ended) return response // another attempt has won
      if (nth === this.#attempts) this.#last = response
      this.#usage = addTokens(this.#usage, response.usage)
      return response
    } catch (thrown) {
      if (this.#ended) throw thrown
      if (attempt.number > 0 && run.effects.time.end !== 'cancel') this.#noteFailure(attempt, thrown)
      this.#bill(usageOfFailed(attempt, thrown))
      throw thrown
    } finally {
      if (!this.#ended) {
        this.#running.delete(attempt)
        run.open!.inFlight = this.#cost() // guards of the next attempt see it
      }
    }
  }

  /** What is recorded besides the result. Attempts that still run, because no hook waits for them, are estimated. */
  #rest() {
    const isEstimated = this.#isEstimated || this.#running.size > 0
    return { isEstimated, trail: this.#trail.entries, votes: this.#votes }
  }

  /** What attempts have cost, with an estimate for those that are running. */
  #cost(except?: Attempt): TokenUsage {
    let usage = addTokens(this.#call.stream?.withSpent(this.#usage) ?? this.#usage, this.#spentByHooks)
    for (const attempt of this.#running) {
      if (attempt !== except) usage = addTokens(usage, estimateUsage(attempt.request))
    }
    return usage
  }

  #noteFailure({ number, request }: Attempt, thrown: unknown): void {
    const text = messageOf(thrown)
    const model = nameOf(request.model)
    const message = `attempt ${number}, ${text.startsWith(model) ? '' : `${model}: `}${text}`
    const entry = { trigger: 'aroundInference', hook: 'hookloop', mode: 'loop', decision: 'failed', message } as const
    this.#trail.add({ step: this.#run.step, ...entry }, 0)
  }

  /** A request that hooks have changed or repeated is decided on again: guards see every call that a model gets. */
  async #runGuards(attempt: Attempt, place: string): Promise<void> {
    const run = this.#run
    const plan = run.parts.plans.of('beforeInference')
    const spentWithoutThis = (): HookHost['spent'] => addUsage(run.execution.usage, this.#cost(attempt))
    const host = this.#host({
      place,
      get spent() {
        return spentWithoutThis()
      },
    })
    const invocation = new Invocation(host, plan, run.state, { request: attempt.request })
    await runGuards(invocation, plan.guards)
    this.#votes.push(...invocation.votes)
    if (invocation.forbidden !== undefined) throw callForbidden(invocation.forbidden)
  }
}

function mergeChanges(outer: RequestChange | undefined, inner: RequestChange | undefined): RequestChange | undefined {
  if (inner === undefined) return outer
  checkOptions('next', inner, requestFields, 'HOOK_NEXT_MISUSED')
  return { ...outer, ...inner }
}

function anotherAnswered(): AgentError {
  return new AgentError('RUN_CANCELLED', 'Another attempt has answered.')
}

/** What an around hook returned, as a response: from `next`, or its own. Undefined if it is not one. */
function toCheckedResponse(value: unknown): InferenceResponse | undefined {
  if (!isJsonObject(value) || !Array.isArray(value['content'])) return undefined
  const content = toJson(value['content'])
  if (!Array.isArray(content) || !areReplyParts(content)) return undefined
  const { finishReason = 'stop' } = value
  if (!isFinishReason(finishReason)) return undefined
  return toBilledResponse({
    content,
    finishReason,
    usage: toTokens((value['usage'] ?? noTokens) as Partial<TokenUsage>),
    ...(typeof value['modelId'] === 'string' && { modelId: value['modelId'] }),
    ...(Array.isArray(value['warnings']) && { warnings: Object.freeze(value['warnings'].map(String)) }),
  })
}

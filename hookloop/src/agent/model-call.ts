import type { ContinuationEvaluation } from '../data/continuation.ts'
import {
  isFinishReason,
  toResponse,
  type InferenceRequest,
  type InferenceResponse,
  type LanguageModel,
  type ModelReply,
  type ModelRequest,
  type RequestChange,
  type ToolDescription,
} from '../data/inference.ts'
import { isJsonObject, sameJson, toJson, type Json } from '../data/json.ts'
import type { LedgerEntry } from '../data/ledger.ts'
import { isReplyPart } from '../data/message.ts'
import { addTokens, addUsage, noTokens, toTokens, type TokenUsage, type Usage } from '../data/usage.ts'
import { AgentError, messageOf, toAgentError } from '../errors.ts'
import type { Effect } from '../effects.ts'
import { changeRequest } from '../hooks/abilities.ts'
import { runAround } from '../hooks/around.ts'
import { Firing } from '../hooks/firing.ts'
import { runGuards } from '../hooks/run-hooks.ts'
import type { StackedHook } from '../hooks/stack.ts'
import type { AnswerStream } from './answer-stream.ts'
import { estimateUsage } from './estimate-usage.ts'
import { fingerprintRequest } from './fingerprint-request.ts'
import type { LiveRun } from './live-run.ts'
import type { CallLimit } from './run-deadline.ts'
import { TrailHost } from './trail-host.ts'

export type ModelCallPlan = {
  readonly request: InferenceRequest
  readonly stream: AnswerStream | undefined
  /** How long it may take, if a guard has said so. */
  readonly limit: CallLimit | undefined
}

/** What is recorded of a model call with everything around it. */
export type ModelCallRecord = {
  readonly response: InferenceResponse | null
  readonly error: { readonly code: AgentError['code']; readonly message: string; readonly value?: Json } | null
  readonly usage: TokenUsage
  readonly trail: readonly LedgerEntry[]
  readonly votes: readonly ContinuationEvaluation[]
}

type Performing = { readonly key: string; readonly signal: AbortSignal }

const none: readonly never[] = Object.freeze([])

/** The model inside its around hooks, as one recorded effect. How it failed is part of what is recorded. */
export function performModelCall(run: LiveRun, call: ModelCallPlan, attempt: number): Promise<ModelCallRecord> {
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

/** What is left when the port itself failed, or the model did before there was anything to record. */
export function unansweredRecord(thrown: unknown): ModelCallRecord {
  return failedRecord(thrown, { usage: noTokens, trail: none, votes: none })
}

function callBare(run: LiveRun, call: ModelCallPlan, signal: AbortSignal): Promise<ModelCallRecord> {
  return askModel(run, call, { request: call.request, signal, number: ++run.open!.attempts }).then(
    (response) => ({ response, error: null, usage: billed(call, response.usage), trail: none, votes: none }),
    (thrown: unknown) => failedRecord(thrown, { usage: billed(call, noTokens), trail: none, votes: none }),
  )
}

/** What a call cost, with what hooks spent that looked at the answer while it was written. */
function billed({ stream }: ModelCallPlan, usage: TokenUsage): TokenUsage {
  return stream === undefined || stream.spent === noTokens ? usage : addTokens(usage, stream.spent)
}

/** What is told to people and never recorded: the error as it was thrown, and how long hooks took. */
const told = new WeakMap<ModelCallRecord, { readonly thrown?: AgentError; readonly durations?: readonly number[] }>()

export function durationsOf(record: ModelCallRecord): readonly number[] {
  return told.get(record)?.durations ?? none
}

export function failureOf(record: ModelCallRecord): AgentError {
  const { code, message, value } = record.error!
  return told.get(record)?.thrown ?? new AgentError(code, message, { value })
}

function failedRecord(
  thrown: unknown,
  rest: Pick<ModelCallRecord, 'usage' | 'trail' | 'votes'>,
  durations: readonly number[] = none,
): ModelCallRecord {
  const error = toAgentError(thrown, 'MODEL_FAILED')
  const { code, message, value } = error
  const record = { response: null, error: { code, message, ...plainValue(value) }, ...rest }
  told.set(record, { thrown: error, durations })
  return record
}

/** A call with hooks around it, and beneath them any number of attempts. */
class WrappedCall {
  readonly #run: LiveRun
  readonly #call: ModelCallPlan
  readonly #how: Performing
  readonly #trail: LedgerEntry[] = []
  readonly #durations: number[] = []
  readonly #votes: ContinuationEvaluation[] = []
  readonly #race = new AbortController()
  /** The run as the hooks around the call see it. */
  readonly #around: TrailHost
  #usage: TokenUsage = noTokens
  #spentByHooks: TokenUsage = noTokens
  #attempts = 0
  /** Attempts under way, by their number. */
  readonly #running = new Map<number, InferenceRequest>()
  #last: InferenceResponse | undefined
  #ended = false

  constructor(run: LiveRun, call: ModelCallPlan, how: Performing) {
    this.#run = run
    this.#call = call
    this.#how = how
    this.#around = new AttemptHost(run, [this.#trail, this.#durations], {
      place: run.place,
      spent: () => run.spent,
      spend: (usage) => this.#spend(usage),
    })
  }

  async run(hooks: readonly StackedHook[]): Promise<ModelCallRecord> {
    const plan = this.#run.parts.stack.plan('aroundInference')
    const trail = this.#trail
    const votes = this.#votes
    try {
      const chain = runAround<InferenceResponse, RequestChange>({
        hooks,
        firing: (change) => new Firing(this.#around, plan, this.#run.state, { request: this.#changed(change) }),
        attempt: (change) => this.#attempt(change),
        merge: (outer, inner) => (inner === undefined ? outer : { ...outer, ...inner }),
        check: toCheckedResponse,
        note: (entry, ms) => {
          trail.push(entry)
          this.#durations.push(ms)
        },
      })
      const response = await this.#run.outstanding.abortable(chain)
      this.#end()
      const shown = this.#last !== undefined && sameJson(this.#last.content, response.content)
      if (!shown) this.#call.stream?.retract('a hook replaced the answer')
      const record = { response, error: null, usage: this.#cost(), trail, votes }
      told.set(record, { durations: this.#durations })
      return record
    } catch (thrown) {
      this.#end()
      if (this.#how.signal.aborted) this.#running.clear() // what was cut off is not guessed at
      return failedRecord(thrown, { usage: this.#cost(), trail, votes }, this.#durations)
    }
  }

  /** Attempts that are still under way have lost: nobody waits for them, and they are told to stop. */
  #end(): void {
    this.#ended = true
    if (this.#running.size > 0) this.#race.abort(new AgentError('RUN_CANCELLED', 'Another attempt has answered.'))
  }

  #changed(change: RequestChange | undefined): InferenceRequest {
    return change === undefined ? this.#call.request : changeRequest(this.#call.request, change, this.#run.toModel)
  }

  async #attempt(change: RequestChange | undefined): Promise<InferenceResponse> {
    const forbidden = this.#votes.find((vote) => vote.decision === 'forbidContinuation')
    if (forbidden !== undefined) throw forbade(forbidden)
    const request = this.#changed(change)
    const attempt = ++this.#attempts
    const again = attempt > 1
    const key = `${this.#how.key}/${attempt}`
    this.#running.set(attempt, request) // several at once: each knows of the others, also of those being judged
    let number = 0
    try {
      if (again || change !== undefined) await this.#judge(request, { attempt, place: key })
      if (this.#ended) throw new AgentError('RUN_CANCELLED', 'Another attempt has answered.')
      if (again) this.#call.stream?.retract('another attempt begins')
      this.#last = undefined // what is shown from here on belongs to this attempt
      number = ++this.#run.open!.attempts
      const response = await this.#run.effects
        .scope(key)
        .perform({ key, kind: 'inference', input: () => fingerprintRequest(request) }, (signal) =>
          askModel(this.#run, this.#call, { request, signal: AbortSignal.any([signal, this.#race.signal]), number }),
        )
      if (this.#ended) return response // the loser of a race: nobody waits for it any more
      if (attempt === this.#attempts) this.#last = response
      this.#usage = addTokens(this.#usage, response.usage)
      return response
    } catch (thrown) {
      if (number > 0 && !this.#ended && !this.#how.signal.aborted) this.#noteFailure(number, request, thrown)
      throw thrown
    } finally {
      if (!this.#ended) {
        this.#running.delete(attempt)
        this.#run.open!.inFlight = this.#cost() // what the next attempt is judged on
      }
    }
  }

  /** What attempts have cost, with a rough guess at those that are under way. */
  #cost(except?: number): TokenUsage {
    let usage = addTokens(billed(this.#call, this.#usage), this.#spentByHooks)
    for (const [attempt, request] of this.#running) {
      if (attempt !== except) usage = addTokens(usage, estimateUsage(request))
    }
    return usage
  }

  #spend(usage: TokenUsage): void {
    this.#spentByHooks = addTokens(this.#spentByHooks, usage)
    this.#run.open!.inFlight = this.#cost()
  }

  #noteFailure(attempt: number, { model }: InferenceRequest, thrown: unknown): void {
    const words = messageOf(thrown)
    const name = words.startsWith(nameOf(model)) ? '' : `${nameOf(model)}: `
    const message = `attempt ${attempt}, ${name}${words}`
    const entry = { trigger: 'aroundInference', hook: 'hookloop', mode: 'loop', decision: 'failed', message } as const
    this.#trail.push({ step: this.#run.step, ...entry })
    this.#durations.push(0)
  }

  /** A request that was changed on its way, or is sent again, is judged again: guards see every call the model gets. */
  async #judge(request: InferenceRequest, { attempt, place }: { attempt: number; place: string }): Promise<void> {
    const plan = this.#run.parts.stack.plan('beforeInference')
    const host = new AttemptHost(this.#run, [this.#trail, this.#durations], {
      place,
      spent: () => addUsage(this.#run.spentBefore, this.#cost(attempt)),
      spend: (usage) => this.#spend(usage),
    })
    const firing = new Firing(host, plan, this.#run.state, { request })
    await runGuards(firing, plan.guards)
    const no = firing.votes.find((vote) => vote.decision === 'forbidContinuation')
    this.#votes.push(...firing.votes)
    if (no !== undefined) throw forbade(no)
  }
}

type Judging = {
  readonly place: string
  readonly spent: () => Usage
  readonly spend: (usage: TokenUsage) => void
}

/** The run as guards see it that judge one attempt: with what the others may cost, and without its own. */
class AttemptHost extends TrailHost {
  readonly #judging: Judging

  constructor(run: LiveRun, [trail, durations]: [LedgerEntry[], number[]], judging: Judging) {
    super(run, trail, durations)
    this.#judging = judging
    this.place = judging.place
  }

  override get spent(): Usage {
    return this.#judging.spent()
  }

  override spend(usage: TokenUsage): void {
    this.#judging.spend(usage)
  }
}

/** Asks the model once, and tells whoever watches that it is asked and that it failed. */
async function askModel(
  run: LiveRun,
  call: ModelCallPlan,
  { request, signal, number }: { request: InferenceRequest; signal: AbortSignal; number: number },
): Promise<InferenceResponse> {
  const answer = call.stream?.open()
  const asked = toModelRequest(run, request)
  const heeded = limitedSignal(run, call, signal)
  const { emit } = run.effects
  const place = emit && { step: run.step, attempt: number, model: nameOf(request.model) }
  emit?.({ type: 'inferenceStarted', ...place! })
  try {
    const how = answer === undefined ? { signal: heeded } : { signal: heeded, onDelta: answer.write }
    const reply = request.model.infer(asked, how)
    const given = await run.outstanding.abortable(
      run.deadline.within(reply instanceof Promise ? reply : Promise.resolve(reply)),
    )
    return toCheckedReply(given, request.model)
  } catch (thrown) {
    const { code, message } = toAgentError(thrown, 'MODEL_FAILED')
    if (!signal.aborted) emit?.({ type: 'inferenceFailed', ...place!, error: { code, message } })
    throw thrown
  } finally {
    const looking = signal.aborted ? undefined : answer?.settled()
    if (looking !== undefined) await run.outstanding.abortable(looking).catch(() => undefined)
  }
}

/** The signal a call heeds: that of the run, that of its attempt, and that of the time it has. */
function limitedSignal(run: LiveRun, { limit }: ModelCallPlan, signal: AbortSignal): AbortSignal {
  if (limit === undefined) return signal
  const limited = run.deadline.signalFor(limit) // aborts with the run as well
  return signal === run.signal ? limited : AbortSignal.any([signal, limited])
}

function nameOf({ provider, modelId }: LanguageModel): string {
  return `${provider}/${modelId}`
}

function forbade({ source, message }: ContinuationEvaluation): AgentError {
  return new AgentError('MODEL_FORBIDDEN', `"${source}" forbade the call: ${message}`)
}

function toModelRequest(run: LiveRun, request: InferenceRequest): ModelRequest {
  const { system, messages, tools, toolChoice, responseFormat, settings } = request
  const { toolNames, descriptionList } = run.parts
  return {
    system,
    messages,
    tools: tools === toolNames ? descriptionList : tools.map((name) => describeTool(run, name)),
    ...(toolChoice !== undefined && { toolChoice }),
    ...(responseFormat !== undefined && { responseFormat }),
    ...(settings !== undefined && { settings }),
  }
}

function describeTool(run: LiveRun, name: string): ToolDescription {
  const found = run.parts.descriptions.get(name)
  if (found !== undefined) return found
  throw new AgentError('HOOK_FAILED', `A hook offered the model a tool "${name}" that the agent does not have.`, {
    value: name,
  })
}

function toCheckedReply(reply: ModelReply, model: LanguageModel): InferenceResponse {
  const content = Array.isArray(reply?.content) ? plainValue(reply.content).value : undefined
  if (!Array.isArray(content) || !content.every(isReplyPart) || !isFinishReason(reply.finishReason)) {
    throw new AgentError(
      'MODEL_REPLY_INVALID',
      'The model answered with something that is not a reply.',
      plainValue(reply),
    )
  }
  const { finishReason, modelId, warnings } = reply
  return toResponse({
    content,
    finishReason,
    usage: usageOf(reply, model),
    ...(typeof modelId === 'string' && { modelId }),
    ...(Array.isArray(warnings) && { warnings: Object.freeze(warnings.map(String)) }),
  })
}

function usageOf({ usage }: ModelReply, { cost }: LanguageModel): TokenUsage {
  const tokens = toTokens(usage ?? noTokens)
  if (typeof cost !== 'function' || usage?.costUsd !== undefined) return tokens
  const costUsd = cost(tokens)
  if (typeof costUsd === 'number' && costUsd >= 0 && costUsd < Infinity) return toTokens({ ...tokens, costUsd })
  // Counted as nothing, it would take every limit on cost away.
  throw new AgentError('MODEL_INVALID', 'The "cost" of the model gave no amount.', plainValue({ costUsd }))
}

/** What an around hook returned, if it is a response: from `next`, or its own. */
function toCheckedResponse(value: unknown): InferenceResponse | undefined {
  if (!isJsonObject(value) || !Array.isArray(value['content'])) return undefined
  const content = toJson(value['content'])
  if (!Array.isArray(content) || !content.every(isReplyPart)) return undefined
  const finishReason = value['finishReason']
  return toResponse({
    content,
    finishReason: isFinishReason(finishReason) ? finishReason : 'stop',
    usage: toTokens((value['usage'] ?? noTokens) as Partial<TokenUsage>),
    ...(typeof value['modelId'] === 'string' && { modelId: value['modelId'] }),
    ...(Array.isArray(value['warnings']) && { warnings: Object.freeze(value['warnings'].map(String)) }),
  })
}

/** The value at fault, if it can be kept: an error must not be lost for what it carries. */
function plainValue(value: unknown): { readonly value?: Json } {
  try {
    return value === undefined ? {} : { value: toJson(value) }
  } catch {
    return {}
  }
}

import { createHash } from 'node:crypto'
import type { ContinuationEvaluation } from '../data/continuation.ts'
import {
  isFinishReason,
  toResponse,
  withholdResponse,
  type InferenceRequest,
  type InferenceResponse,
  type ModelReply,
  type ModelRequest,
  type RequestChange,
  type ToolDescription,
} from '../data/inference.ts'
import { hashJson, isJsonObject, toJson, type Json } from '../data/json.ts'
import type { LedgerEntry } from '../data/ledger.ts'
import { isPart, type Message } from '../data/message.ts'
import { noTokens, type TokenUsage } from '../data/usage.ts'
import { AgentError, toAgentError } from '../errors.ts'
import { changeRequest } from '../hooks/abilities.ts'
import { runAround } from '../hooks/around.ts'
import { Firing } from '../hooks/firing.ts'
import { isThenable, runGuards } from '../hooks/run-hooks.ts'
import type { LiveRun } from './live-run.ts'
import type { OpenedStep } from './opened-step.ts'

/** beforeInference, the model inside its around hooks, afterInference. Leaves the response in the open step. */
export async function infer(run: LiveRun, step: OpenedStep): Promise<void> {
  const fired = run.fire('beforeInference', { request: requestOf(run) })
  const before = isThenable(fired) ? await fired : fired
  if (run.over !== undefined || before?.failure !== undefined) return
  const request = (before?.facts['request'] as InferenceRequest | undefined) ?? requestOf(run)
  const stream = new AnswerStream(run, step.index)
  const response = await callModel(run, { step, request, stream })
  if (response === undefined) return
  const judged = run.fire('afterInference', { request, response })
  const after = isThenable(judged) ? await judged : judged
  const passed = after === undefined ? response : passedResponse(after, response)
  stream.finish(response, passed)
  const message = step.respond(passed, run.state.messages.length)
  run.state = run.state.withMessages(run.state.messages.append(message))
  run.effects.emit?.({ type: 'responded', step: step.index, text: passed.text, usage: step.usage })
}

function requestOf(run: LiveRun): InferenceRequest {
  const { parts, state } = run
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

type Call = { readonly step: OpenedStep; readonly request: InferenceRequest; readonly stream: AnswerStream }

/** What is recorded of a model call with everything around it. */
type CallRecord = {
  readonly response: InferenceResponse | null
  readonly error: { readonly code: AgentError['code']; readonly message: string; readonly value?: Json } | null
  readonly usage: TokenUsage
  readonly trail: readonly LedgerEntry[]
  readonly votes: readonly ContinuationEvaluation[]
}

async function callModel(run: LiveRun, call: Call): Promise<InferenceResponse | undefined> {
  for (let attempt = 1; ; attempt++) {
    const key = `${run.place}/inference${attempt === 1 ? '' : `.${attempt}`}`
    let failure: AgentError
    try {
      const chain = new ModelChain(run, call, key)
      const record = await run.effects.perform({ key, kind: 'inference', input: () => describe(call.request) }, (signal) =>
        chain.run(signal),
      )
      record.trail.forEach((entry, i) => run.note(entry, chain.durations[i] ?? 0))
      if (record.votes.length > 0) run.cast(record.votes)
      call.step.usage = addTokens(call.step.usage, record.usage)
      run.spend(record.usage)
      if (record.response !== null) return record.response
      const { code, message, value } = record.error!
      failure = chain.thrown ?? new AgentError(code, message, { value })
    } catch (thrown) {
      failure = toAgentError(thrown, 'MODEL_FAILED')
    }
    call.stream.retract('the model call failed')
    if (run.over !== undefined) return undefined
    const next = await run.recover(failure, 'aroundInference')
    if (next !== 'retry') return undefined
  }
}

/** One performed model call: the around hooks, and beneath them any number of attempts. */
class ModelChain {
  readonly durations: number[] = []
  thrown: AgentError | undefined
  readonly #run: LiveRun
  readonly #call: Call
  readonly #key: string
  readonly #trail: LedgerEntry[] = []
  readonly #votes: ContinuationEvaluation[] = []
  #usage: TokenUsage = noTokens
  #attempts = 0

  constructor(run: LiveRun, call: Call, key: string) {
    this.#run = run
    this.#call = call
    this.#key = key
  }

  async run(signal: AbortSignal): Promise<CallRecord> {
    const { arounds } = this.#run.parts.stack.plan('aroundInference')
    let [response, error]: [InferenceResponse | null, CallRecord['error']] = [null, null]
    try {
      response =
        arounds.length === 0
          ? await this.#ask(this.#call.request, signal)
          : await runAround<InferenceResponse, RequestChange>({
              hooks: arounds,
              firing: (change) =>
                new Firing(this.#run, 'aroundInference', this.#run.state, { request: this.#changed(change) }),
              attempt: (change) => this.#attempt(change, signal),
              merge: (outer, inner) => (inner === undefined ? outer : { ...outer, ...inner }),
              check: toCheckedResponse,
              note: (entry, ms) => {
                this.#trail.push(entry)
                this.durations.push(ms)
              },
            })
    } catch (thrown) {
      this.thrown = toAgentError(thrown, 'MODEL_FAILED')
      const { code, message, value } = this.thrown
      error = { code, message, ...(value !== undefined && { value: toJson(value) }) }
    }
    return { response, error, usage: this.#usage, trail: this.#trail, votes: this.#votes }
  }

  #changed(change: RequestChange | undefined): InferenceRequest {
    return change === undefined ? this.#call.request : changeRequest(this.#call.request, change)
  }

  async #attempt(change: RequestChange | undefined, signal: AbortSignal): Promise<InferenceResponse> {
    const request = this.#changed(change)
    if (change !== undefined) await this.#judge(request)
    if (++this.#attempts > 1) this.#call.stream.retract('another attempt begins')
    const key = `${this.#key}/${this.#attempts}`
    const effects = this.#run.effects.scope(key)
    return effects.perform({ key, kind: 'inference', input: () => describe(request) }, () => this.#ask(request, signal))
  }

  /** A request that was changed on its way to the model is judged again: guards see what the model gets. */
  async #judge(request: InferenceRequest): Promise<void> {
    const { guards } = this.#run.parts.stack.plan('beforeInference')
    const firing = new Firing(this.#run, 'beforeInference', this.#run.state, { request })
    await runGuards(firing, guards)
    const no = firing.votes.find((vote) => vote.decision === 'forbidContinuation')
    this.#votes.push(...firing.votes)
    if (no !== undefined) throw new AgentError('MODEL_FAILED', `"${no.source}" forbade the changed request: ${no.message}`)
  }

  async #ask(request: InferenceRequest, signal: AbortSignal): Promise<InferenceResponse> {
    const { stream } = this.#call
    const onDelta = stream.onDelta
    const work = request.model.infer(toModelRequest(this.#run, request), { signal, ...(onDelta && { onDelta }) })
    const response = toCheckedReply(await this.#run.abortable(work))
    this.#usage = addTokens(this.#usage, response.usage)
    return response
  }
}

function toModelRequest(run: LiveRun, request: InferenceRequest): ModelRequest {
  const { model: _model, tools, ...rest } = request
  return { ...rest, tools: tools === run.parts.toolNames ? run.parts.descriptionList : tools.map((name) => describeTool(run, name)) }
}

function describeTool(run: LiveRun, name: string): ToolDescription {
  const found = run.parts.descriptions.get(name)
  if (found !== undefined) return found
  throw new AgentError('MODEL_FAILED', `A hook offered the model a tool "${name}" that the agent does not have.`, {
    value: name,
  })
}

function toCheckedReply(reply: ModelReply): InferenceResponse {
  const content = Array.isArray(reply?.content) ? toJson(reply.content) : undefined
  if (!Array.isArray(content) || !content.every(isPart) || !isFinishReason(reply.finishReason)) {
    throw new AgentError('MODEL_FAILED', 'The model answered with something that is not a reply.', {
      value: toJson(reply),
    })
  }
  return toResponse({ content, finishReason: reply.finishReason, ...(reply.usage && { usage: tokensOf(reply.usage) }) })
}

/** What an around hook returned, if it is a response: from `next`, or its own. */
function toCheckedResponse(value: unknown): InferenceResponse | undefined {
  if (!isJsonObject(value) || !Array.isArray(value['content'])) return undefined
  const content = toJson(value['content'])
  if (!Array.isArray(content) || !content.every(isPart)) return undefined
  const finishReason = value['finishReason']
  return toResponse({
    content,
    finishReason: isFinishReason(finishReason) ? finishReason : 'stop',
    usage: tokensOf((value['usage'] ?? {}) as Partial<TokenUsage>),
  })
}

function tokensOf(usage: Partial<TokenUsage>): TokenUsage {
  const amount = (value: unknown): number => (typeof value === 'number' && value > 0 && Number.isFinite(value) ? value : 0)
  return {
    inputTokens: amount(usage.inputTokens),
    outputTokens: amount(usage.outputTokens),
    costUsd: amount(usage.costUsd),
  }
}

function addTokens(a: TokenUsage, b: TokenUsage): TokenUsage {
  return Object.freeze({
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    costUsd: a.costUsd + b.costUsd,
  })
}

/** A request, short: a fingerprint of the conversation that costs only what is new in it. */
function describe(request: InferenceRequest): Json {
  const { model, messages, ...rest } = request
  return {
    model: `${model.provider}/${model.modelId}`,
    messages: messages.length,
    conversation: messages.fold(fingerprints, '', fingerprint),
    rest: hashJson(toJson(rest)),
  }
}

const fingerprints = new WeakMap<readonly Message[], { readonly value: string }>()

function fingerprint(sum: string, message: Message): string {
  return createHash('sha256').update(sum).update(JSON.stringify(message)).digest('hex').slice(0, 32)
}

/**
 * Lets an answer be seen while it is written, or not before every hook on `afterInference` has passed it: the strictest
 * of them decides.
 */
class AnswerStream {
  readonly onDelta: NonNullable<Parameters<InferenceRequest['model']['infer']>[1]['onDelta']> | undefined
  readonly #run: LiveRun
  readonly #step: number
  #shown = false

  constructor(run: LiveRun, step: number) {
    this.#run = run
    this.#step = step
    const { emit } = run.effects
    if (!run.streams || emit === undefined) return
    const { transforms, guards } = run.parts.stack.plan('afterInference')
    if ([...transforms, ...guards].some((hook) => hook.stream !== 'after')) return
    this.onDelta = (delta) => {
      this.#shown = true
      emit(delta)
    }
  }

  retract(why: string): void {
    if (this.#shown) this.#run.effects.emit?.({ type: 'retracted', step: this.#step, why })
    this.#shown = false
  }

  finish(written: InferenceResponse, passed: InferenceResponse): void {
    if (written !== passed) this.retract('a hook changed or withheld the answer')
    if (!this.#shown && passed.text !== '') this.#run.effects.emit?.({ type: 'text', delta: passed.text })
  }
}

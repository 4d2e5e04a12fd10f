import { AgentState, MODEL_KEY } from '../../state/agent-state.ts'
import type { ContinuationEvaluation } from '../../state/continuation.ts'
import type { InferenceRequest, InferenceResponse, LanguageModel } from '../../state/inference.ts'
import type { Json } from '../../state/json.ts'
import type { LedgerEntry } from '../../state/ledger.ts'
import { addTokens, addUsage, noTokens, totalTokens, type TokenUsage } from '../../state/usage.ts'
import type { Effects } from '../../effects/effects.ts'
import { AgentError, toAgentError } from '../../errors.ts'
import type { Asker, HookInference, Inferred, InferOptions } from '../../hooks/infer.ts'
import { Invocation } from '../../hooks/invocation.ts'
import { isFatal, runGuards } from '../../hooks/run-hooks.ts'
import { askOnce, nameOf, plainValue, type AskingRun } from './send-request.ts'
import { AttemptHost, forbade } from './attempt-host.ts'
import { estimateUsage } from './estimate-usage.ts'
import { fingerprintRequest } from './fingerprint-request.ts'
import { inferFor, type InferCall } from './infer.ts'
import { noteTrail } from '../loop/note-trail.ts'
import type { AgentParts } from '../agent-parts.ts'
import { limitedBy, limitFromNow, type CallLimit } from '../loop/run-lifetime.ts'

/** As much of a run as it takes to let its hooks ask models. */
export interface HookAskingRun extends AskingRun {
  readonly parts: AgentParts
  readonly state: AgentState
  readonly opened: boolean
  readonly forbidden: ContinuationEvaluation | undefined
  cast(votes: readonly ContinuationEvaluation[]): void
}

/** What is recorded of one call. */
export type CallRecord = {
  readonly response: InferenceResponse | null
  readonly error: { readonly code: AgentError['code']; readonly message: string; readonly value?: Json } | null
  readonly usage: TokenUsage
}

/** What is left of a hook that nobody waited for any longer. */
type Rest = {
  readonly usage: TokenUsage
  readonly trail: readonly LedgerEntry[]
  readonly votes: readonly ContinuationEvaluation[]
}

/**
 * The models that one hook asks in one firing. Each call is judged, recorded under the key of the hook and its number,
 * and counted. What there is to tell of them is told when the hook has ended, so that a replay of a hook that ran out of
 * time, which never gets as far, tells the same.
 */
export class HookCalls implements HookInference {
  readonly #run: HookAskingRun
  readonly #by: Asker
  readonly #effects: Effects
  readonly #trail: LedgerEntry[] = []
  readonly #durations: number[] = []
  readonly #votes: ContinuationEvaluation[] = []
  readonly #over = new AbortController()
  readonly #pending = new Set<Promise<unknown>>()
  /** Calls under way, by their key. */
  readonly #running = new Map<string, InferenceRequest>()
  #usage = noTokens
  #count = 0
  #ended = false
  #fatal: AgentError | undefined

  constructor(run: HookAskingRun, by: Asker) {
    this.#run = run
    this.#by = by
    // A scope, because a hook that ran out of time goes on without anybody waiting, and must not move the clock then.
    this.#effects = run.effects.scope(by.key)
  }

  get spent(): TokenUsage {
    return this.#usage
  }

  infer(asked: InferOptions): Promise<Inferred & { readonly output?: unknown }> {
    const number = ++this.#count
    const { toModel, parts, state } = this.#run
    const work = inferFor(asked, {
      toModel,
      model: modelFor(parts, state),
      send: (call, again) => this.#send(call, { key: callKey(this.#by, number, again), number }),
    })
    this.#pending.add(work.catch(() => undefined)) // whoever does not wait for it has nobody to tell
    return work
  }

  async close(how: 'returned' | 'threw' | 'timedOut'): Promise<void> {
    this.#ended = true
    if (how !== 'returned') this.#over.abort(new AgentError('RUN_CANCELLED', 'The hook that asked has ended.'))
    if (how === 'timedOut') return this.#handOver(await this.#restOfTime())
    await Promise.all(this.#pending)
    this.#handOver({ usage: this.#usage, trail: this.#trail, votes: this.#votes })
    this.#run.effects.join(this.#effects)
    if (this.#fatal !== undefined) throw this.#fatal
  }

  /** How far a hook comes before its time is over is a matter of chance, so it is recorded. */
  async #restOfTime(): Promise<Rest> {
    const effect = { key: `${this.#by.key}/unheard`, kind: 'hook', input: () => null } as const
    const rest = { usage: this.#cost(), trail: this.#trail.slice(), votes: this.#votes.slice() }
    return this.#run.effects.scope(effect.key).perform<Rest>(effect, () => rest)
  }

  #handOver({ usage, trail, votes }: Rest): void {
    noteTrail(this.#run, trail, this.#durations)
    this.#run.spend(usage)
    const isOpen = this.#run.opened && this.#run.state.execution?.final === undefined
    if (isOpen && votes.length > 0) this.#run.cast(votes)
  }

  /** What calls have cost, with a rough guess at those that are under way. */
  #cost(except?: string): TokenUsage {
    let usage = this.#usage
    for (const [key, request] of this.#running) {
      if (key !== except) usage = addTokens(usage, estimateUsage(request))
    }
    return usage
  }

  async #send(call: InferCall, { key, number }: { key: string; number: number }): Promise<InferenceResponse> {
    const { request } = call
    if (this.#ended) throw new AgentError('RUN_CANCELLED', 'The hook that asked has ended.')
    const no = this.#forbidden()
    if (no !== undefined) throw forbade(no)
    this.#running.set(key, request) // several at once: each knows of the others
    const started = performance.now()
    try {
      const limit = await this.#judge(request, key)
      if (this.#ended) throw new AgentError('RUN_CANCELLED', 'The hook that asked has ended.')
      const effect = { key, kind: 'inference', input: () => fingerprintRequest(request) } as const
      const record = await this.#effects.perform<CallRecord>(effect, (signal) =>
        this.#ask(call, { signal, limit, number }),
      )
      return this.#take(record, { request, started })
    } catch (thrown) {
      if (thrown instanceof AgentError && isFatal(thrown)) this.#fatal ??= thrown
      throw thrown
    } finally {
      this.#running.delete(key)
    }
  }

  #forbidden(): ContinuationEvaluation | undefined {
    const own = this.#votes.find((vote) => vote.decision === 'forbidContinuation')
    return own ?? (this.#run.opened ? this.#run.forbidden : undefined)
  }

  /** Guards see every call a model gets, also those of hooks. Gives the time that they leave it. */
  async #judge(request: InferenceRequest, key: string): Promise<CallLimit | undefined> {
    const run = this.#run
    const plan = run.parts.stack.plan('beforeInference')
    if (plan.guards.length === 0) return undefined
    const host = new JudgingHost(run, [this.#trail, this.#durations], {
      place: key,
      spent: () => addUsage(run.spent, this.#cost(key)),
      spend: (usage) => {
        this.#usage = addTokens(this.#usage, usage)
      },
      isOver: () => this.#ended,
      effects: this.#effects,
    })
    const firing = new Invocation(host, plan, run.opened ? run.state : withoutExecution(run.state), { request })
    const waiting = runGuards(firing, plan.guards)
    if (waiting !== undefined) await waiting
    this.#votes.push(...firing.votes)
    const no = firing.votes.find((vote) => vote.decision === 'forbidContinuation')
    if (no !== undefined) throw forbade(no)
    return firing.within && limitFromNow(firing.within)
  }

  async #ask(
    { request, tools }: InferCall,
    { signal, limit, number }: { signal: AbortSignal; limit: CallLimit | undefined; number: number },
  ): Promise<CallRecord> {
    const { model, ...rest } = request
    const heeded = AbortSignal.any([signal, this.#over.signal])
    try {
      heeded.throwIfAborted()
      const question = { model, request: { ...rest, tools }, signal: heeded, limit, number, hook: this.#by.hook }
      const response = await askOnce(this.#run, question)
      return { response, error: null, usage: response.usage }
    } catch (thrown) {
      const isCutOff = this.#over.signal.aborted && !signal.aborted
      const { code, message, value } = toAgentError(thrown, 'MODEL_FAILED')
      const usage = isCutOff ? estimateUsage(request) : noTokens
      return { response: null, error: { code, message, ...plainValue(value) }, usage }
    }
  }

  #take({ response, error, usage }: CallRecord, asked: { request: InferenceRequest; started: number }) {
    this.#usage = addTokens(this.#usage, usage)
    this.#note(asked, response === null ? { decision: 'inferenceFailed', message: error!.message } : told(response))
    if (response !== null) return response
    const by = limitedBy(error!)
    const { code, message, value } = error!
    if (by !== undefined) {
      this.#votes.push(
        Object.freeze({ decision: 'forbidContinuation', reason: 'timeLimit', message, source: by } as const),
      )
    }
    throw new AgentError(code, message, { value })
  }

  #note({ request, started }: { request: InferenceRequest; started: number }, what: Partial<LedgerEntry>): void {
    const { hook, mode, trigger } = this.#by
    const message = `${nameOf(request.model)}: ${what.message}`
    this.#trail.push({ step: this.#run.step, trigger, hook, mode, ...what, message })
    this.#durations.push(performance.now() - started)
  }
}

function told({ usage }: InferenceResponse): Partial<LedgerEntry> {
  return { decision: 'inferred', message: `${totalTokens(usage)} tokens` }
}

/** The key of a call: that of the hook, and which of its calls it is. */
export function callKey({ key }: Asker, number: number, again: boolean): string {
  return `${key}/infer.${number}${again ? '.again' : ''}`
}

/** The key of the hook that made a call. */
export function askerOf(key: string): string {
  return key.slice(0, key.lastIndexOf('/infer.'))
}

/** The model of a conversation: its own, or its agent's. */
export function modelFor(parts: AgentParts, state: AgentState): LanguageModel {
  const chosen = state.metadata[MODEL_KEY]
  return typeof chosen === 'string' ? parts.toModel(chosen) : parts.model
}

/** Before there is an execution, the state may still show an earlier one, and limits would count that. */
function withoutExecution(state: AgentState): AgentState {
  return AgentState.create({ ...AgentState.fieldsOf(state), execution: undefined })
}

/** The clock that guards see is that of the hook they judge a call of. */
class JudgingHost extends AttemptHost {
  readonly #own: Effects

  constructor(
    run: HookAskingRun,
    told: ConstructorParameters<typeof AttemptHost>[1],
    judging: ConstructorParameters<typeof AttemptHost>[2] & { readonly effects: Effects },
  ) {
    super(run, told, judging)
    this.#own = judging.effects
  }

  override get now(): number {
    return this.#own.now()
  }
}

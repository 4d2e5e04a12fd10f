import { AgentState } from '../state/agent-state.ts'
import type { ContinuationEvaluation } from '../state/continuation.ts'
import type { InferenceRequest, InferenceResponse } from '../state/inference.ts'
import type { EntryWarning, LedgerEntry } from '../state/ledger.ts'
import { addTokens, addUsage, noTokens, totalTokens, type TokenUsage } from '../state/usage.ts'
import { hashJson } from '../../values/json.ts'
import type { Effects } from '../effects/effects.ts'
import { errorOf, Unanswered, type Effect } from '../effects/journal.ts'
import type { EffectKey } from '../effects/keys.ts'
import { limitedBy } from '../effects/run-time.ts'
import { AgentError } from '../../errors.ts'
import { Trail, type HookHost } from '../hooks/hook-host.ts'
import type { HookInference, Inferred, InferOptions, InferringHook } from '../hooks/infer.ts'
import { Invocation } from '../hooks/invocation.ts'
import { runAround } from '../hooks/run-around.ts'
import { isFatal, runGuards } from '../hooks/run-hooks.ts'
import type { AgentParts } from '../agent/agent-parts.ts'
import { estimateStarted, estimateUsage, incompleteCall, toWarning } from './estimate-usage.ts'
import { fingerprintRequest } from './fingerprint-request.ts'
import { inferFor, type InferCall } from './infer.ts'
import {
  answeredRecord,
  callForbidden,
  failedRecord,
  isBilled,
  limitFromNow,
  modelFor,
  nameOf,
  responseOf,
  sendRequest,
  type CallLimit,
  type ModelCallRecord,
} from './send-request.ts'

/** The part of a run that the model calls of its hooks need. */
export type InferringRun = HookHost & {
  readonly parts: AgentParts
  readonly state: AgentState
  readonly hasExecution: boolean
  readonly forbidden: ContinuationEvaluation | undefined
  readonly cast: (votes: readonly ContinuationEvaluation[]) => void
  readonly noteTrail: (entries: readonly LedgerEntry[], durations: readonly number[]) => void
}

/** What a hook that timed out has done so far. */
type PartialCalls = {
  readonly usage: TokenUsage
  readonly trail: readonly LedgerEntry[]
  readonly votes: readonly ContinuationEvaluation[]
}

/**
 * The model calls of one hook in one invocation. Guards decide on each call, it is recorded under the key of the hook and
 * its number, and counted. The run gets the ledger entries, the cost and the votes when the hook has ended: in a replay, a
 * hook that timed out does not get as far.
 */
export class HookModelCalls implements HookInference {
  readonly #run: InferringRun
  readonly #hook: InferringHook
  readonly #effects: Effects
  readonly #trail = new Trail()
  readonly #votes: ContinuationEvaluation[] = []
  readonly #hookEnded = new AbortController()
  readonly #pending = new Set<Promise<unknown>>()
  /** The requests of running calls, by number. */
  readonly #running = new Map<number, InferenceRequest>()
  #usage = noTokens
  #count = 0
  #fatal: Error | undefined

  constructor(run: InferringRun, hook: InferringHook) {
    this.#run = run
    this.#hook = hook
    // In a scope: a hook that has timed out continues in the background and must not move the clock of the run.
    this.#effects = run.effects.scope()
  }

  get spent(): TokenUsage {
    return this.#usage
  }

  infer(options: InferOptions): Promise<Inferred & { readonly output?: unknown }> {
    const number = ++this.#count
    const { toModel, parts, state } = this.#run
    const work = inferFor(options, {
      toModel,
      model: modelFor(parts, state),
      send: (call) => this.#send(call, number),
    })
    const settled: Promise<unknown> = work.then(
      () => this.#pending.delete(settled),
      () => this.#pending.delete(settled),
    )
    this.#pending.add(settled)
    return work
  }

  get pending(): Promise<unknown> | undefined {
    return this.#pending.size === 0 ? undefined : Promise.all(this.#pending)
  }

  async close(end: 'returned' | 'threw' | 'timedOut'): Promise<void> {
    this.#trail.isClosed = true
    if (end !== 'returned') this.#hookEnded.abort(hookEnded())
    if (end === 'timedOut') return this.#report(await this.#untilTimeout())
    await Promise.all(this.#pending)
    this.#report({ usage: this.#usage, trail: this.#trail.entries, votes: this.#votes })
    this.#run.effects.join(this.#effects)
    if (this.#fatal !== undefined) throw this.#fatal
  }

  /** How far a hook gets before it times out differs from run to run, so it is recorded. */
  async #untilTimeout(): Promise<PartialCalls> {
    const effect = { key: this.#keyFor('hook', 'unheard'), input: () => null }
    const calls = { usage: this.#cost(), trail: this.#trail.entries.slice(), votes: this.#votes.slice() }
    const recorded = await this.#run.effects.scope().perform<PartialCalls>(effect, () => calls)
    const { trigger, hook, call } = effect.key
    this.#effects.scopeLog.readAll(
      (key) => key.kind === 'infer' && key.trigger === trigger && key.hook === hook && key.call === call,
    )
    return recorded
  }

  #report({ usage, trail, votes }: PartialCalls): void {
    const run = this.#run
    run.noteTrail(trail, this.#trail.durations)
    run.spend(usage)
    const isRunning = run.hasExecution && run.state.execution?.final === undefined
    if (isRunning && votes.length > 0) run.cast(votes)
  }

  /** What calls have cost, with an estimate for those that are running. */
  #cost(except?: number): TokenUsage {
    let usage = this.#usage
    for (const [number, request] of this.#running) {
      if (number !== except) usage = addTokens(usage, estimateUsage(request))
    }
    return usage
  }

  #keyFor(kind: EffectKey['kind'], n: string): EffectKey {
    const { hook, trigger, call, place } = this.#hook
    const { effects, step } = this.#run
    return effects.keyOf({ step, kind, call, trigger, hook, n: place === undefined ? n : `${place} ${n}` })
  }

  async #send(call: InferCall, number: number): Promise<InferenceResponse> {
    const { request } = call
    const fingerprint = fingerprintRequest(request)
    const key = this.#keyFor('infer', hashJson(fingerprint))
    this.#throwIfEnded()
    const forbidden = this.#forbidden()
    if (forbidden !== undefined) throw callForbidden(forbidden)
    this.#running.set(number, request) // before the guards run: concurrent calls count each other
    const started = performance.now()
    try {
      const limit = await this.#runGuards(request, number)
      this.#throwIfEnded()
      const effect: Effect = {
        key,
        input: () => fingerprint,
      }
      const record = await this.#effects.perform<ModelCallRecord>(effect, (signal) =>
        this.#call(call, { signal, limit, number }),
      )
      return this.#applyRecord(record, { request, started })
    } catch (thrown) {
      if (thrown instanceof Unanswered || (thrown instanceof AgentError && isFatal(thrown))) this.#fatal ??= thrown
      throw thrown
    } finally {
      this.#running.delete(number)
    }
  }

  #placeOf(number: number): string {
    const { hook, trigger } = this.#hook
    return `infer ${trigger} ${hook} ${number}`
  }

  #throwIfEnded(): void {
    if (this.#trail.isClosed) throw hookEnded()
  }

  #forbidden(): ContinuationEvaluation | undefined {
    const own = this.#votes.find((vote) => vote.decision === 'forbidContinuation')
    return own ?? (this.#run.hasExecution ? this.#run.forbidden : undefined)
  }

  /** Guards see every call that a model gets, including those of hooks. Returns the time limit that they set. */
  async #runGuards(request: InferenceRequest, number: number): Promise<CallLimit | undefined> {
    const run = this.#run
    const effects = this.#effects
    const plan = run.parts.plans.of('beforeInference')
    if (plan.guards.length === 0) return undefined
    const spentWithoutThis = (): HookHost['spent'] => addUsage(run.spent, this.#cost(number))
    const host = this.#trail.hostIn(run, {
      place: this.#placeOf(number),
      get spent() {
        return spentWithoutThis()
      },
      get now() {
        return effects.now() // the clock of the hook that makes the call
      },
      spend: (usage) => void (this.#usage = addTokens(this.#usage, usage)),
    })
    const invocation = new Invocation(host, plan, this.#state(), { request })
    await runGuards(invocation, plan.guards)
    this.#votes.push(...invocation.votes)
    if (invocation.forbidden !== undefined) throw callForbidden(invocation.forbidden)
    return invocation.within && limitFromNow(invocation.within)
  }

  async #call(
    { request, tools }: InferCall,
    { signal, limit, number }: { signal: AbortSignal; limit: CallLimit | undefined; number: number },
  ): Promise<ModelCallRecord> {
    const { model, ...rest } = request
    const either = AbortSignal.any([signal, this.#hookEnded.signal])
    const inside = new Trail()
    const did = { trail: inside.entries }
    let isSent = false
    const send = (): Promise<InferenceResponse> => {
      either.throwIfAborted()
      isSent = true
      const sent = { model, request: { ...rest, tools }, signal: either, limit, number, hook: this.#hook.hook }
      return sendRequest(this.#run, sent)
    }
    try {
      const host = inside.hostIn(this.#run, { place: this.#placeOf(number), signal: either })
      const response = await this.#sendInside(host, { request, send, note: (entry) => inside.add(entry, 0) })
      return answeredRecord(response, response.usage, did)
    } catch (thrown) {
      // Whatever a hook around the call or the model throws then: the run has ended, and that is no failure of the model.
      const cause = signal.aborted ? this.#run.effects.time.error : thrown
      const isLate = isBilled(thrown)
      const wasted = signal.aborted || isLate ? estimateStarted(request, 0) : estimateUsage(request)
      const usage = isSent && (either.aborted || isLate) ? wasted : noTokens
      return failedRecord(cause, usage, did)
    }
  }

  /** Sends a request inside the hooks that wrap every model call of the run. */
  #sendInside(
    host: HookHost,
    call: {
      readonly request: InferenceRequest
      readonly send: () => Promise<InferenceResponse>
      readonly note: (entry: LedgerEntry) => void
    },
  ): Promise<InferenceResponse> {
    const { request, send, note } = call
    const plan = this.#run.parts.plans.of('aroundInference')
    const hooks = plan.arounds.filter((each) => each.inherited)
    return runAround<InferenceResponse, never>({
      hooks,
      invocation: () => new Invocation(host, plan, this.#state(), { request }),
      attempt: async () => send(),
      merge: () => undefined,
      check: (value) => value as InferenceResponse,
      note,
    })
  }

  #state(): AgentState {
    const { hasExecution, state } = this.#run
    return hasExecution ? state : withoutExecution(state)
  }

  #applyRecord(
    record: ModelCallRecord,
    call: { readonly request: InferenceRequest; readonly started: number },
  ): InferenceResponse {
    const { usage, error, trail = [] } = record
    for (const entry of trail) this.#trail.add(entry, 0)
    this.#usage = addTokens(this.#usage, usage)
    const response = responseOf(record)
    if (response !== undefined) {
      const warnings = (response.warnings ?? []).map(toWarning)
      this.#note(call, { decision: 'inferred', message: `${totalTokens(response.usage)} tokens`, warnings })
      return response
    }
    const { message } = error!
    const warnings = totalTokens(usage) === 0 ? [] : [incompleteCall]
    this.#note(call, { decision: 'inferenceFailed', message, warnings })
    const by = limitedBy(error!)
    if (by !== undefined) {
      this.#votes.push(
        Object.freeze({ decision: 'forbidContinuation', reason: 'timeLimit', message, source: by } as const),
      )
    }
    throw errorOf(error!)
  }

  #note(
    { request, started }: { readonly request: InferenceRequest; readonly started: number },
    { decision, message: what, warnings }: Noted,
  ): void {
    const { hook, mode, trigger } = this.#hook
    const message = `${nameOf(request.model)}: ${what}`
    const entry = { step: this.#run.step, trigger, hook, mode, decision, message }
    this.#trail.add({ ...entry, ...(warnings.length > 0 && { warnings }) }, performance.now() - started)
  }
}

type Noted = { readonly decision: string; readonly message: string; readonly warnings: readonly EntryWarning[] }

function hookEnded(): AgentError {
  return new AgentError('RUN_CANCELLED', 'The hook that made the call has ended.')
}

/** Before there is an execution, the state may still show an earlier one, which limits would count. */
function withoutExecution(state: AgentState): AgentState {
  return AgentState.create({ ...AgentState.fieldsOf(state), execution: undefined })
}

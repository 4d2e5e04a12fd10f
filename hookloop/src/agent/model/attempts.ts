import type { ContinuationEvaluation } from '../../state/continuation.ts'
import type { InferenceRequest, InferenceResponse, RequestChange } from '../../state/inference.ts'
import { sameJson } from '../../state/json.ts'
import type { LedgerEntry } from '../../state/ledger.ts'
import { addTokens, addUsage, noTokens, type TokenUsage } from '../../state/usage.ts'
import { AgentError, messageOf } from '../../errors.ts'
import { changeRequest } from '../../hooks/context-methods.ts'
import { runAround } from '../../hooks/run-around.ts'
import { Invocation } from '../../hooks/invocation.ts'
import { runGuards } from '../../hooks/run-hooks.ts'
import type { StackedHook } from '../../hooks/stack.ts'
import { askModel, toCheckedResponse } from './ask-model.ts'
import { nameOf } from './send-request.ts'
import { AttemptHost, forbade } from './attempt-host.ts'
import { estimateUsage } from './estimate-usage.ts'
import { fingerprintRequest } from './fingerprint-request.ts'
import type { RunContext } from '../loop/run-context.ts'
import { billed, failedRecord, withDurations, type ModelCallPlan, type ModelCallRecord } from './model-call-record.ts'
import type { TrailHost } from '../loop/trail.ts'

type Performing = { readonly key: string; readonly signal: AbortSignal }

/** A call with hooks around it, and beneath them any number of attempts. */
export class WrappedCall {
  readonly #run: RunContext
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

  constructor(run: RunContext, call: ModelCallPlan, how: Performing) {
    this.#run = run
    this.#call = call
    this.#how = how
    this.#around = new AttemptHost(run, [this.#trail, this.#durations], {
      place: run.place,
      spent: () => run.spent,
      spend: (usage) => this.#spend(usage),
      isOver: () => this.#ended,
    })
  }

  async run(hooks: readonly StackedHook[]): Promise<ModelCallRecord> {
    const plan = this.#run.parts.stack.plan('aroundInference')
    const trail = this.#trail
    const votes = this.#votes
    try {
      const chain = runAround<InferenceResponse, RequestChange>({
        hooks,
        firing: (change) => new Invocation(this.#around, plan, this.#run.state, { request: this.#changed(change) }),
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
      return withDurations({ response, error: null, usage: this.#cost(), trail, votes }, this.#durations)
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
      isOver: () => this.#ended,
    })
    const firing = new Invocation(host, plan, this.#run.state, { request })
    await runGuards(firing, plan.guards)
    const no = firing.votes.find((vote) => vote.decision === 'forbidContinuation')
    this.#votes.push(...firing.votes)
    if (no !== undefined) throw forbade(no)
  }
}

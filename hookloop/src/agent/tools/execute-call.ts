import { isJsonObject, toJson, type Json } from '../../state/json.ts'
import { redactStream, type RedactStream } from '../../state/redact-stream.ts'
import type { LedgerEntry } from '../../state/ledger.ts'
import type { ToolExecution, ToolStatus } from '../../state/tool-call.ts'
import { addTokens, noTokens, spentTokens, toTokens, type TokenUsage } from '../../state/usage.ts'
import type { Effect } from '../../effects/effects.ts'
import type { RunTime, WorkLimit } from '../../effects/run-time.ts'
import { isIncomplete, messageOf, toAgentError } from '../../errors.ts'
import { modelText } from '../../hooks/failure-text.ts'
import { Invocation } from '../../hooks/invocation.ts'
import { runAround } from '../../hooks/run-around.ts'
import type { StackedHook } from '../../hooks/stack.ts'
import { andThen, isThenable, type MaybePromise } from '../../state/thenable.ts'
import type { Redact } from '../capability.ts'
import { describeAgent } from '../describe-agent.ts'
import { limitedBy } from '../loop/time-limit.ts'
import { toToolCall, type ActiveCall, type OpenStep } from '../loop/open-step.ts'
import type { RunContext } from '../loop/run-context.ts'
import { Trail } from '../loop/trail.ts'
import type { Tool, ToolRun } from '../tool.ts'
import { failedExecution, stoppedExecution, toExecution, withheldExecution } from './result.ts'

/** How long a tool may take to clean up after its signal has aborted. */
const GRACE_MS = 1_000

export type CallToExecute = { readonly call: ActiveCall; readonly tool: Tool; readonly parsed: unknown }

/** What is recorded of a call with hooks around it. A call without them is recorded as its execution. */
type AroundRecord = { readonly execution: ToolExecution; readonly trail: readonly LedgerEntry[] }

/** The execution in a record of either form: hooks around the call may have been added or removed since it was made. */
export function executionIn(record: ToolExecution | AroundRecord): ToolExecution {
  return 'execution' in record ? record.execution : record
}

/** Runs one authorized call inside its around hooks, as one recorded effect. A failure of the tool is a result. */
export function executeCall(run: RunContext, at: CallToExecute): MaybePromise<ToolExecution> {
  const { call } = at
  const { effects, parts } = run
  call.ran = true
  const { arounds } = parts.stack.plan('aroundToolUse', call.name)
  effects.emit?.({ type: 'toolStarted', step: run.step, at: run.now, call: toToolCall(call) })
  const effect = new ToolEffect(run.open!, at)
  const isTimed = effects.emit !== undefined || parts.stack.plan('afterToolUse', call.name).observers.length > 0
  const started = isTimed ? performance.now() : 0
  const work =
    arounds.length > 0
      ? executeInsideHooks(run, at, { effect, arounds })
      : effects.perform(effect, (signal) => new StartedTool(run, at, { effect, signal }).execute())
  return isTimed ? andThen(work, withDuration, call, started) : work
}

function withDuration(execution: ToolExecution, call: ActiveCall, started: number): ToolExecution {
  call.ranMs = performance.now() - started
  return execution
}

/** A tool call as an effect. Its key is made when it is read: most runs are not recorded, and few tools use it. */
class ToolEffect implements Effect {
  readonly kind = 'tool'
  readonly #step: OpenStep
  readonly #at: CallToExecute

  constructor(step: OpenStep, at: CallToExecute) {
    this.#step = step
    this.#at = at
  }

  get key(): string {
    return `${this.#step.place}/${this.#at.call.index}/tool`
  }

  get idempotent(): boolean {
    return this.#at.tool.idempotent
  }

  input(): Json {
    return describeCall(this.#at.call)
  }

  unknown(): Json {
    return interrupted
  }
}

/** The effects port failed, not the tool: the outcome of the call is unknown, and the run must not continue. */
export function effectsFailed(thrown: unknown, run: RunContext): ToolExecution {
  const error = toAgentError(thrown, 'HOOK_FAILED')
  run.fail(error, 'aroundToolUse')
  return Object.freeze({ status: 'outcomeUnknown', output: error.message })
}

export const INTERRUPTED = 'The process ended while the tool was running. It may have had an effect.'

/** The result of a call whose process died. */
export const interrupted: ToolExecution = Object.freeze({
  status: 'outcomeUnknown',
  output: INTERRUPTED,
  interrupted: true,
})

function describeCall({ name, args }: ActiveCall): Json {
  return { name, args }
}

async function executeInsideHooks(
  run: RunContext,
  at: CallToExecute,
  { effect, arounds }: { effect: Effect; arounds: readonly StackedHook[] },
): Promise<ToolExecution> {
  const trail = new Trail()
  const record: ToolExecution | AroundRecord = await run.effects.perform<AroundRecord>(effect, (signal) =>
    new AroundTool(run, at, { effect, signal, trail }).run(arounds),
  )
  // Noted in call order, when the call is concluded.
  if ('trail' in record) at.call.trail = { entries: record.trail, durations: trail.durations }
  return executionIn(record)
}

/** A tool call with hooks around it, which may make any number of attempts. */
class AroundTool {
  readonly #run: RunContext
  readonly #at: CallToExecute
  readonly #how: Attempt & { readonly trail: Trail }
  #attempts = 0
  #running = 0
  /** The result of an attempt that had, or may have had, its effect. */
  #done: ToolExecution | undefined
  /** Ends attempts that no hook waits for any more. */
  readonly #concluded = new AbortController()
  readonly #signal: AbortSignal
  /** What all attempts and the hooks have spent. */
  #spent = noTokens

  constructor(run: RunContext, at: CallToExecute, how: Attempt & { readonly trail: Trail }) {
    this.#run = run
    this.#at = at
    this.#how = how
    this.#signal = AbortSignal.any([how.signal, this.#concluded.signal])
  }

  async run(hooks: readonly StackedHook[]): Promise<AroundRecord> {
    const execution = await this.#runHooks(hooks)
    if (this.#running > 0) this.#concluded.abort(new Error(abandonedByHook.output as string))
    return { execution: withUsage(execution, this.#spent), trail: this.#how.trail.entries }
  }

  async #runHooks(hooks: readonly StackedHook[]): Promise<ToolExecution> {
    const { call, parsed } = this.#at
    const { trail } = this.#how
    const run = this.#run
    const plan = run.parts.stack.plan('aroundToolUse', call.name)
    const host = trail.hostIn(run, { spend: (usage) => this.#spend(usage) })
    const toolCall = Object.freeze({ id: call.id, name: call.name, args: parsed })
    try {
      const chain = runAround<ToolExecution, never>({
        hooks,
        callId: call.id,
        invocation: () => new Invocation(host, plan, run.state, { toolCall }, call.index),
        attempt: () => this.#attempt(),
        merge: () => undefined,
        check: toCheckedExecution,
        note: (entry, ms) => trail.add(entry, ms),
      })
      return await run.effects.time.wait(chain, aroundLimit)
    } catch (thrown) {
      if (this.#running > 0) return endedWhileRunning(run.effects.time, thrown) ?? abandonedByHook
      const message = modelText(thrown)
      // A tool that has run is not reported as failed because a hook failed afterwards.
      if (this.#done === undefined) return failedExecution(message)
      return this.#done.status === 'ok' ? withheldExecution(this.#done, 'hookloop', message) : this.#done
    }
  }

  #spend(usage: Partial<TokenUsage>): void {
    this.#spent = addTokens(this.#spent, toTokens(usage))
  }

  async #attempt(): Promise<ToolExecution> {
    const { call } = this.#at
    if (this.#how.signal.aborted) return notStarted(this.#run.effects.time)
    const key = `${this.#how.effect.key}/${++this.#attempts}`
    this.#running++
    let isRecorded = true
    const onSpend = (usage: Partial<TokenUsage>): void => this.#spend(usage)
    const effect = { key, kind: 'tool', input: () => describeCall(call) } as const
    const execution = await this.#run.effects.scope(key).perform(effect, async () => {
      isRecorded = false
      // Counted at once: a hook may not wait for the attempt to end.
      return new StartedTool(this.#run, this.#at, { ...this.#how, signal: this.#signal, onSpend }).execute()
    })
    if (isRecorded && execution.usage !== undefined) this.#spend(execution.usage)
    this.#running--
    if (execution.status === 'ok') this.#done = execution
    if (execution.status === 'outcomeUnknown') this.#done ??= execution
    return execution
  }
}

/** The effect is that of the call: the tool gets the same idempotency key on every attempt. */
type Attempt = {
  readonly effect: Effect
  readonly signal: AbortSignal
  readonly onSpend?: (usage: Partial<TokenUsage>) => void
}

function withUsage(execution: ToolExecution, usage: TokenUsage): ToolExecution {
  return usage === noTokens ? execution : Object.freeze({ ...execution, usage })
}

/** One attempt at a call. */
class StartedTool {
  readonly #run: RunContext
  readonly #at: CallToExecute
  readonly #attempt: Attempt
  readonly #limit: ToolLimit
  #spent = noTokens
  #updates: RedactStream | undefined

  constructor(run: RunContext, at: CallToExecute, attempt: Attempt) {
    const { timeoutMs = Infinity } = at.tool
    this.#run = run
    this.#at = at
    this.#attempt = attempt
    this.#limit = timeoutMs === Infinity ? unlimited : new ToolLimit(timeoutMs)
  }

  /** What the tool gets: a plain object, so that a tool that calls another one can copy it and change a part. */
  #given(): ToolRun {
    return {
      state: this.#run.state,
      idempotencyKey: this.#attempt.effect.key,
      signal: this.#limit.signalWith(this.#attempt.signal),
      progress: (update) => this.#progress(update),
      spend: (usage) => this.#spend(spentTokens(usage)),
      describe: () => describeAgent(this.#run.parts),
    }
  }

  #spend(usage: Partial<TokenUsage>): void {
    this.#spent = addTokens(this.#spent, toTokens(usage))
    this.#attempt.onSpend?.(usage)
  }

  #progress(update: unknown): void {
    const { step, parts, effects } = this.#run
    const { emit } = effects
    if (emit === undefined) return
    const callId = this.#at.call.id
    this.#updates ??= redactStream(parts.redact, (shown) =>
      emit({
        type: 'toolProgress',
        step,
        at: effects.time.clockTime(effects.now()),
        callId,
        update: toShown(shown, parts.redact),
      }),
    )
    this.#updates.write(toShown(update))
  }

  execute(): MaybePromise<ToolExecution> {
    const { tool, parsed } = this.#at
    const { time } = this.#run.effects
    if (this.#attempt.signal.aborted) return notStarted(time)
    try {
      const returned = tool.execute(parsed as never, this.#given())
      if (!isThenable(returned)) return this.#end(returned)
      return time.wait(returned, this.#limit).then(
        (value) => this.#end(value),
        (thrown: unknown) => this.#fail(thrown),
      )
    } catch (thrown) {
      return this.#fail(thrown)
    }
  }

  #end(value: unknown): ToolExecution {
    this.#updates?.end()
    const shape = { maxChars: this.#at.tool.maxOutputChars, redact: this.#run.parts.redact }
    return withUsage(toExecution(value, shape), this.#spent)
  }

  #fail(thrown: unknown): ToolExecution {
    this.#updates?.end()
    const { effects, parts } = this.#run
    const { timeoutMs, maxOutputChars } = this.#at.tool
    if (isIncomplete(thrown)) this.#run.fail(thrown, 'aroundToolUse')
    const ended = endedWhileRunning(effects.time, thrown)
    if (ended !== undefined) return withUsage(ended, this.#spent)
    if (this.#limit.isExceeded) {
      const message = `The tool did not end within ${timeoutMs} ms and was aborted. It may have had an effect.`
      return withUsage(failedExecution(message), this.#spent)
    }
    const message = messageOf(thrown)
    const shown = parts.redact === undefined ? message : (parts.redact(message) as string)
    return withUsage(failedExecution(shown, maxOutputChars), this.#spent)
  }
}

/** Thrown for a tool that did not stop when its signal aborted: it may still be running. */
class LeftBehind extends Error {}

/** The limits of a tool. After its signal has aborted it has a moment to clean up; an answer within that time counts. */
class ToolLimit implements WorkLimit {
  readonly ms: number
  isExceeded = false
  #controller: AbortController | undefined

  constructor(ms: number) {
    this.ms = ms
  }

  signalWith(run: AbortSignal): AbortSignal {
    if (this.ms === Infinity) return run
    this.#controller = new AbortController()
    return AbortSignal.any([run, this.#controller.signal])
  }

  abort(): number {
    this.isExceeded = true
    this.#controller?.abort(new Error(`no answer within ${this.ms} ms`))
    return GRACE_MS
  }

  graceMs(): number {
    return GRACE_MS
  }

  leave(): Error {
    return new LeftBehind('the tool did not stop when its signal aborted')
  }
}

/** It has no state: only a limit of its own is ever exceeded. */
const unlimited = new ToolLimit(Infinity)

/** The limits of a tool with hooks around it: the tool inside has its own. */
const aroundLimit: WorkLimit = {
  ms: Infinity,
  abort: () => 0,
  graceMs: () => GRACE_MS + 250,
  leave: () => new LeftBehind(HOOKS_LEFT),
}

/** The result of a call whose hooks did not stop at the end of the run. */
export const HOOKS_LEFT = 'The hooks around the tool did not stop when the run ended.'

/** Progress as JSON. A value that cannot be converted must not break the tool. */
function toShown(update: unknown, redact?: Redact): Json {
  try {
    return redact === undefined ? toJson(update) : redact(toJson(update))
  } catch (error) {
    return messageOf(error)
  }
}

const cancelledWhileRunning: ToolExecution = Object.freeze({
  status: 'outcomeUnknown',
  output: 'The run was cancelled while the tool was running. It may have had an effect.',
})
const OUT_OF_TIME = 'The run reached its time limit while the tool was running. It may have had an effect'
const abortedByLimit: ToolExecution = Object.freeze({ status: 'outcomeUnknown', output: `${OUT_OF_TIME}.` })
/** The result of a tool that did not stop at the time limit of the run. */
export const leftByLimit: ToolExecution = Object.freeze({
  status: 'outcomeUnknown',
  output: `${OUT_OF_TIME}, and may still be running: it did not stop within ${GRACE_MS} ms.`,
})
const abandonedByHook: ToolExecution = Object.freeze({
  status: 'outcomeUnknown',
  output: 'A hook stopped waiting while the tool was running. It may have had an effect.',
})

/** The result of a tool that failed because the run must end, if that is why. */
function endedWhileRunning({ end }: RunTime, thrown: unknown): ToolExecution | undefined {
  if (end === undefined) return undefined
  if (end === 'cancel') return cancelledWhileRunning
  return thrown instanceof LeftBehind ? leftByLimit : abortedByLimit
}

/** The result of a tool that was not started because the run must end. */
function notStarted({ error }: RunTime): ToolExecution {
  return stoppedExecution({ source: limitedBy(error) ?? 'signal', message: error.message })
}

const statuses: readonly ToolStatus[] = ['ok', 'failed', 'blocked', 'outcomeUnknown']

/** What an around hook returned, as an execution: from `next`, or its own. Undefined if it is not one. */
function toCheckedExecution(value: unknown): ToolExecution | undefined {
  const copy = toJson(value)
  if (!isJsonObject(copy) || !statuses.includes(copy['status'] as ToolStatus) || copy['output'] === undefined)
    return undefined
  // The usage of attempts is counted already, and a hook cannot mark a call as interrupted.
  const { usage: _counted, interrupted: _not, ...execution } = copy as ToolExecution
  return execution
}

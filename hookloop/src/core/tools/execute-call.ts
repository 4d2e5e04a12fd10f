import { isJsonObject, textOfJson, toJson, type Json } from '../../values/json.ts'
import { redactStream, type RedactStream } from '../../values/redact-stream.ts'
import type { LedgerEntry } from '../state/ledger.ts'
import { namedExecution, withheldExecution, type ToolExecution, type ToolStatus } from '../state/tool-call.ts'
import { addTokens, noTokens, spentTokens, toTokens, type TokenUsage } from '../state/usage.ts'
import { passes, type Effect } from '../effects/journal.ts'
import { limitedBy, type RunTime, type WorkLimit } from '../effects/run-time.ts'
import { isIncomplete, messageOf } from '../../errors.ts'
import { modelText } from '../hooks/failure-text.ts'
import { Trail } from '../hooks/hook-host.ts'
import { Invocation } from '../hooks/invocation.ts'
import { runAround } from '../hooks/run-around.ts'
import type { PlannedHook } from '../hooks/hook-plans.ts'
import { isThenable } from '../../values/thenable.ts'
import type { Redact } from '../agent/capability.ts'
import { describeAgent } from '../agent/describe-agent.ts'
import { toToolCall, type ActiveCall } from '../context/open-step.ts'
import type { RunContext } from '../context/run-context.ts'
import type { Tool, ToolRun } from '../agent/tool.ts'
import { mayRepeat, type Judged } from './judge-call.ts'
import { failedExecution, stoppedExecution, toExecution } from './result.ts'

/** How long a tool may take to clean up after its signal has aborted. */
const GRACE_MS = 1_000

type CallToExecute = {
  readonly call: ActiveCall
  readonly tool: Tool
  readonly parsed: unknown
  /** Whether it ran before, in a process that died. */
  readonly isAgain: boolean
}

/** What is recorded of a call with hooks around it. A call without them is recorded as its execution. */
type AroundRecord = { readonly execution: ToolExecution; readonly trail: readonly LedgerEntry[] }

/** The execution in a record of either form: hooks around the call may have been added or removed since it was made. */
export function executionIn(record: ToolExecution | AroundRecord): ToolExecution {
  return 'execution' in record ? record.execution : record
}

/** A call whose process died, and why it does not run again: a guard is against it, or the run stops. */
type Lost = { readonly why: ToolExecution | undefined }

/**
 * Runs a call inside its around hooks, as one recorded effect, or returns what is recorded of it. A failure of the tool is a
 * result. A call whose process died runs again only if it may and is idempotent, or if an approver has said so.
 */
export async function toolCall(run: RunContext, judged: Judged, lost?: Lost): Promise<ToolExecution> {
  const { call, tool, parsed, begun, interruptions } = judged
  const { effects, parts } = run
  const last = Number(begun?.last.key.n ?? 0)
  const isAgain = lost !== undefined && lost.why === undefined && interruptions !== undefined
  const canRepeat = begun !== undefined && (mayRepeat(tool, begun) || interruptions !== undefined)
  const repeats = lost !== undefined && lost.why === undefined && canRepeat
  const left = lost?.why !== undefined && canRepeat ? unknownOutcome(lost.why) : interrupted
  const effect: Effect = {
    key: { step: run.step, kind: 'tool', call: call.id, n: isAgain ? last + 1 : last },
    input: () => ({ name: call.name, args: call.args }),
    idempotent: tool?.idempotent === true,
    unknown: lost !== undefined && !repeats ? () => left : undefined,
  }
  const { arounds } = parts.plans.of('aroundToolUse', call.name)
  if (begun === undefined || repeats)
    effects.emit?.({ type: 'toolStarted', step: run.step, at: run.now, call: toToolCall(call) })
  const started = performance.now()
  let isRecorded = true
  const trail = new Trail()
  const record = await effects.perform<ToolExecution | AroundRecord>(effect, async (signal) => {
    isRecorded = false
    const at = { call, tool: tool!, parsed, isAgain: lost !== undefined }
    const attempt = { key: idempotencyKey(run, call), signal }
    if (arounds.length === 0) return namedExecution(await new StartedTool(run, at, attempt).execute(), call.name)
    return new AroundTool(run, at, { ...attempt, n: effect.key.n, trail }).run(arounds)
  })
  if (!isRecorded) call.ranMs = performance.now() - started
  // Noted in call order, when the call is concluded.
  if ('trail' in record) call.trail = { entries: record.trail, durations: trail.durations }
  return executionIn(record)
}

/** The same for every attempt at a call, in every process. */
function idempotencyKey(run: RunContext, call: ActiveCall): string {
  return `${run.effects.run}/${run.step}/${call.id}`
}

export const INTERRUPTED = 'The process ended while the tool was running. It may have had an effect.'

/** The result of a call whose process died. */
const interrupted: ToolExecution = Object.freeze({ status: 'outcomeUnknown', output: INTERRUPTED, interrupted: true })

/** The result of an interrupted call that was not run again: it may have had an effect, whatever prevented the second run. */
export function unknownOutcome({ output, by }: ToolExecution): ToolExecution {
  const text = `${INTERRUPTED} It was not run again: ${textOfJson(output)}`
  return Object.freeze({ ...interrupted, output: text, ...(by !== undefined && { by }) })
}

/** A tool call with hooks around it, which may make any number of attempts. */
class AroundTool {
  readonly #run: RunContext
  readonly #at: CallToExecute
  readonly #options: Attempt & { readonly trail: Trail; readonly n: number | string }
  #attempts = 0
  #running = 0
  /** The result of an attempt that had, or may have had, its effect. */
  #done: ToolExecution | undefined
  /** Ends attempts that no hook waits for any more. */
  readonly #concluded = new AbortController()
  readonly #signal: AbortSignal
  /** What all attempts and the hooks have spent. */
  #spent = noTokens

  constructor(
    run: RunContext,
    at: CallToExecute,
    options: Attempt & { readonly trail: Trail; readonly n: number | string },
  ) {
    this.#run = run
    this.#at = at
    this.#options = options
    this.#signal = AbortSignal.any([options.signal, this.#concluded.signal])
  }

  async run(hooks: readonly PlannedHook[]): Promise<AroundRecord> {
    const execution = await this.#runHooks(hooks)
    if (this.#running > 0) this.#concluded.abort(new Error(abandonedByHook.output as string))
    const named = namedExecution(withUsage(execution, this.#spent), this.#at.call.name)
    return { execution: named, trail: this.#options.trail.entries }
  }

  async #runHooks(hooks: readonly PlannedHook[]): Promise<ToolExecution> {
    const { call, parsed } = this.#at
    const { trail } = this.#options
    const run = this.#run
    const plan = run.parts.plans.of('aroundToolUse', call.name)
    const host = trail.hostIn(run, { spend: (usage) => this.#spend(usage) })
    const toolCall = Object.freeze({ id: call.id, name: call.name, args: parsed })
    try {
      const chain = runAround<ToolExecution, never>({
        hooks,
        callId: call.id,
        invocation: () => new Invocation(host, plan, run.state, { toolCall }, call.id),
        attempt: () => this.#attempt(),
        merge: () => undefined,
        check: toCheckedExecution,
        note: (entry, ms) => trail.add(entry, ms),
      })
      return await run.effects.time.wait(chain, aroundLimit)
    } catch (thrown) {
      if (passes(thrown)) throw thrown
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
    const { call, isAgain } = this.#at
    if (this.#options.signal.aborted) return notStarted(this.#run.effects.time, isAgain)
    this.#running++
    let isRecorded = true
    const onSpend = (usage: Partial<TokenUsage>): void => this.#spend(usage)
    const n = `${this.#options.n}.${++this.#attempts}`
    const effect: Effect = {
      key: { step: this.#run.step, kind: 'attempt', call: call.id, n },
      input: () => ({ name: call.name, args: call.args }),
    }
    const execution = await this.#run.effects.scope().perform(effect, async () => {
      isRecorded = false
      // Counted at once: a hook may not wait for the attempt to end.
      return new StartedTool(this.#run, this.#at, { ...this.#options, signal: this.#signal, onSpend }).execute()
    })
    if (isRecorded && execution.usage !== undefined) this.#spend(execution.usage)
    this.#running--
    if (execution.status === 'ok') this.#done = execution
    if (execution.status === 'outcomeUnknown') this.#done ??= execution
    return execution
  }
}

/** One attempt. The tool gets the same idempotency key on every attempt. */
type Attempt = {
  /** Its idempotency key. */
  readonly key: string
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
      idempotencyKey: this.#attempt.key,
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
        at: effects.clockTime(),
        callId,
        update: toShown(shown, parts.redact),
      }),
    )
    this.#updates.write(toShown(update))
  }

  async execute(): Promise<ToolExecution> {
    const { tool, parsed } = this.#at
    const { time } = this.#run.effects
    if (this.#attempt.signal.aborted) return notStarted(time, this.#at.isAgain)
    try {
      const returned = tool.execute(parsed as never, this.#given())
      return this.#end(isThenable(returned) ? await time.wait(returned, this.#limit) : returned)
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
function notStarted({ error }: RunTime, isAgain: boolean): ToolExecution {
  const stopped = stoppedExecution({ source: limitedBy(error) ?? 'signal', message: error.message })
  return isAgain ? unknownOutcome(stopped) : stopped
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

import { describeValue } from '../../values/describe-value.ts'
import { isJsonObject, textOfJson, toJson, toSizedJson, type Json } from '../../values/json.ts'
import { redactStream, type RedactStream } from '../../values/redact-stream.ts'
import type { LedgerEntry } from '../state/ledger.ts'
import {
  failedExecution,
  namedExecution,
  shortenOutput,
  stoppedExecution,
  withheldExecution,
  type ToolExecution,
  type ToolStatus,
} from '../state/tool-call.ts'
import { addTokens, noTokens, spentTokens, toTokens, type TokenUsage } from '../state/usage.ts'
import { passes } from '../effects/journal.ts'
import { limitedBy, type RunTime, type WorkLimit } from '../effects/run-time.ts'
import { messageOf } from '../../errors.ts'
import { modelText } from '../hooks/failure-text.ts'
import { Trail } from '../hooks/hook-host.ts'
import { Invocation } from '../hooks/invocation.ts'
import { runAround } from '../hooks/run-around.ts'
import { isThenable } from '../../values/thenable.ts'
import type { Redact } from '../agent/capability.ts'
import { describeAgent } from '../agent/describe-agent.ts'
import { toToolCall, type ActiveCall } from '../context/open-step.ts'
import type { RunContext } from '../context/run-context.ts'
import type { Tool, ToolRun } from '../agent/tool.ts'
import type { Judged } from './judge-call.ts'

/** How long a tool may take to clean up after its signal has aborted. */
const GRACE_MS = 1_000

/** What is recorded of a call with hooks around it. A call without them is recorded as its execution. */
type AroundRecord = { readonly execution: ToolExecution; readonly trail: readonly LedgerEntry[] }

/** The number of the attempt, in any process; and the end of one whose process died, if it does not run again. */
type Attempt = { readonly n?: number; readonly unknown?: ToolExecution | undefined }

/**
 * Runs a call inside its around hooks, as one recorded effect, or returns what is recorded of it. A failure of the tool is a
 * result.
 */
export async function toolCall(
  run: RunContext,
  { call, tool, parsed, begun }: Judged,
  { n = 0, unknown }: Attempt = {},
): Promise<ToolExecution> {
  const { effects } = run
  const isAgain = begun !== undefined && begun.last.end === undefined
  const input = (): Json => ({ name: call.name, args: call.args })
  if (begun === undefined || (isAgain && unknown === undefined))
    effects.emit?.({ type: 'toolStarted', step: run.step, at: run.now, call: toToolCall(call) })
  const effect = {
    key: { step: run.step, kind: 'tool', call: call.id, n },
    input,
    idempotent: tool?.idempotent === true,
    unknown: unknown && (() => unknown),
  } as const
  const trail = new Trail()
  const record = await effects.perform<ToolExecution | AroundRecord>(effect, async (signal) => {
    const started = performance.now()
    const running: RunningCall = { call, tool: tool!, parsed, isAgain, signal }
    const hasArounds = run.parts.plans.of('aroundToolUse', call.name).arounds.length > 0
    const work = hasArounds ? runArounds(run, { ...running, n, trail }) : runTool(run, running)
    const execution = namedExecution(await work, call.name)
    call.ranMs = performance.now() - started
    return hasArounds ? { execution, trail: trail.entries } : execution
  })
  if (!('execution' in record)) return record // hooks around the call may have been added or removed since
  call.trail = { entries: record.trail, durations: trail.durations } // noted in call order, when the call is concluded
  return record.execution
}

const INTERRUPTED = 'The process ended while the tool was running. It may have had an effect.'

/** The result of a call whose process died. */
export const interrupted: ToolExecution = Object.freeze({
  status: 'outcomeUnknown',
  output: INTERRUPTED,
  interrupted: true,
})

/** The result of an interrupted call that was not run again: it may have had an effect, whatever prevented the second run. */
export function unknownOutcome({ output, by }: ToolExecution): ToolExecution {
  const text = `${INTERRUPTED} It was not run again: ${textOfJson(output)}`
  return Object.freeze({ ...interrupted, output: text, ...(by !== undefined && { by }) })
}

type RunningCall = {
  readonly call: ActiveCall
  readonly tool: Tool
  readonly parsed: unknown
  /** Whether it ran before, in a process that died. */
  readonly isAgain: boolean
  readonly signal: AbortSignal
}

/** Runs a tool inside its around hooks, which may make any number of attempts. */
async function runArounds(
  run: RunContext,
  running: RunningCall & { readonly n: number; readonly trail: Trail },
): Promise<ToolExecution> {
  const { call, parsed, n, trail } = running
  const { effects, parts } = run
  const plan = parts.plans.of('aroundToolUse', call.name)
  const toolCall = Object.freeze({ id: call.id, name: call.name, args: parsed })
  const abandoned = new AbortController() // ends attempts that no hook waits for any more
  const signal = AbortSignal.any([running.signal, abandoned.signal])
  let [spent, attempts, open]: [TokenUsage, number, number] = [noTokens, 0, 0]
  let done: ToolExecution | undefined // the result of an attempt that had, or may have had, its effect
  const spend = (usage: Partial<TokenUsage>): void => void (spent = addTokens(spent, toTokens(usage)))
  const host = trail.hostIn(run, { spend })
  const attempt = async (): Promise<ToolExecution> => {
    if (running.signal.aborted) return notStarted(effects.time, running.isAgain)
    const key = { step: run.step, kind: 'attempt', call: call.id, n: `${n}.${++attempts}` } as const
    const input = (): Json => ({ name: call.name, args: call.args })
    open++
    let isRecorded = true
    const execution = await effects.scope().perform({ key, input }, () => {
      isRecorded = false
      return runTool(run, { ...running, signal }, spend) // counted at once: a hook may not wait for the attempt to end
    })
    if (isRecorded && execution.usage !== undefined) spend(execution.usage)
    open--
    if (execution.status === 'ok') done = execution
    if (execution.status === 'outcomeUnknown') done ??= execution
    return execution
  }
  const failed = (thrown: unknown): ToolExecution => {
    if (passes(thrown)) throw thrown
    if (open > 0) return endedWhileRunning(effects.time, thrown) ?? abandonedByHook
    // A tool that has run is not reported as failed because a hook failed afterwards.
    const message = modelText(thrown)
    if (done === undefined) return failedExecution(message)
    return done.status === 'ok' ? withheldExecution(done, 'hookloop', message) : done
  }
  const chain = runAround<ToolExecution, never>({
    hooks: plan.arounds,
    callId: call.id,
    invocation: () => new Invocation(host, plan, run.state, { toolCall }, call.id),
    attempt,
    merge: () => undefined,
    check: toCheckedExecution,
    note: (entry, ms) => trail.add(entry, ms),
  })
  const execution = await effects.time.wait(chain, aroundLimit).catch(failed)
  if (open > 0) abandoned.abort(new Error(abandonedByHook.output as string))
  return withUsage(execution, spent)
}

function withUsage(execution: ToolExecution, usage: TokenUsage): ToolExecution {
  return usage === noTokens ? execution : Object.freeze({ ...execution, usage })
}

/** One attempt at a call. The tool gets the same idempotency key on every attempt, in every process. */
async function runTool(
  run: RunContext,
  { call, tool, parsed, isAgain, signal }: RunningCall,
  onSpend?: (usage: Partial<TokenUsage>) => void,
): Promise<ToolExecution> {
  const { effects, parts } = run
  const { time } = effects
  if (signal.aborted) return notStarted(time, isAgain)
  const limit = tool.timeoutMs === undefined ? unlimited : new ToolLimit(tool.timeoutMs)
  const shown = redactedProgress(run, call)
  let spent = noTokens
  // A plain object, so that a tool that calls another one can copy it and change a part.
  const given: ToolRun = {
    state: run.state,
    idempotencyKey: `${effects.run}/${run.step}/${call.id}`,
    signal: limit.signalWith(signal),
    progress: (update) => shown?.write(toShown(update)),
    spend: (usage) => {
      const tokens = toTokens(spentTokens(usage))
      spent = addTokens(spent, tokens)
      onSpend?.(tokens)
    },
    describe: () => describeAgent(parts),
  }
  let execution: ToolExecution
  try {
    const returned = tool.execute(parsed as never, given)
    const value: unknown = isThenable(returned) ? await time.wait(returned, limit) : returned
    execution = toExecution(value, { maxChars: tool.maxOutputChars, redact: parts.redact })
  } catch (thrown) {
    execution = endedWhileRunning(time, thrown) ?? limit.exceeded() ?? failedTool(parts, tool, thrown)
  }
  shown?.end()
  return withUsage(execution, spent)
}

function failedTool({ redact }: RunContext['parts'], { maxOutputChars }: Tool, thrown: unknown): ToolExecution {
  const message = messageOf(thrown)
  return failedExecution(redact === undefined ? message : (redact(message) as string), maxOutputChars)
}

/** Emits progress, once secrets in it can be recognized. Undefined if nothing listens. */
function redactedProgress({ step, parts, effects }: RunContext, { id: callId }: ActiveCall): RedactStream | undefined {
  const { emit } = effects
  return (
    emit &&
    redactStream(parts.redact, (update) =>
      emit({ type: 'toolProgress', step, at: effects.clockTime(), callId, update: toShown(update, parts.redact) }),
    )
  )
}

/** Thrown for a tool that did not stop when its signal aborted: it may still be running. */
class LeftBehind extends Error {}

/** The limits of a tool. After its signal has aborted it has a moment to clean up; an answer within that time counts. */
class ToolLimit implements WorkLimit {
  readonly ms: number
  #isExceeded = false
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
    this.#isExceeded = true
    this.#controller?.abort(new Error(`no answer within ${this.ms} ms`))
    return GRACE_MS
  }

  graceMs(): number {
    return GRACE_MS
  }

  leave(): Error {
    return new LeftBehind('the tool did not stop when its signal aborted')
  }

  /** The result of a tool that was aborted, if it was. */
  exceeded(): ToolExecution | undefined {
    if (!this.#isExceeded) return undefined
    return failedExecution(`The tool did not end within ${this.ms} ms and was aborted. It may have had an effect.`)
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

/** What the model gets when a tool returned nothing. */
export const noOutput = '(no output)'

/** What a tool returned, as the model gets it: JSON of limited size, and never empty. */
export function toExecution(
  value: unknown,
  { maxChars, redact }: { readonly maxChars: number; readonly redact: Redact | undefined },
): ToolExecution {
  if (value === undefined) return Object.freeze({ status: 'ok', output: noOutput })
  if (value instanceof Error)
    return failedExecution(redact === undefined ? value.message : (redact(value.message) as string), maxChars)
  if (typeof value === 'function' || typeof value === 'symbol')
    return failedExecution(`The tool ran, but its result is ${describeValue(value)}, which is not JSON.`)
  if (redact !== undefined) return redacted(value, maxChars, redact)
  if (typeof value === 'string') return capped(value, value, maxChars)
  if (typeof value === 'number' || typeof value === 'boolean')
    return Object.freeze({ status: 'ok', output: toJson(value) })
  try {
    const { json, size } = toSizedJson(value)
    // The size is an estimate, never less than an eighth of the text: only a value that may be too long is serialized.
    return size * 8 <= maxChars
      ? Object.freeze({ status: 'ok', output: json })
      : capped(json, JSON.stringify(json), maxChars)
  } catch (error) {
    return failedExecution(`The tool ran, but its result cannot be converted to JSON. ${messageOf(error)}`)
  }
}

/** Redacts before truncating: half of a secret is not recognized. */
function redacted(value: unknown, maxChars: number, redact: Redact): ToolExecution {
  try {
    const output = toJson(redact(toJson(value)))
    return capped(output, textOfJson(output), maxChars)
  } catch (error) {
    return failedExecution(`The tool ran, but its result cannot be converted to JSON. ${messageOf(error)}`)
  }
}

function capped(output: ToolExecution['output'], text: string, maxChars: number): ToolExecution {
  if (text.length <= maxChars) return Object.freeze({ status: 'ok', output })
  return Object.freeze({ status: 'ok', output: shortenOutput(text, maxChars), truncated: true })
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

import { isJsonObject, toJson, type Json } from '../../state/json.ts'
import type { LedgerEntry } from '../../state/ledger.ts'
import type { ToolExecution, ToolStatus } from '../../state/tool-call.ts'
import { addTokens, noTokens, toTokens, type TokenUsage } from '../../state/usage.ts'
import type { Effect } from '../../effects/effects.ts'
import { MAX_TIMER_MS } from '../../system/timeout.ts'
import { messageOf, toAgentError } from '../../errors.ts'
import { runAround } from '../../hooks/run-around.ts'
import { Invocation } from '../../hooks/invocation.ts'
import { isThenable } from '../../hooks/run-hooks.ts'
import type { StackedHook } from '../../hooks/stack.ts'
import type { Redact } from '../capability.ts'
import { describeAgent } from '../describe-agent.ts'
import type { RunContext } from '../loop/run-context.ts'
import { toToolCall, type ActiveCall } from '../loop/open-step.ts'
import type { Tool, ToolRun } from '../tool.ts'
import { TrailHost } from '../loop/trail.ts'
import { failedExecution, stoppedExecution, toExecution, withheldExecution } from './result.ts'

/** How long a tool may take to clean up after it was told to stop. */
const GRACE_MS = 1_000

export type Place = { readonly call: ActiveCall; readonly tool: Tool; readonly parsed: unknown }

/** What is recorded of a call with hooks around it. One without them is recorded as its execution alone. */
type WrappedRecord = { readonly execution: ToolExecution; readonly trail: readonly LedgerEntry[] }

/** Runs one admitted call inside its around hooks, as one recorded effect. A failure of the tool is a result. */
export function executeCall(run: RunContext, at: Place): ToolExecution | Promise<ToolExecution> {
  const { call } = at
  const { effects } = run
  call.ran = true
  const key = `${run.place}/${call.index}/tool`
  const { arounds } = run.parts.stack.plan('aroundToolUse', call.name)
  run.effects.emit?.({ type: 'toolStarted', step: run.step, call: toToolCall(call) })
  const unknown = at.tool.idempotent ? undefined : wasInterrupted // a tool that may be done again is
  const effect: Effect = { key, kind: 'tool', input: () => describeCall(call), unknown }
  const isWatched =
    run.effects.emit !== undefined || run.parts.stack.plan('afterToolUse', call.name).observers.length > 0
  const started = isWatched ? performance.now() : undefined
  const work =
    arounds.length > 0
      ? executeWrapped(run, at, { effect, arounds })
      : effects.perform(effect, (signal) => execute(run, at, { key, signal }))
  return started === undefined ? work : timed(call, work, started)
}

/** Notes how long a call ran, for those who watch. */
function timed(call: ActiveCall, work: ToolExecution | Promise<ToolExecution>, started: number): typeof work {
  const note = (): void => {
    call.ranMs = performance.now() - started
  }
  if (work instanceof Promise) return work.finally(note)
  note()
  return work
}

/** The tool cannot make a call reject, only the port can: nobody knows what was done, and the run must not go on. */
export function portFailed(run: RunContext, thrown: unknown): ToolExecution {
  const error = toAgentError(thrown, 'HOOK_FAILED')
  run.fail(error, 'aroundToolUse')
  return Object.freeze({ status: 'outcomeUnknown', output: error.message })
}

export const INTERRUPTED = 'The process ended while the tool was running. It may have had an effect.'

/** What is known of a call whose process died. */
export const interrupted: ToolExecution = Object.freeze({
  status: 'outcomeUnknown',
  output: INTERRUPTED,
  interrupted: true,
})

/** What to go on with after a crash in the middle of a call. */
function wasInterrupted(): ToolExecution {
  return interrupted
}

function wasInterruptedInside(): WrappedRecord {
  return { execution: interrupted, trail: [] }
}

function describeCall({ name, args }: ActiveCall): Json {
  return { name, args }
}

async function executeWrapped(
  run: RunContext,
  at: Place,
  { effect, arounds }: { effect: Effect; arounds: readonly StackedHook[] },
): Promise<ToolExecution> {
  const durations: number[] = []
  const unknown = effect.unknown && wasInterruptedInside
  const record = await run.effects.perform({ ...effect, unknown }, (signal) =>
    new WrappedTool(run, at, { key: effect.key, signal, durations }).run(arounds),
  )
  at.call.trail = { entries: record.trail, durations } // told in call order, when the call is concluded
  return record.execution
}

/** A call with hooks around it, and beneath them any number of attempts. */
class WrappedTool {
  readonly #run: RunContext
  readonly #at: Place
  readonly #how: { readonly key: string; readonly signal: AbortSignal; readonly durations: number[] }
  readonly #trail: LedgerEntry[] = []
  #attempts = 0
  #running = 0
  #succeeded: ToolExecution | undefined
  #spent = noTokens
  /** The run as the hooks around the call see it. */
  readonly #around: TrailHost

  constructor(run: RunContext, at: Place, how: { key: string; signal: AbortSignal; durations: number[] }) {
    this.#run = run
    this.#around = new TrailHost(run, [], [])
    this.#at = at
    this.#how = how
  }

  /** What was spent is that of all attempts, whatever the hooks made of them. */
  async run(hooks: readonly StackedHook[]): Promise<WrappedRecord> {
    const { execution, trail } = await this.#wrap(hooks)
    const { spentByHooks } = this.#around
    const spent = spentByHooks === noTokens ? this.#spent : addTokens(this.#spent, spentByHooks)
    return { execution: withUsage(execution, spent), trail }
  }

  async #wrap(hooks: readonly StackedHook[]): Promise<WrappedRecord> {
    const { call, parsed } = this.#at
    const run = this.#run
    const plan = run.parts.stack.plan('aroundToolUse', call.name)
    const toolCall = Object.freeze({ id: call.id, name: call.name, args: parsed })
    try {
      const chain = runAround<ToolExecution, never>({
        hooks,
        callId: call.id,
        firing: () => new Invocation(this.#around, plan, run.state, { toolCall }, call.index),
        attempt: () => this.#attempt(),
        merge: () => undefined,
        check: toCheckedExecution,
        note: (entry, ms) => {
          this.#trail.push(entry)
          this.#how.durations.push(ms)
        },
      })
      const execution = await run.outstanding.abortable(chain).catch(async (thrown: unknown) => {
        if (!this.#how.signal.aborted) throw thrown
        return withGrace(chain, GRACE_MS + 250) // the tool inside has its own
      })
      return { execution, trail: this.#trail }
    } catch (thrown) {
      if (this.#running > 0) return { execution: this.#how.signal.aborted ? cutOff : left, trail: this.#trail }
      const message = messageOf(thrown)
      const done = this.#succeeded // what ran, ran: it may not look as if it had not
      return {
        execution: done ? withheldExecution(done, 'hookloop', message) : failedExecution(message),
        trail: this.#trail,
      }
    }
  }

  #spend(usage: Partial<TokenUsage>): void {
    this.#spent = addTokens(this.#spent, toTokens(usage)) // as it goes: nobody may wait for the attempt to end
  }

  async #attempt(): Promise<ToolExecution> {
    const { call } = this.#at
    const { effects } = this.#run
    if (this.#how.signal.aborted) return stoppedExecution(cancelledBy) // cancelled by a hook on the way here
    const key = `${this.#how.key}/${++this.#attempts}`
    this.#running++
    let spent: TokenUsage | undefined
    const execution = await effects
      .scope(key)
      .perform({ key, kind: 'tool', input: () => describeCall(call) }, async () => {
        spent = noTokens
        const spend = (usage: Partial<TokenUsage>): void => {
          spent = addTokens(spent!, toTokens(usage))
          this.#spend(usage)
        }
        return withUsage(await start(this.#run, this.#at, { ...this.#how, spend }), spent)
      })
    if (spent === undefined && execution.usage !== undefined) this.#spend(execution.usage) // by a process that is gone
    this.#running--
    if (execution.status === 'ok') this.#succeeded = execution
    return execution
  }
}

type Attempt = { readonly key: string; readonly signal: AbortSignal }

/** One attempt, with what the tool spent on the way. */
function execute(run: RunContext, at: Place, { key, signal }: Attempt): ToolExecution | Promise<ToolExecution> {
  let spent = noTokens
  const result = start(run, at, { key, signal, spend: (usage) => (spent = addTokens(spent, toTokens(usage))) })
  if (result instanceof Promise) return result.then((execution) => withUsage(execution, spent))
  return withUsage(result, spent)
}

function withUsage(execution: ToolExecution, usage: TokenUsage): ToolExecution {
  return usage === noTokens ? execution : Object.freeze({ ...execution, usage })
}

type Started = Attempt & { readonly spend: ToolRun['spend'] }

/** One attempt. The key is that of the call, so that whatever must happen once can tell that it is the same. */
function start(run: RunContext, at: Place, { key, signal, spend }: Started): ToolExecution | Promise<ToolExecution> {
  const { tool, parsed, call } = at
  const { redact } = run.parts
  const shape = { maxChars: tool.maxOutputChars, redact }
  if (signal.aborted) return stoppedExecution(cancelledBy)
  const limit =
    tool.timeoutMs === undefined || tool.timeoutMs === Infinity ? undefined : new TimeLimit(tool.timeoutMs, signal)
  const toolRun: ToolRun = {
    signal: limit?.signal ?? signal,
    idempotencyKey: key,
    state: run.state,
    spend,
    describe: () => describeAgent(run.parts),
    progress: (update) =>
      run.effects.emit?.({ type: 'toolProgress', step: run.step, callId: call.id, update: shown(update, redact) }),
  }
  try {
    const returned = tool.execute(parsed as never, toolRun)
    if (!isThenable(returned)) {
      limit?.clear()
      return toExecution(returned, shape)
    }
    return inTime(run, Promise.resolve(returned), { toolRun, limit })
      .then(
        (value) => toExecution(value, shape),
        (thrown: unknown) => failure(tool, { thrown, signal, limit, redact }),
      )
      .finally(() => limit?.clear())
  } catch (thrown) {
    limit?.clear()
    return failure(tool, { thrown, signal, limit, redact })
  }
}

/**
 * The signal of a tool that has a time limit. Its timer keeps the process alive until it has fired or is not needed any
 * more, and nothing is left on the run's signal, which may live as long as the process.
 */
class TimeLimit {
  isOver = false
  readonly #controller = new AbortController()
  readonly #run: AbortSignal
  readonly #timer: NodeJS.Timeout
  readonly #forward = (): void => this.#controller.abort(this.#run.reason)

  constructor(ms: number, run: AbortSignal) {
    this.#run = run
    run.addEventListener('abort', this.#forward, { once: true })
    this.#timer = setTimeout(
      () => {
        this.isOver = true
        this.#controller.abort(new Error(`no answer within ${ms} ms`))
      },
      Math.min(ms, MAX_TIMER_MS),
    )
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  clear(): void {
    clearTimeout(this.#timer)
    this.#run.removeEventListener('abort', this.#forward)
  }
}

/** Progress is for those who watch; what cannot be shown to them must not break the tool. */
function shown(update: unknown, redact: Redact | undefined): Json {
  try {
    return redact === undefined ? toJson(update) : redact(toJson(update))
  } catch (error) {
    return messageOf(error)
  }
}

type Failed = {
  readonly thrown: unknown
  readonly signal: AbortSignal
  readonly limit: TimeLimit | undefined
  readonly redact: Redact | undefined
}

function redacted(text: string, redact: Redact | undefined): string {
  return redact === undefined ? text : (redact(text) as string)
}

function failure(tool: Tool, { thrown, signal, limit, redact }: Failed): ToolExecution {
  if (limit?.isOver === true && !signal.aborted) {
    return failedExecution(
      `The tool did not end within ${tool.timeoutMs} ms and was told to stop. It may have had an effect.`,
    )
  }
  if (!signal.aborted) return failedExecution(redacted(messageOf(thrown), redact), tool.maxOutputChars)
  return cutOff
}

const cutOff: ToolExecution = Object.freeze({
  status: 'outcomeUnknown',
  output: 'The run was cancelled while the tool was running. It may have had an effect.',
})
const left: ToolExecution = Object.freeze({
  status: 'outcomeUnknown',
  output: 'A hook gave up waiting while the tool was running. It may have had an effect.',
})
const cancelledBy = { source: 'signal', message: 'The run was cancelled.' }

/** Waits for the tool. After it was told to stop it has a moment to clean up; if it answers then, it is believed. */
async function inTime(
  run: RunContext,
  work: Promise<unknown>,
  { toolRun: { signal }, limit }: { toolRun: ToolRun; limit: TimeLimit | undefined },
): Promise<unknown> {
  const stopped = limit === undefined ? run.outstanding.abortable(work) : Promise.race([work, aborted(signal)])
  try {
    return await stopped
  } catch (thrown) {
    if (!signal.aborted) throw thrown
    return withGrace(work)
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

async function withGrace<T>(work: Promise<T>, ms = GRACE_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('the tool did not stop when it was told to')), ms)
  })
  try {
    return await Promise.race([work, over])
  } finally {
    clearTimeout(timer)
    work.catch(() => undefined)
  }
}

const statuses: readonly ToolStatus[] = ['ok', 'failed', 'blocked', 'outcomeUnknown']

/** What an around hook returned, if it is an execution: from `next`, or its own. */
function toCheckedExecution(value: unknown): ToolExecution | undefined {
  if (!isJsonObject(value) || !statuses.includes(value['status'] as ToolStatus) || !('output' in value))
    return undefined
  // What attempts spent is counted already, and that a process died is not for a hook to say.
  const { usage: _counted, interrupted: _not, ...execution } = toJson(value) as ToolExecution
  return execution
}

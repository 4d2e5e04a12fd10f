import { isJsonObject, toJson, type Json } from '../data/json.ts'
import type { LedgerEntry } from '../data/ledger.ts'
import type { ToolCall, ToolExecution, ToolStatus } from '../data/tool-call.ts'
import type { Effects } from '../effects.ts'
import { AgentError, messageOf } from '../errors.ts'
import { runAround } from '../hooks/around.ts'
import { Firing } from '../hooks/firing.ts'
import { isThenable } from '../hooks/run-hooks.ts'
import type { LiveRun } from './live-run.ts'
import type { OpenedCall } from './opened-step.ts'
import type { Tool, ToolRun } from './tool.ts'
import { failedExecution, toExecution, withheldExecution } from './tool-output.ts'

/** How long a tool may take to clean up after it was told to stop. */
const GRACE_MS = 1_000

type Admitted = { readonly tool: Tool; readonly parsed: unknown; readonly beside: boolean }
type CallRecord = { readonly execution: ToolExecution; readonly trail: readonly LedgerEntry[] }

/** Runs one admitted call inside its around hooks, as one recorded effect. Never rejects: a failure is a result. */
export async function executeCall(run: LiveRun, call: OpenedCall, admitted: Admitted): Promise<ToolExecution> {
  const key = `${run.place}/${call.index}/tool`
  const toolCall: ToolCall = Object.freeze({ id: call.id, name: call.name, args: call.args as ToolCall['args'] })
  const effects = admitted.beside ? run.effects.scope(`${call.index}`) : run.effects
  run.effects.emit?.({ type: 'toolStarted', step: run.step, call: toolCall })
  const chain = new ToolChain(run, { call, key, effects, ...admitted })
  try {
    const record = await effects.perform(
      { key, kind: 'tool', input: () => ({ name: call.name, args: call.args }) },
      (signal) => chain.run(signal),
    )
    record.trail.forEach((entry, i) => run.note(entry, chain.durations[i] ?? 0))
    return record.execution
  } catch (thrown) {
    // Tools cannot get here, only the port can: nobody knows what was done, and the run must not go on.
    const error = thrown instanceof AgentError ? thrown : new AgentError('HOOK_FAILED', messageOf(thrown), { cause: thrown })
    run.fail(error, 'aroundToolUse')
    return Object.freeze({ status: 'outcomeUnknown', output: error.message })
  }
}

class ToolChain {
  readonly durations: number[] = []
  readonly #run: LiveRun
  readonly #at: Admitted & { readonly call: OpenedCall; readonly key: string; readonly effects: Effects }
  readonly #trail: LedgerEntry[] = []
  #attempts = 0
  #succeeded: ToolExecution | undefined

  constructor(run: LiveRun, at: Admitted & { call: OpenedCall; key: string; effects: Effects }) {
    this.#run = run
    this.#at = at
  }

  async run(signal: AbortSignal): Promise<CallRecord> {
    const { call } = this.#at
    const { arounds } = this.#run.parts.stack.plan('aroundToolUse', call.name)
    const execution = arounds.length === 0 ? await this.#execute(signal) : await this.#wrapped(arounds, signal)
    return { execution, trail: this.#trail }
  }

  async #wrapped(hooks: Parameters<typeof runAround>[0]['hooks'], signal: AbortSignal): Promise<ToolExecution> {
    const { call, parsed } = this.#at
    const toolCall = Object.freeze({ id: call.id, name: call.name, args: parsed })
    try {
      return await runAround<ToolExecution, never>({
        hooks,
        firing: () => new Firing(this.#run, 'aroundToolUse', this.#run.state, { toolCall }, call),
        attempt: () => this.#attempt(signal),
        merge: () => undefined,
        check: toCheckedExecution,
        note: (entry, ms) => {
          this.#trail.push(entry)
          this.durations.push(ms)
        },
      })
    } catch (thrown) {
      const message = messageOf(thrown)
      return this.#succeeded === undefined ? failedExecution(message) : withheldExecution(this.#succeeded, 'hookloop', message)
    }
  }

  async #attempt(signal: AbortSignal): Promise<ToolExecution> {
    const { call, effects } = this.#at
    const key = `${this.#at.key}/${++this.#attempts}`
    const execution = await effects.perform(
      { key, kind: 'tool', input: () => ({ name: call.name, args: call.args }) },
      () => this.#execute(signal),
    )
    if (execution.status === 'ok') this.#succeeded = execution
    return execution
  }

  async #execute(signal: AbortSignal): Promise<ToolExecution> {
    const { tool, parsed, key, call } = this.#at
    const limit = tool.timeoutMs === undefined ? undefined : AbortSignal.timeout(tool.timeoutMs)
    const toolRun: ToolRun = {
      signal: limit === undefined ? signal : AbortSignal.any([signal, limit]),
      idempotencyKey: key,
      progress: (update) =>
        this.#run.effects.emit?.({ type: 'toolProgress', step: this.#run.step, callId: call.id, update: toJson(update) }),
    }
    try {
      const returned = tool.execute(parsed as never, toolRun)
      const value = isThenable(returned) ? await this.#inTime(Promise.resolve(returned), toolRun.signal, limit) : returned
      return toExecution(value, tool.maxOutputChars)
    } catch (thrown) {
      if (limit?.aborted === true && !signal.aborted) {
        return failedExecution(`The tool did not end within ${tool.timeoutMs} ms and was told to stop. It may have had an effect.`)
      }
      if (!signal.aborted) return failedExecution(messageOf(thrown))
      const output = 'The run was cancelled while the tool was running. It may have had an effect.'
      return Object.freeze({ status: 'outcomeUnknown', output })
    }
  }

  /** Waits for the tool. After it was told to stop it has a moment to clean up; if it answers then, it is believed. */
  async #inTime(work: Promise<unknown>, signal: AbortSignal, limit: AbortSignal | undefined): Promise<unknown> {
    if (limit === undefined) {
      const cut = await this.#run.abortable(work).then(
        (value) => ({ value }),
        (error: unknown) => ({ error }),
      )
      if ('value' in cut) return cut.value
      if (!signal.aborted) throw cut.error
      return withGrace(work)
    }
    const aborted = new Promise<void>((resolve) => {
      if (signal.aborted) resolve()
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
    const first = await Promise.race([work.then((value) => ({ value })), aborted])
    return first === undefined ? withGrace(work) : first.value
  }
}

async function withGrace(work: Promise<unknown>): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('the tool did not stop when it was told to')), GRACE_MS)
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
  if (!isJsonObject(value) || !statuses.includes(value['status'] as ToolStatus) || !('output' in value)) return undefined
  return toJson(value) as Json as ToolExecution
}

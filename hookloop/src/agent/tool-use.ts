import type { ToolCall, ToolExecution } from '../data/tool-call.ts'
import type { Firing } from '../hooks/firing.ts'
import { decide, type Admission } from './admission.ts'
import type { LiveRun } from './live-run.ts'
import { toToolCall, type OpenedCall, type OpenedStep } from './opened-step.ts'
import { executeCall, portFailed, type Place } from './tool-call.ts'
import { knownOutcome, mayHaveHappened, notRunAgain } from './unknown-outcome.ts'
import { noOutput, stoppedExecution, withheldExecution } from './tool-output.ts'

/**
 * Runs the calls of a step in order, each before → around → after. Neighbours whose tools may run together do: all
 * before, then all tools at once, then all after. What waits for a person is left without a result.
 */
export function useTools(run: LiveRun, step: OpenedStep): void | Promise<void> {
  if (step.calls.length === 0) return undefined
  return step.calls.length === 1 ? useAlone(run, step.calls[0]!) : useSeveral(run, step.calls)
}

/** The same for calls whose questions were answered: they are judged again, but not changed again. */
export async function useAnswered(run: LiveRun, step: OpenedStep): Promise<void> {
  for (const call of step.calls) {
    if (call.result === undefined && call.answer !== undefined) await useAlone(run, call)
  }
}

/** Calls that are still open when the run ends get a result too: a conversation with a call unanswered is not valid. */
export async function closeOpenCalls(run: LiveRun, step: OpenedStep): Promise<void> {
  const result = stoppedExecution(run.forbidden)
  for (const call of step.pending) await conclude(run, call, result)
}

async function useSeveral(run: LiveRun, calls: readonly OpenedCall[]): Promise<void> {
  for (let at = 0; at < calls.length;) {
    const together = togetherFrom(run, calls, at)
    if (together > 1) await useTogether(run, calls.slice(at, at + together))
    else await useAlone(run, calls[at]!)
    at += together
  }
}

/** How many calls from here on may run together; a tool that does not say so runs alone. */
function togetherFrom(run: LiveRun, calls: readonly OpenedCall[], at: number): number {
  let end = at
  const last = Math.min(calls.length, at + run.parts.maxConcurrentTools) // so that limits are looked at in between
  while (end < last && run.parts.tools.get(calls[end]!.name)?.concurrent === true) end++
  return Math.max(1, end - at)
}

function useAlone(run: LiveRun, call: OpenedCall): void | Promise<void> {
  const decided = decide(run, call)
  if (decided instanceof Promise) return decided.then((admission) => useAdmitted(run, call, admission))
  return useAdmitted(run, call, decided)
}

function useAdmitted(run: LiveRun, call: OpenedCall, admission: Admission): void | Promise<void> {
  let running: Running
  try {
    running = resultOf(run, call, admission)
  } catch (thrown) {
    running = portFailed(run, thrown)
  }
  if (!(running instanceof Promise)) return useResult(run, call, { admission, result: running })
  return running.then(
    (result) => useResult(run, call, { admission, result }),
    (thrown: unknown) => conclude(run, call, portFailed(run, thrown)),
  )
}

async function useTogether(run: LiveRun, calls: readonly OpenedCall[]): Promise<void> {
  const admissions: Admission[] = []
  for (const call of calls) admissions.push(await decide(run, call))
  run.noticeCancel() // a cancel is looked for here, once: when each of them starts is a matter of chance
  const results = await Promise.all(calls.map((call, i) => ran(run, () => resultOf(run, call, admissions[i]!))))
  for (const [i, call] of calls.entries()) await useResult(run, call, { admission: admissions[i]!, result: results[i] })
}

async function ran(run: LiveRun, start: () => Running): Promise<ToolExecution | undefined> {
  try {
    return await start()
  } catch (thrown) {
    return portFailed(run, thrown)
  }
}

type Running = ToolExecution | undefined | Promise<ToolExecution | undefined>

type Ended = { readonly admission: Admission; readonly result: ToolExecution | undefined }

/** A call without a result waits; one that a crash cut off may have to. */
function useResult(run: LiveRun, call: OpenedCall, { admission, result }: Ended): void | Promise<void> {
  if (result === undefined) return undefined
  if (result.interrupted !== true || admission.status !== 'ready') return conclude(run, call, result)
  return useInterrupted(run, { call, tool: admission.tool, parsed: admission.parsed }, result)
}

async function useInterrupted(run: LiveRun, at: Place, cutOff: ToolExecution): Promise<void> {
  const result = await ran(run, () => knownOutcome(run, at, cutOff))
  if (result !== undefined) await conclude(run, at.call, result)
}

/** A call that was let through runs, unless the run was forbidden to go on in the meantime. */
function resultOf(run: LiveRun, call: OpenedCall, admission: Admission): Running {
  if (admission.status === 'waiting') return undefined
  if (admission.status === 'done') return admission.result
  const { forbidden } = run
  if (forbidden !== undefined) return stoppedExecution(forbidden)
  return executeCall(run, { call, tool: admission.tool, parsed: admission.parsed })
}

/** afterToolUse, for every call: also for those that failed or were blocked. */
function conclude(run: LiveRun, call: OpenedCall, ended: ToolExecution): void | Promise<void> {
  const result = mayHaveHappened(call) ? notRunAgain(ended) : ended
  if (call.trail !== undefined) run.noteTrail(call.trail.entries, call.trail.durations)
  if (call.ran) noteEnd(run, call, result)
  if (result.usage !== undefined) run.spend(result.usage)
  const toolCall = toToolCall(call)
  const place = { index: call.index, toolName: call.name }
  const fired = run.fire('afterToolUse', { toolCall, toolExecution: result, durationMs: call.ranMs }, place)
  if (fired instanceof Promise) return fired.then((firing) => settle(run, { call, toolCall, result, firing }))
  settle(run, { call, toolCall, result, firing: fired })
}

/** How a call that ran ended, where that is worth knowing. */
function noteEnd(run: LiveRun, call: OpenedCall, { status, output, truncated }: ToolExecution): void {
  if (status === 'ok' && truncated !== true && output !== noOutput) return
  const decision = status !== 'ok' ? status : truncated === true ? 'truncated' : 'no output'
  const message = status === 'ok' ? {} : { message: typeof output === 'string' ? output : JSON.stringify(output) }
  run.noteLoop('aroundToolUse', { call: call.id, decision, ...message })
}

function settle(
  run: LiveRun,
  at: { call: OpenedCall; toolCall: ToolCall; result: ToolExecution; firing: Firing | undefined },
): void {
  const { call, toolCall, result, firing } = at
  call.result = result
  if (firing?.blocked !== undefined) {
    call.result = withheldExecution(result, firing.blocked.by, firing.blocked.message)
  } else if (firing?.failure !== undefined) {
    call.result = withheldExecution(result, 'hookloop', firing.failure.message)
  } else if (firing !== undefined) {
    call.result = firing.facts['toolExecution'] as ToolExecution
  }
  run.effects.emit?.({
    type: 'toolFinished',
    step: run.step,
    call: toolCall,
    execution: call.result,
    ...(call.ranMs !== undefined && { durationMs: call.ranMs }),
  })
}

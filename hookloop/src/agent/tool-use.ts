import { isJsonObject } from '../data/json.ts'
import type { ToolCall, ToolExecution } from '../data/tool-call.ts'
import { isThenable } from '../hooks/run-hooks.ts'
import { decide, type Admission } from './admission.ts'
import type { CallPlace, LiveRun } from './live-run.ts'
import type { OpenedCall, OpenedStep } from './opened-step.ts'
import { executeCall } from './tool-call.ts'
import { stoppedExecution, withheldExecution } from './tool-output.ts'

/**
 * Runs the calls of a step in order, each before → around → after. Neighbours whose tools may run together do: all
 * before, then all tools at once, then all after. What waits for a person is left without a result.
 */
export async function useTools(run: LiveRun, step: OpenedStep): Promise<void> {
  for (let at = 0; at < step.calls.length; ) {
    const group = groupAt(run, step.calls, at)
    await useTogether(run, group)
    at += group.length
  }
}

/** The same for calls whose questions were answered: they are judged again, but not changed again. */
export async function useAnswered(run: LiveRun, step: OpenedStep): Promise<void> {
  for (const call of step.calls) {
    if (call.result === undefined && call.answer !== undefined) await useTogether(run, [call])
  }
}

/** Calls that are still open when the run ends get a result too: a conversation with a call unanswered is not valid. */
export async function closeOpenCalls(run: LiveRun, step: OpenedStep): Promise<void> {
  const by = run.forbidden
  for (const call of step.pending) {
    await conclude(run, call, stoppedExecution(by))
  }
}

function groupAt(run: LiveRun, calls: readonly OpenedCall[], at: number): readonly OpenedCall[] {
  let end = at
  while (end < calls.length && run.parts.tools.get(calls[end]!.name)?.concurrent === true) end++
  return calls.slice(at, Math.max(end, at + 1))
}

async function useTogether(run: LiveRun, calls: readonly OpenedCall[]): Promise<void> {
  const admissions: Admission[] = []
  for (const call of calls) {
    const decided = decide(run, call)
    admissions.push(isThenable(decided) ? await decided : decided)
  }
  const results =
    calls.length === 1
      ? [await resultOf(run, calls[0]!, admissions[0]!, false)]
      : await allLimited(calls, run.parts.maxConcurrentTools, (call, i) => resultOf(run, call, admissions[i]!, true))
  for (const [i, call] of calls.entries()) {
    const result = results[i]
    if (result === undefined) continue
    const concluded = conclude(run, call, result)
    if (concluded !== undefined) await concluded
  }
}

/** A call that was let through runs, unless the run was forbidden to go on in the meantime. */
function resultOf(
  run: LiveRun,
  call: OpenedCall,
  admission: Admission,
  beside: boolean,
): ToolExecution | undefined | Promise<ToolExecution> {
  if (admission.status === 'waiting') return undefined
  if (admission.status === 'done') return admission.result
  const { forbidden } = run
  if (forbidden !== undefined) return stoppedExecution(forbidden)
  return executeCall(run, call, { ...admission, beside })
}

/** afterToolUse, for every call: also for those that failed or were blocked. */
function conclude(run: LiveRun, call: OpenedCall, result: ToolExecution): void | Promise<void> {
  const toolCall = asToolCall(call)
  const place: CallPlace = { index: call.index, id: call.id, toolName: call.name }
  const fired = run.fire('afterToolUse', { toolCall, toolExecution: result }, place)
  const settle = (firing: Awaited<typeof fired>): void => {
    call.result = result
    if (firing?.blocked !== undefined) {
      call.result = withheldExecution(result, firing.blocked.by, firing.blocked.message)
    } else if (firing?.failure !== undefined) {
      call.result = withheldExecution(result, 'hookloop', firing.failure.message)
    } else if (firing !== undefined) {
      call.result = firing.facts['toolExecution'] as ToolExecution
    }
    run.effects.emit?.({ type: 'toolFinished', step: run.step, call: toolCall, execution: call.result })
  }
  return isThenable(fired) ? fired.then(settle) : settle(fired)
}

/** Hooks read arguments as an object, whatever the model sent. */
function asToolCall({ id, name, args }: OpenedCall): ToolCall {
  return Object.freeze({ id, name, args: isJsonObject(args) ? args : {} })
}

/** Like Promise.all over a function, with at most `limit` of them under way. */
async function allLimited<T, R>(
  items: readonly T[],
  limit: number,
  work: (item: T, index: number) => R | Promise<R>,
): Promise<R[]> {
  const results: R[] = []
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < items.length) {
      const index = next++
      results[index] = await work(items[index]!, index)
    }
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker))
  return results
}


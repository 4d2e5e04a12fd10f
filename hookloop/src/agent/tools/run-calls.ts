import type { ToolCall, ToolExecution } from '../../state/tool-call.ts'
import type { Invocation } from '../../hooks/invocation.ts'
import { isInChild } from '../../state/open-calls.ts'
import { decide, type Authorization } from './authorize-call.ts'
import type { Share } from '../subagents/child-budget.ts'
import { childOf, concludeChild, resumeChild, startChild, takeWaiting } from '../subagents/delegated-call.ts'
import type { RunContext } from '../loop/run-context.ts'
import { toToolCall, type ActiveCall, type OpenStep } from '../loop/open-step.ts'
import { executeCall, portFailed, type Place } from './execute-call.ts'
import { knownOutcome, mayHaveHappened, notRunAgain } from './interrupted-call.ts'
import { noOutput, stoppedExecution, withheldExecution } from './result.ts'
import { noteTrail } from '../loop/note-trail.ts'

/**
 * Runs the calls of a step in order, each before → around → after. Neighbours whose tools may run together do: all
 * before, then all tools at once, then all after. What waits for a person is left without a result.
 */
export function useTools(run: RunContext, step: OpenStep): void | Promise<void> {
  if (step.calls.length === 0) return undefined
  return step.calls.length === 1 ? useAlone(run, step.calls[0]!) : useSeveral(run, step.calls)
}

/**
 * The same for calls whose questions were answered: they are judged again, but not changed again. Agents inside that were
 * answered go on together.
 */
export async function useAnswered(run: RunContext, step: OpenStep): Promise<void> {
  for (let at = 0; at < step.calls.length;) {
    const call = step.calls[at]!
    const together = waitingFrom(run, step.calls, at)
    if (together > 0) await resumeTogether(run, step.calls.slice(at, at + together))
    else if (call.result === undefined && call.answer !== undefined) await useAlone(run, call)
    at += Math.max(1, together)
  }
}

/** How many calls from here on have an agent that was answered. */
function waitingFrom(run: RunContext, calls: readonly ActiveCall[], at: number): number {
  let end = at
  const last = Math.min(calls.length, at + run.parts.maxConcurrentTools)
  while (end < last && isInChild(calls[end]!) && calls[end]!.answers !== undefined) end++
  return end - at
}

async function resumeTogether(run: RunContext, calls: readonly ActiveCall[]): Promise<void> {
  const results = await Promise.all(calls.map((call) => resumeChild(run, call)))
  takeWaiting(run, calls)
  for (const [i, call] of calls.entries()) await concludeAny(run, call, results[i])
}

/** Calls that are still open when the run ends get a result too: a conversation with a call unanswered is not valid. */
export async function closeOpenCalls(run: RunContext, step: OpenStep): Promise<void> {
  const result = stoppedExecution(run.forbidden)
  for (const call of step.pending) await conclude(run, call, result)
}

async function useSeveral(run: RunContext, calls: readonly ActiveCall[]): Promise<void> {
  for (let at = 0; at < calls.length;) {
    const together = togetherFrom(run, calls, at)
    if (together > 1) await useTogether(run, calls.slice(at, at + together))
    else await useAlone(run, calls[at]!)
    at += together
  }
}

/** How many calls from here on may run together; a tool that does not say so runs alone. */
function togetherFrom(run: RunContext, calls: readonly ActiveCall[], at: number): number {
  let end = at
  const last = Math.min(calls.length, at + run.parts.maxConcurrentTools) // so that limits are looked at in between
  while (end < last && run.parts.tools.get(calls[end]!.name)?.concurrent === true) end++
  return Math.max(1, end - at)
}

function useAlone(run: RunContext, call: ActiveCall): void | Promise<void> {
  const decided = decide(run, call)
  if (decided instanceof Promise) return decided.then((admission) => useAdmitted(run, call, admission))
  return useAdmitted(run, call, decided)
}

function useAdmitted(run: RunContext, call: ActiveCall, admission: Authorization): void | Promise<void> {
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

async function useTogether(run: RunContext, calls: readonly ActiveCall[]): Promise<void> {
  const admissions: Authorization[] = []
  for (const call of calls) admissions.push(await decide(run, call))
  run.noticeCancel() // a cancel is looked for here, once: when each of them starts is a matter of chance
  const delegated = admissions.filter((each) => each.status === 'ready' && each.tool.delegate !== undefined)
  const results = await Promise.all(
    calls.map((call, i) => {
      const share = { index: delegated.indexOf(admissions[i]!), of: delegated.length }
      return ran(run, () => resultOf(run, call, admissions[i]!, share))
    }),
  )
  takeWaiting(run, calls)
  for (const [i, call] of calls.entries()) await useResult(run, call, { admission: admissions[i]!, result: results[i] })
}

async function ran(run: RunContext, start: () => Running): Promise<ToolExecution | undefined> {
  try {
    return await start()
  } catch (thrown) {
    return portFailed(run, thrown)
  }
}

type Running = ToolExecution | undefined | Promise<ToolExecution | undefined>

type Ended = { readonly admission: Authorization; readonly result: ToolExecution | undefined }

/** What a crash cut off may have to wait for somebody to say what becomes of it. */
function useResult(run: RunContext, call: ActiveCall, { admission, result }: Ended): void | Promise<void> {
  if (result?.interrupted !== true || admission.status !== 'ready') return concludeAny(run, call, result)
  return useInterrupted(run, { call, tool: admission.tool, parsed: admission.parsed }, result)
}

/** A call that an agent works for has its result from there; one without a result waits. */
function concludeAny(run: RunContext, call: ActiveCall, result: ToolExecution | undefined): void | Promise<void> {
  const child = childOf(call)
  if (child !== undefined) {
    const at = { call, child, tool: run.parts.tools.get(call.name)! }
    return concludeChild(run, at).then((ended) => (ended === undefined ? undefined : conclude(run, call, ended)))
  }
  if (result !== undefined) return conclude(run, call, result)
}

async function useInterrupted(run: RunContext, at: Place, cutOff: ToolExecution): Promise<void> {
  const result = await ran(run, () => knownOutcome(run, at, cutOff))
  if (result !== undefined) await conclude(run, at.call, result)
}

/** A call that was let through runs, unless the run was forbidden to go on in the meantime. */
function resultOf(run: RunContext, call: ActiveCall, admission: Authorization, share = alone): Running {
  if (admission.status === 'waiting') return undefined
  if (admission.status === 'done') return admission.result
  const { forbidden } = run
  if (forbidden !== undefined) return stoppedExecution(forbidden)
  const place = { call, tool: admission.tool, parsed: admission.parsed }
  return admission.tool.delegate === undefined ? executeCall(run, place) : startChild(run, place, share)
}

const alone: Share = { index: 0, of: 1 }

/** afterToolUse, for every call: also for those that failed or were blocked. */
function conclude(run: RunContext, call: ActiveCall, ended: ToolExecution): void | Promise<void> {
  const result = mayHaveHappened(call) ? notRunAgain(ended) : ended
  if (call.trail !== undefined) noteTrail(run, call.trail.entries, call.trail.durations)
  if (call.ran) noteEnd(run, call, result)
  if (result.usage !== undefined && !isDelegated(run, call)) run.spend(result.usage)
  const toolCall = toToolCall(call)
  const place = { index: call.index, toolName: call.name }
  const fired = run.fire('afterToolUse', { toolCall, toolExecution: result, durationMs: call.ranMs }, place)
  if (fired instanceof Promise) return fired.then((firing) => settle(run, { call, toolCall, result, firing }))
  settle(run, { call, toolCall, result, firing: fired })
}

/** What an agent spends is billed as it goes. */
function isDelegated(run: RunContext, { name }: ActiveCall): boolean {
  return run.parts.tools.get(name)?.delegate !== undefined
}

/** How a call that ran ended, where that is worth knowing. */
function noteEnd(run: RunContext, call: ActiveCall, { status, output, truncated }: ToolExecution): void {
  if (status === 'ok' && truncated !== true && output !== noOutput) return
  const decision = status !== 'ok' ? status : truncated === true ? 'truncated' : 'no output'
  const message = status === 'ok' ? {} : { message: typeof output === 'string' ? output : JSON.stringify(output) }
  run.noteLoop('aroundToolUse', { call: call.id, decision, ...message })
}

function settle(
  run: RunContext,
  at: { call: ActiveCall; toolCall: ToolCall; result: ToolExecution; firing: Invocation | undefined },
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

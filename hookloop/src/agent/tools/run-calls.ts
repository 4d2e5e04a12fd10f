import { textOfJson } from '../../state/json.ts'
import { isInChild } from '../../state/open-calls.ts'
import type { ToolExecution } from '../../state/tool-call.ts'
import { modelText } from '../../hooks/failure-text.ts'
import type { Invocation } from '../../hooks/invocation.ts'
import { andThen, orElse, type MaybePromise } from '../../state/thenable.ts'
import { fireTrigger } from '../loop/fire-trigger.ts'
import { toToolCall, type ActiveCall, type OpenStep } from '../loop/open-step.ts'
import type { RunContext } from '../loop/run-context.ts'
import type { BudgetShare } from '../subagents/child-run.ts'
import { callsOfChild, closedChild } from '../subagents/closed-child.ts'
import { childOf, concludeChild, resumeChild, startChild, takeWaiting } from '../subagents/delegated-call.ts'
import { authorizeCall, type Authorization } from './authorize-call.ts'
import { effectsFailed, executeCall, executionIn, HOOKS_LEFT, leftByLimit, type CallToExecute } from './execute-call.ts'
import { notRunAgain, resolveInterrupted } from './interrupted-call.ts'
import { noOutput, stoppedExecution, withheldExecution } from './result.ts'

/**
 * Runs the calls of a step in order, each before → around → after. Consecutive calls of concurrent tools run together:
 * all before, then all tools at once, then all after. A call that waits for approval is left without a result.
 */
export function runCalls(run: RunContext, { calls }: OpenStep): MaybePromise<void> {
  if (calls.length === 0) return undefined
  return calls.length === 1 ? runAlone(run, calls[0]!) : runInOrder(run, calls)
}

async function runInOrder(run: RunContext, calls: readonly ActiveCall[]): Promise<void> {
  for (let at = 0; at < calls.length;) {
    const count = concurrentFrom(run, calls, at)
    if (count > 1) await runTogether(run, calls.slice(at, at + count))
    else await runAlone(run, calls[at]!)
    at += count
  }
}

/**
 * Runs the calls whose questions were answered: guards decide again, transforms do not run again. Subagents that were
 * answered are resumed together.
 */
export async function runAnsweredCalls(run: RunContext, { calls }: OpenStep): Promise<void> {
  for (let at = 0; at < calls.length;) {
    const call = calls[at]!
    const count = countFrom(run, calls, at, (each) => isInChild(each) && each.answers !== undefined)
    if (count > 0) await resumeTogether(run, calls.slice(at, at + count))
    else if (call.result === undefined && call.answer !== undefined) await runAlone(run, call)
    at += Math.max(1, count)
  }
}

/** Gives a result to calls that are still open when the run ends: a conversation with an open call is not valid. */
export async function closeOpenCalls(run: RunContext, step: OpenStep): Promise<void> {
  const result = stoppedExecution(run.forbidden)
  for (const call of step.pending) {
    await conclude(run, call, isInChild(call) ? closedChild(result.output as string, callsOfChild(call.child)) : result)
  }
}

/** How many calls from here on run together; a tool that is not concurrent runs alone. */
function concurrentFrom(run: RunContext, calls: readonly ActiveCall[], at: number): number {
  return Math.max(
    1,
    countFrom(run, calls, at, ({ name }) => run.parts.tools.get(name)?.concurrent === true),
  )
}

/** How many consecutive calls match, up to the number of tools that may run at once. */
function countFrom(
  run: RunContext,
  calls: readonly ActiveCall[],
  at: number,
  matches: (call: ActiveCall) => boolean,
): number {
  const last = Math.min(calls.length, at + run.parts.maxConcurrentTools)
  let end = at
  while (end < last && matches(calls[end]!)) end++
  return end - at
}

function runAlone(run: RunContext, call: ActiveCall): MaybePromise<void> {
  return andThen(authorizeCall(run, call), runAndConclude, run, call)
}

function runAndConclude(authorization: Authorization, run: RunContext, call: ActiveCall): MaybePromise<void> {
  return andThen(runAuthorized(run, call, authorization), applyResult, run, call, authorization)
}

async function runTogether(run: RunContext, calls: readonly ActiveCall[]): Promise<void> {
  const authorizations: Authorization[] = []
  for (const call of calls) authorizations.push(await authorizeCall(run, call))
  void run.ended // once, here: the order in which the tools start differs from run to run
  const delegated = authorizations.filter((each) => each.status === 'ready' && each.tool.delegate !== undefined)
  const results = await Promise.all(
    calls.map((call, i) => {
      const share = { index: delegated.indexOf(authorizations[i]!), of: delegated.length }
      return runAuthorized(run, call, authorizations[i]!, share)
    }),
  )
  takeWaiting(run, calls)
  for (const [i, call] of calls.entries()) await applyResult(results[i], run, call, authorizations[i]!)
}

async function resumeTogether(run: RunContext, calls: readonly ActiveCall[]): Promise<void> {
  const results = await Promise.all(calls.map((call) => resumeChild(run, call)))
  takeWaiting(run, calls)
  for (const [i, call] of calls.entries()) await concludeAny(run, call, results[i])
}

const undivided: BudgetShare = { index: 0, of: 1 }

/** The result of a call; undefined while it waits, or while a subagent has it. */
function runAuthorized(
  run: RunContext,
  call: ActiveCall,
  authorization: Authorization,
  share = undivided,
): MaybePromise<ToolExecution | undefined> {
  if (authorization.status === 'waiting') return undefined
  if (authorization.status === 'done') return authorization.result
  const { forbidden } = run
  if (forbidden !== undefined) return stoppedExecution(forbidden)
  const { tool, parsed } = authorization
  return orElse(startCall, effectsFailed, run, { call, tool, parsed, share })
}

function startCall(
  run: RunContext,
  at: CallToExecute & { readonly share: BudgetShare },
): MaybePromise<ToolExecution | undefined> {
  return at.tool.delegate === undefined ? executeCall(run, at) : startChild(run, at, at.share)
}

function applyResult(
  recorded: ToolExecution | undefined,
  run: RunContext,
  call: ActiveCall,
  authorization: Authorization,
): MaybePromise<void> {
  const result = recorded && executionIn(recorded)
  if (result?.interrupted !== true || authorization.status !== 'ready') return concludeAny(run, call, result)
  const { tool, parsed } = authorization
  return andThen(resolveInterrupted(run, { call, tool, parsed }, result), (resolved) =>
    resolved === undefined ? undefined : conclude(run, call, resolved),
  )
}

/** The result of a delegated call comes from its subagent. A call without a result waits. */
function concludeAny(run: RunContext, call: ActiveCall, result: ToolExecution | undefined): MaybePromise<void> {
  const child = isDelegated(run, call) ? childOf(call) : undefined
  if (child === undefined) return result === undefined ? undefined : conclude(run, call, result)
  const at = { call, child, tool: run.parts.tools.get(call.name)! }
  return concludeChild(run, at).then((ended) => (ended === undefined ? undefined : conclude(run, call, ended)))
}

function isDelegated(run: RunContext, { name }: ActiveCall): boolean {
  return run.parts.tools.get(name)?.delegate !== undefined
}

/** afterToolUse, for every call, including those that failed or were blocked. */
export function conclude(run: RunContext, call: ActiveCall, ended: ToolExecution): MaybePromise<void> {
  // A call that was interrupted may have had an effect, even if it was not run again.
  const result = call.interruptions !== undefined && !call.ran ? notRunAgain(ended) : ended
  if (call.trail !== undefined) run.noteTrail(call.trail.entries, call.trail.durations)
  if (call.ran) noteEnd(run, call, result)
  if (result.usage !== undefined && !isDelegated(run, call)) run.spend(result.usage) // subagents are billed as they run
  const facts = { toolCall: toToolCall(call), toolExecution: result, durationMs: call.ranMs }
  const after = fireTrigger(run, 'afterToolUse', facts, { index: call.index, toolName: call.name })
  return andThen(after, setResult, run, call, result)
}

/** A result as hooks at afterToolUse let it pass. */
export function resultAfter({ blocked, failure, facts }: Invocation, result: ToolExecution): ToolExecution {
  if (blocked !== undefined) return withheldExecution(result, blocked.by, blocked.message)
  if (failure !== undefined) return withheldExecution(result, 'hookloop', modelText(failure))
  return facts['toolExecution'] as ToolExecution
}

function setResult(after: Invocation | undefined, run: RunContext, call: ActiveCall, result: ToolExecution): void {
  call.result = after === undefined ? result : resultAfter(after, result)
  run.effects.emit?.({
    type: 'toolFinished',
    at: run.now,
    step: run.step,
    call: toToolCall(call),
    execution: call.result,
    ...(call.ranMs !== undefined && { durationMs: call.ranMs }),
  })
}

/** Records how a call ended, unless it simply succeeded. */
function noteEnd(run: RunContext, call: ActiveCall, { status, output, truncated }: ToolExecution): void {
  if (status === 'ok' && truncated !== true && output !== noOutput) return
  const decision = status !== 'ok' ? status : truncated === true ? 'truncated' : 'no output'
  const message = status === 'ok' ? {} : { message: textOfJson(output) }
  if (output === leftByLimit.output) run.leave(`tool "${call.name}"`)
  if (output === HOOKS_LEFT) run.leave(`hooks around the tool "${call.name}"`)
  run.noteLoop('aroundToolUse', { call: call.id, decision, ...message })
}

import type { Json } from '../../state/json.ts'
import type { ToolExecution } from '../../state/tool-call.ts'
import { noUsage, type Usage } from '../../state/usage.ts'
import { messageOf, clause } from '../../errors.ts'
import { modelText } from '../../hooks/failure-text.ts'
import type { Invocation } from '../../hooks/invocation.ts'
import { isFatal } from '../../hooks/run-hooks.ts'
import type { HookRecord } from '../../state/execution.ts'
import type { RecordEntry } from '../../effects/recording.ts'
import type { AgentSpec } from './agent-tool.ts'
import { isAgent, type AgentParts } from '../agent-parts.ts'
import { childParts } from './child-parts.ts'
import { fireTrigger } from '../loop/fire-trigger.ts'
import { toToolCall, type ActiveCall } from '../loop/open-step.ts'
import type { RunContext } from '../loop/run-context.ts'
import type { Tool } from '../tool.ts'
import type { CallToExecute } from '../tools/execute-call.ts'
import { blockedExecution, failedExecution, toExecution, withheldExecution } from '../tools/result.ts'
import { ChildRun, type BudgetShare, type Delegation } from './child-run.ts'
import { callsOfChild, closedChild } from './closed-child.ts'

/** How deep subagents can be nested, whatever their tools allow. */
const MAX_LEVEL = 16

/**
 * Starts the subagent of a call, and waits until it is about to stop or is suspended. Everything it does is an effect of
 * the run, so the call itself is not one. Returns a result only if the subagent cannot be started.
 */
export async function startChild(
  run: RunContext,
  at: CallToExecute,
  share: BudgetShare,
): Promise<ToolExecution | undefined> {
  const { call, tool } = at
  call.ran = true
  run.effects.emit?.({ type: 'toolStarted', step: run.step, at: run.now, call: toToolCall(call) })
  noteSkippedArounds(run, call)
  try {
    if (run.parts.level >= MAX_LEVEL) throw new Error(`Subagents can be nested ${MAX_LEVEL} levels deep at most.`)
    const delegation = delegationOf(run, tool, at.parsed)
    noteMissing(run, delegation)
    storeGuards(run, call, delegation)
    await tracked(call, ChildRun.start(run, call, { delegation, share })).arrived()
    return undefined
  } catch (thrown) {
    return failedExecution(messageOf(thrown))
  }
}

/** Resumes a subagent that was suspended, and waits until it is about to stop or is suspended again. */
export async function resumeChild(run: RunContext, call: ActiveCall): Promise<ToolExecution | undefined> {
  call.ran = true
  try {
    const delegation = await delegationTo(run, call)
    await tracked(call, ChildRun.resume(run, call, { delegation, answers: call.answers ?? {} })).arrived()
    return undefined
  } catch (thrown) {
    return closedChild(
      `The subagent "${call.child!.agent}" was not continued: ${clause(messageOf(thrown))}.`,
      callsOfChild(call.child!),
    )
  }
}

/** The subagent of a call that waits. Rejects if the agent does not have it. */
export async function delegationTo(
  run: Pick<RunContext, 'parts'>,
  call: { readonly name: string; readonly args: Json },
): Promise<Delegation> {
  const tool = run.parts.tools.get(call.name)
  if (tool?.delegate === undefined) throw new Error(`the agent no longer has the tool "${call.name}"`)
  const parsed = await tool.parse(call.args)
  if ('problem' in parsed) throw new Error(parsed.problem)
  return delegationOf(run, tool, parsed.value)
}

/** Running subagents, by their call. */
const children = new WeakMap<ActiveCall, ChildRun>()

function tracked(call: ActiveCall, child: ChildRun): ChildRun {
  children.set(call, child)
  return child
}

/** The subagent of a call, if it was started or resumed in this process. */
export function childOf(call: ActiveCall): ChildRun | undefined {
  return children.get(call)
}

/** The subagent of a call. Throws what the tool throws, as a message for the model. */
function delegationOf(run: Pick<RunContext, 'parts'>, tool: Tool, parsed: unknown): Delegation {
  const { level, toolNames } = run.parts
  return tool.delegate!(parsed as never, { depth: level, tools: toolNames })
}

/** Warns about tools that the definition of a subagent names and its parent does not have. */
function noteMissing(run: RunContext, { name, to }: Delegation): void {
  const { tools = [] }: AgentSpec = isAgent(to) ? {} : to
  const missing = tools.filter((tool) => !tool.includes('*') && !run.parts.tools.has(tool))
  if (missing.length === 0) return
  const message = `The subagent "${name}" names tools that its parent does not have: ${missing.join(', ')}.`
  run.noteLoop('aroundInference', { warnings: [{ code: 'TOOLS_MISSING', message }] })
}

/** Around hooks wrap an effect, and a delegated call is not one. */
function noteSkippedArounds(run: RunContext, call: ActiveCall): void {
  const message = 'around hooks do not apply to the call of a subagent, only to the calls that the subagent makes'
  for (const hook of run.parts.stack.plan('aroundToolUse', call.name).arounds) {
    const place = { plan: run.parts.stack.plan('aroundToolUse'), callIndex: call.index }
    run.note(place, hook, 0, { decision: 'skipped', message })
  }
}

/**
 * onSubagentStop, repeated as long as hooks request another step; then the result of the call. Undefined when the subagent
 * is suspended, and the call with it.
 */
export async function concludeChild(
  run: RunContext,
  at: { readonly call: ActiveCall; readonly tool: Tool; readonly child: ChildRun },
): Promise<ToolExecution | undefined> {
  const { call, tool, child } = at
  let invocation: Invocation | undefined
  for (let steps = -1; ;) {
    takeOver(run, child)
    if (child.isSuspended) {
      call.child = child.save()
      delete call.answers
      return undefined
    }
    const hasContinued = child.run.state.stepCount !== steps
    if (!hasContinued) break // its limits did not permit another step
    steps = child.run.state.stepCount
    invocation = await fireStop(run, at)
    if (invocation === undefined || isWithheld(invocation) || run.stoppedBy() !== undefined) break
    const { votes } = invocation
    if (votes.length === 0 || !child.canContinue) break
    await child.answer(votes)
  }
  const { status, outcome, message } = child.end
  const spent = child.spent
  const result = withUsage(applyDecision(resultOf(run, child, tool), invocation), spent)
  await child.answer([])
  takeOver(run, child)
  for (const what of child.run.left) run.leave(`${what} of the subagent "${child.place.agent}"`)
  const fatal = child.run.failure
  if (fatal !== undefined && isFatal(fatal)) run.fail(fatal, 'aroundToolUse')
  run.noteLoop('onSubagentStop', {
    call: call.id,
    decision: status,
    message: message || (outcome.stopReason ?? ''),
    value: endOf(child, spent),
  })
  store(run, call, 'subagent', result)
  return result
}

/** Stores a fact about the subagent of a call in the session, for a process that cannot repeat what this one did. */
function store(run: RunContext, { index, name, args }: ActiveCall, what: 'subagent' | 'guards', value: Json): void {
  run.effects.storeResult?.(`${run.place}/${index}/${what}`, { name, args }, value)
}

/** The guards that only the subagent has: none of them may be missing when another process resumes it. */
function storeGuards(run: RunContext, call: ActiveCall, delegation: Delegation): void {
  const inherited = new Set(run.parts.stack.records.map(({ name }) => name))
  const { records } = childParts(run.parts, delegation).stack
  const own = records.filter(({ name, mode }) => mode === 'guard' && !inherited.has(name))
  if (own.length > 0) store(run, call, 'guards', own)
}

/** Throws RESUME_GUARD_MISSING if a subagent that has not ended has lost a guard since it was started. */
export async function checkStartedChildren(
  parts: AgentParts,
  entries: readonly RecordEntry[],
  check: (child: AgentParts, hooks: readonly HookRecord[]) => void,
): Promise<void> {
  const calls = new Map(entries.flatMap((each) => (each.type === 'begin' ? [[each.key, each.input] as const] : [])))
  for (const entry of entries) {
    if (entry.type !== 'end' || !entry.key.endsWith('/guards') || !('value' in entry)) continue
    if (calls.has(entry.key.replace(/guards$/, 'subagent'))) continue
    const delegation = await delegationTo({ parts }, calls.get(entry.key) as never).catch(() => undefined)
    if (delegation !== undefined) check(childParts(parts, delegation), entry.value as never)
  }
}

/** Adds the time that subagents running together have waited for approval: the run waited as long as the longest. */
export function takeWaiting(run: RunContext, calls: readonly ActiveCall[]): void {
  const waited = calls.map((call) => {
    const child = childOf(call)
    return child === undefined ? 0 : takeSpent(run, child)
  })
  run.addWaited(Math.max(0, ...waited))
}

function takeOver(run: RunContext, child: ChildRun): void {
  run.addWaited(takeSpent(run, child))
}

/** Bills the run for what a subagent has spent since the last time. Returns how long it has waited since. */
function takeSpent(run: RunContext, child: ChildRun): number {
  const { spent, waitedMs } = child.report()
  run.open!.countChild(spent)
  return waitedMs
}

async function fireStop(
  run: RunContext,
  { call, tool, child }: { readonly call: ActiveCall; readonly tool: Tool; readonly child: ChildRun },
): Promise<Invocation | undefined> {
  const { status, outcome } = child.end
  const subagent = Object.freeze({ name: child.place.agent, call: call.id, status, spent: child.spent })
  const facts = { outcome, output: resultOf(run, child, tool).output, subagent }
  return fireTrigger(run, 'onSubagentStop', facts, { index: call.index, toolName: call.name })
}

function isWithheld({ blocked, failure }: Invocation): boolean {
  return blocked !== undefined || failure !== undefined
}

function applyDecision(result: ToolExecution, invocation: Invocation | undefined): ToolExecution {
  if (invocation === undefined) return result
  const { blocked, failure, facts } = invocation
  if (blocked !== undefined) return withheldExecution(result, blocked.by, blocked.message)
  if (failure !== undefined) return withheldExecution(result, 'hookloop', modelText(failure))
  const output = facts['output'] as ToolExecution['output']
  // Only what hooks have changed: the result itself may be another one by now, because the subagent was stopped.
  return output === invocation.start.facts['output'] ? result : Object.freeze({ ...result, output })
}

function withUsage(execution: ToolExecution, { steps: _steps, toolCalls: _calls, ...usage }: Usage): ToolExecution {
  return Object.freeze({ ...execution, usage })
}

/** The result of a subagent as the model of its parent gets it. */
function resultOf(run: RunContext, child: ChildRun, tool: Tool): ToolExecution {
  const shape = { maxChars: tool.maxOutputChars, redact: run.parts.redact }
  const { status, outcome, message } = child.end
  const { output } = child
  const who = `The subagent "${child.place.agent}"`
  const why = message || outcome.stopReason || ''
  switch (status) {
    case 'completed':
      return toExecution(output === '' ? `${who} gave no answer.` : output, shape)
    case 'stopped': {
      if (outcome.stopReason === 'inputBlocked')
        return blockedExecution(outcome.resolvedBy ?? '', `${who} was not started: ${why}`)
      const stopped = `${who} was stopped by "${outcome.resolvedBy}" before it had finished: ${why}`
      if (typeof output !== 'string' || output === '') return failedExecution(stopped)
      return toExecution(`${stopped}\nIts answer so far:\n${output}`, shape)
    }
    case 'failed':
      return failedExecution(`${who} failed: ${why}`)
    case 'cancelled':
      return Object.freeze({
        status: 'outcomeUnknown',
        output: `The run was cancelled while ${who.replace('The', 'the')} was running. It may have had an effect.`,
      })
    default:
      return status satisfies never
  }
}

/** How a subagent ended, for `explain`. */
function endOf(child: ChildRun, spent = noUsage) {
  const { outcome } = child.end
  const { steps, toolCalls, inputTokens, outputTokens, costUsd } = spent
  return {
    agent: child.place.agent,
    by: outcome.resolvedBy ?? '',
    reason: outcome.stopReason ?? 'completed',
    steps,
    toolCalls,
    tokens: inputTokens + outputTokens,
    costUsd,
  }
}

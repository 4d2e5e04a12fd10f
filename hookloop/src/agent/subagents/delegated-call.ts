import type { ToolExecution } from '../../state/tool-call.ts'
import { noUsage, type Usage } from '../../state/usage.ts'
import { messageOf } from '../../errors.ts'
import type { Invocation } from '../../hooks/invocation.ts'
import { isFatal } from '../../hooks/run-hooks.ts'
import type { AgentSpec } from './agent-tool.ts'
import type { Share } from './child-budget.ts'
import { ChildRun, type Delegated } from './child-run.ts'
import { isAgent } from './known-agents.ts'
import type { RunContext } from '../loop/run-context.ts'
import { toToolCall, type ActiveCall } from '../loop/open-step.ts'
import type { Tool } from '../tool.ts'
import { blockedExecution, failedExecution, toExecution, withheldExecution } from '../tools/result.ts'

/** No agent is inside of more than so many others, whatever their tools say. */
const MAX_LEVEL = 16

type Place = { readonly call: ActiveCall; readonly tool: Tool; readonly parsed: unknown }

/**
 * Sets the agent to work that a call is for, and waits until it is about to end or waits for a person. Everything it does
 * is an effect of the run, so the call itself is none. Gives a result only if there is no such agent.
 */
export async function startChild(run: RunContext, at: Place, share: Share): Promise<ToolExecution | undefined> {
  const { call, tool } = at
  call.ran = true
  run.effects.emit?.({ type: 'toolStarted', step: run.step, call: toToolCall(call) })
  noteUnwrapped(run, call)
  try {
    if (run.parts.level >= MAX_LEVEL) throw new Error(`Agents are at most ${MAX_LEVEL} deep inside each other.`)
    const delegated = delegatedBy(run, tool, at.parsed)
    noteMissing(run, delegated)
    await working(call, ChildRun.begin(run, call, { delegated, share })).arrived()
    return undefined
  } catch (thrown) {
    return failedExecution(messageOf(thrown))
  }
}

/** Goes on with an agent that waited for a person, and waits until it is about to end or waits again. */
export async function resumeChild(run: RunContext, call: ActiveCall): Promise<ToolExecution | undefined> {
  const tool = run.parts.tools.get(call.name)
  call.ran = true
  try {
    const parsed = await tool!.parse(call.args)
    if ('problem' in parsed) throw new Error(parsed.problem)
    const delegated = delegatedBy(run, tool!, parsed.value)
    await working(call, ChildRun.resume(run, call, { delegated, answers: call.answers ?? {} })).arrived()
    return undefined
  } catch (thrown) {
    return failedExecution(messageOf(thrown))
  }
}

/** The agents that are at work, by the call they work for. */
const atWork = new WeakMap<ActiveCall, ChildRun>()

function working(call: ActiveCall, child: ChildRun): ChildRun {
  atWork.set(call, child)
  return child
}

/** The agent that has worked for a call since the run began or went on, if one has. */
export function childOf(call: ActiveCall): ChildRun | undefined {
  return atWork.get(call)
}

/** Which agent a call is for. Throws what the tool throws for a model to read. */
export function delegatedBy(run: Pick<RunContext, 'parts'>, tool: Tool, parsed: unknown): Delegated {
  const { level, toolNames } = run.parts
  return tool.delegate!(parsed as never, { depth: level, tools: toolNames })
}

/** Tools that an agent was to have and nobody can give it: it works without them, and people should know. */
function noteMissing(run: RunContext, { name, to }: Delegated): void {
  const { tools = [] }: AgentSpec = isAgent(to) ? {} : to
  const missing = tools.filter((tool) => !tool.includes('*') && !run.parts.tools.has(tool))
  if (missing.length === 0) return
  const message = `The subagent "${name}" was to have tools that its parent has not: ${missing.join(', ')}.`
  run.noteLoop('aroundInference', { decision: 'warning', message })
}

/** Hooks around a call change an effect, and this is none: what it consists of are. */
function noteUnwrapped(run: RunContext, call: ActiveCall): void {
  const message = 'a call that an agent works for is not wrapped; the calls of that agent may be'
  for (const hook of run.parts.stack.plan('aroundToolUse', call.name).arounds) {
    const place = { plan: run.parts.stack.plan('aroundToolUse'), callIndex: call.index }
    run.note(place, hook, 0, { decision: 'skipped', message })
  }
}

/**
 * onSubagentStop, for as long as somebody wants more of the agent; then the result of the call. Gives nothing when the
 * agent waits for a person: the call then does, too.
 */
export async function concludeChild(
  run: RunContext,
  at: { readonly call: ActiveCall; readonly tool: Tool; readonly child: ChildRun },
): Promise<ToolExecution | undefined> {
  const { call, tool, child } = at
  let firing: Invocation | undefined
  for (let steps = -1; ;) {
    takeOver(run, child)
    if (child.isSuspended) {
      call.child = child.save()
      delete call.answers
      return undefined
    }
    const hasGoneOn = child.run.state.stepCount !== steps
    if (!hasGoneOn) break // it was asked for more, and its limits did not let it
    steps = child.run.state.stepCount
    firing = await fireStop(run, at)
    const wanted = firing === undefined || isWithheld(firing) || run.stoppedBy() !== undefined ? [] : firing.votes
    if (wanted.length === 0 || !child.canGoOn) break
    await child.answer(wanted)
  }
  const { status, outcome, message } = child.end
  const spent = child.spent
  const result = withUsage(judged(resultOf(run, child, tool), firing), spent)
  await child.answer([])
  takeOver(run, child)
  const fatal = child.run.failure
  if (fatal !== undefined && isFatal(fatal)) run.fail(fatal, 'aroundToolUse')
  run.noteLoop('onSubagentStop', {
    call: call.id,
    decision: status,
    message: message || (outcome.stopReason ?? ''),
    value: endOf(child, spent),
  })
  return result
}

/** The longest that any of the agents that worked together has waited for a person: so long waited the run. */
export function takeWaiting(run: RunContext, calls: readonly ActiveCall[]): void {
  const waited = calls.map((call) => {
    const child = childOf(call)
    return child === undefined ? 0 : takeSpent(run, child)
  })
  addWaited(run, Math.max(0, ...waited))
}

function takeOver(run: RunContext, child: ChildRun): void {
  addWaited(run, takeSpent(run, child))
}

/** Bills the run for what an agent has spent since it was billed last. Gives the time that agent has waited since. */
function takeSpent(run: RunContext, child: ChildRun): number {
  const { spent, waitedMs } = child.tell()
  run.open!.bill(spent)
  return waitedMs
}

function addWaited(run: RunContext, ms: number): void {
  if (ms > 0) run.updateExecution({ waitedMs: run.execution.waitedMs + ms })
}

async function fireStop(
  run: RunContext,
  { call, tool, child }: { readonly call: ActiveCall; readonly tool: Tool; readonly child: ChildRun },
): Promise<Invocation | undefined> {
  const { status, outcome } = child.end
  const subagent = Object.freeze({ name: child.place.agent, call: call.id, status, spent: child.spent })
  const facts = { outcome, output: resultOf(run, child, tool).output, subagent }
  return run.fire('onSubagentStop', facts, { index: call.index, toolName: call.name })
}

function isWithheld({ blocked, failure }: Invocation): boolean {
  return blocked !== undefined || failure !== undefined
}

function judged(result: ToolExecution, firing: Invocation | undefined): ToolExecution {
  if (firing?.blocked !== undefined) return withheldExecution(result, firing.blocked.by, firing.blocked.message)
  if (firing?.failure !== undefined) return withheldExecution(result, 'hookloop', firing.failure.message)
  if (firing === undefined) return result
  const output = firing.facts['output'] as ToolExecution['output']
  return output === result.output ? result : Object.freeze({ ...result, output })
}

function withUsage(execution: ToolExecution, { steps: _steps, toolCalls: _calls, ...usage }: Usage): ToolExecution {
  return Object.freeze({ ...execution, usage })
}

/** What the model is told that the agent has come to. */
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
      return toExecution(`${stopped}\nThis is how far it came:\n${output}`, shape)
    }
    case 'failed':
      return failedExecution(`${who} failed: ${why}`)
    case 'cancelled':
      return Object.freeze({
        status: 'outcomeUnknown',
        output: `The run was cancelled while ${who.replace('The', 'the')} was at work. It may have had an effect.`,
      })
    default:
      return status satisfies never
  }
}

/** What `explain` says about the end of an agent. */
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

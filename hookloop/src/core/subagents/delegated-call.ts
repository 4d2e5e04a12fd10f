import type { HookRecord } from '../state/execution.ts'
import {
  countVotes,
  isForbidden,
  MAX_CONTINUATIONS,
  MAX_CONTINUATIONS_IN_ROW,
  stopMessage,
  type ContinuationOutcome,
} from '../state/continuation.ts'
import { textOfJson, type Json } from '../../values/json.ts'
import { failedExecution, withheldExecution, type ToolExecution } from '../state/tool-call.ts'
import { addUsage, totalTokens } from '../state/usage.ts'
import type { Effect } from '../effects/journal.ts'
import { keyId, type EffectKey, type EffectPath } from '../effects/keys.ts'
import type { RunLog } from '../effects/log.ts'
import { messageOf } from '../../errors.ts'
import { isAgent, type AgentParts } from '../agent/agent-parts.ts'
import { fireTrigger, withheldBy } from '../context/fire-trigger.ts'
import { toToolCall } from '../context/open-step.ts'
import type { RunContext } from '../context/run-context.ts'
import type { Tool } from '../agent/tool.ts'
import type { Judged } from '../tools/judge-call.ts'
import type { AgentSpec } from '../agent/agent-tool.ts'
import { childParts } from './child-parts.ts'
import {
  childPath,
  noteInside,
  runChild,
  type BudgetShare,
  type ChildEnd,
  type ChildStart,
  type Delegation,
} from './child-run.ts'
import { cutOff } from './cut-off.ts'

/** How deep subagents can be nested, whatever their tools allow. */
const MAX_LEVEL = 16

/** The call of a subagent: an effect whose effects are a part of the same journal. */
export async function delegatedCall(
  run: RunContext,
  judged: Judged,
  share: BudgetShare,
): Promise<ToolExecution | ChildEnd> {
  const { tool, parsed, begun } = judged
  noteSkippedArounds(run, judged)
  let delegation: Delegation | undefined
  try {
    if (run.parts.level >= MAX_LEVEL) throw new Error(`Subagents can be nested ${MAX_LEVEL} levels deep at most.`)
    delegation = begun === undefined ? delegationOf(run, tool!, parsed) : await delegationTo(run, callOf(judged))
    childParts(run.parts, delegation)
    noteMissing(run, delegation)
  } catch (thrown) {
    if (begun === undefined) return failedExecution(messageOf(thrown))
    delegation = undefined // the agent no longer has the subagent
  }
  return performChild(run, judged, { n: 0, delegation, share })
}

/** The call: as it began, if it has. */
function callOf({ call: { name, args }, begun }: Judged): { readonly name: string; readonly args: Json } {
  return begun === undefined
    ? { name, args }
    : (begun.first.begin!.input as { readonly name: string; readonly args: Json })
}

type Performing = Omit<ChildStart, 'call' | 'delegation' | 'maxChars'> & { readonly delegation: Delegation | undefined }

async function performChild(run: RunContext, judged: Judged, performing: Performing): Promise<ChildEnd> {
  const { call, tool, begun } = judged
  const { n, delegation } = performing
  const began = begun?.first.begin?.input as { readonly agent: string } | undefined
  const agent = delegation?.name ?? began?.agent ?? ''
  const path = childPath(run, { call, n, agent })
  const { log } = run.effects.journal
  const effect: Effect = {
    key: keyOf(run, call.id, n),
    input: () => ({ name: call.name, args: call.args, agent, guards: ownGuards(run.parts, delegation) as Json }),
    unknown: delegation === undefined ? () => cutOff(log, { path, n, agent }) : undefined,
  }
  if (begun === undefined && n === 0)
    run.effects.emit?.({ type: 'toolStarted', step: run.step, at: run.now, call: toToolCall(call) })
  let hasRun = false
  const end = (await run.effects.perform<Json>(effect, async () => {
    hasRun = true
    return runChild(run, { ...performing, call, delegation: delegation!, maxChars: tool!.maxOutputChars })
  })) as unknown as ChildEnd
  if (!hasRun) {
    const { ledger: entries, state } = log.scope(path)
    noteInside(call, { agent, step: run.step, call: call.id }, { entries, state })
  }
  run.spend(end.usage)
  for (const what of end.stillRunning ?? []) run.noteStillRunning(`${what} of the subagent "${agent}"`)
  return end
}

function keyOf({ step }: RunContext, call: string, n: number): EffectKey {
  return { step, kind: 'child', call, n }
}

/**
 * onSubagentStop: hooks of the parent may have the subagent continue. Whether it did is a fact if it is recorded. Returns the
 * result of the call.
 */
export async function concludeChild(run: RunContext, judged: Judged, end: ChildEnd): Promise<ToolExecution> {
  const { call } = judged
  let [last, spent, inRow] = [end, end.usage, 0]
  for (;;) {
    const { status, outcome, agent, n, execution } = last
    const subagent = Object.freeze({ name: agent, call: call.id, status, spent })
    const facts = { outcome, output: execution.output, subagent }
    const fired = await fireTrigger(run, 'onSubagentStop', facts, { call: { id: call.id, toolName: call.name } })
    const requests = fired?.votes.filter(({ decision }) => decision === 'requestContinuation') ?? []
    const hasContinued = run.effects.scopeLog.find(keyOf(run, call.id, n + 1)) !== undefined
    const delegation = await delegationTo(run, callOf(judged)).catch(() => undefined)
    const withheld = fired && withheldBy(fired)
    const isRequested = requests.length > 0 && withheld === undefined && delegation !== undefined
    const mayContinue =
      isRequested &&
      !isForbidden(outcome) &&
      n < MAX_CONTINUATIONS &&
      inRow < MAX_CONTINUATIONS_IN_ROW &&
      run.stoppedBy() === undefined
    if (!hasContinued && !mayContinue) {
      const { resolvedBy: by = '', stopReason: reason = 'completed' } = outcome
      const { steps, toolCalls, ...tokens } = spent
      const { costUsd } = spent
      const value = { agent, by, reason, steps, toolCalls, tokens: totalTokens(spent), costUsd }
      run.noteLoop('onSubagentStop', { call: call.id, decision: status, message: last.message || reason, value })
      const counted = countVotes([...outcome.evaluations, ...requests])
      const isApproved = status !== 'completed' || counted.stopReason === outcome.stopReason
      const own = isApproved ? execution : unapproved(agent, counted, execution)
      const result = Object.freeze({ ...own, usage: tokens })
      if (withheld !== undefined) return withheldExecution(result, withheld.by, withheld.message)
      const output = fired?.facts['output'] as ToolExecution['output'] | undefined
      return output === undefined || output === execution.output ? result : Object.freeze({ ...result, output })
    }
    const request = requests.map(({ message }) => message).join('\n\n') || 'Continue.'
    last = await performChild(run, judged, { n: n + 1, delegation, share: { index: 0, of: 1 }, request })
    run.ledgerOf.adopt(call)
    spent = addUsage(spent, last.usage)
    inRow = last.hasWorked === true ? 0 : inRow + 1
  }
}

/** A subagent that was stopped as if it were complete, although a hook of its parent had asked for more. */
function unapproved(agent: string, outcome: ContinuationOutcome, { output }: ToolExecution): ToolExecution {
  const by = outcome.resolvedBy ?? 'hookloop'
  const text = `The subagent "${agent}" was stopped by "${by}" before it had finished: ${stopMessage(outcome)}`
  return Object.freeze({ status: 'ok', output: `${text}\nIts answer so far:\n${textOfJson(output)}` })
}

/** The guards that only the subagent has: none of them may be missing when another process continues it. */
function ownGuards(parts: AgentParts, delegation: Delegation | undefined): readonly HookRecord[] {
  if (delegation === undefined) return []
  const inherited = new Set(parts.plans.records.map(({ name }) => name))
  const { records } = childParts(parts, delegation).plans
  return records.filter(({ name, mode }) => mode === 'guard' && !inherited.has(name))
}

/** Calls a function for each subagent that has not ended, with the guards that it started with. */
export async function checkStartedChildren(
  parts: AgentParts,
  log: RunLog,
  check: (child: AgentParts, hooks: readonly HookRecord[]) => void,
): Promise<void> {
  const scopes = [...log.scopes.values()] // finding the parts of a subagent may add more
  for (const { path, entries } of scopes) {
    for (const { key, begin, end } of entries.values()) {
      if (key.kind !== 'child' || end !== undefined || begin === undefined) continue
      const { guards = [], agent } = begin.input as { readonly guards?: readonly HookRecord[]; readonly agent: string }
      const child = await partsAt(parts, log, [...path, { step: key.step, call: key.call!, n: Number(key.n), agent }])
      if (child !== undefined) check(child, guards)
    }
  }
}

/** The parts of the subagent at a path of a run. Undefined if the agent does not have it any more. */
export async function partsAt(parts: AgentParts, log: RunLog, path: EffectPath): Promise<AgentParts | undefined> {
  let found: AgentParts | undefined = parts
  for (const [i, { step, call, n }] of path.entries()) {
    const { entries } = log.scope(path.slice(0, i))
    const input = entries.get(keyId({ step, kind: 'child', call, n }))?.begin?.input
    if (found === undefined || input === undefined) return undefined
    const to: Delegation | undefined = await delegationTo({ parts: found }, input as never).catch(() => undefined)
    found = to && childParts(found, to)
  }
  return found
}

/** The subagent of a call. Rejects if the agent does not have it. */
async function delegationTo(
  run: Pick<RunContext, 'parts'>,
  call: { readonly name: string; readonly args: Json },
): Promise<Delegation> {
  const tool = run.parts.tools.get(call.name)
  if (tool?.delegate === undefined) throw new Error(`the agent no longer has the tool "${call.name}"`)
  const parsed = await tool.parse(call.args)
  if ('problem' in parsed) throw new Error(parsed.problem)
  return delegationOf(run, tool, parsed.value)
}

/** The subagent of a call. Throws what the tool throws, as a message for the model. */
function delegationOf(run: Pick<RunContext, 'parts'>, tool: Tool, parsed: unknown): Delegation {
  const { level, toolNames: tools } = run.parts
  return tool.delegate!(parsed as never, { depth: level, tools })
}

/** Warns about tools that the definition of a subagent names and its parent does not have. */
function noteMissing(run: RunContext, { name, to }: Delegation): void {
  const { tools = [] }: AgentSpec = isAgent(to) ? {} : to
  const missing = tools.filter((tool) => !tool.includes('*') && !run.parts.tools.has(tool))
  if (missing.length === 0) return
  const message = `The subagent "${name}" names tools that its parent does not have: ${missing.join(', ')}.`
  run.noteLoop('aroundInference', { warnings: [{ code: 'TOOLS_MISSING', message }] })
}

/** Around hooks wrap an effect that is not repeated as a whole, and the call of a subagent is. */
function noteSkippedArounds(run: RunContext, { call }: Judged): void {
  const message = 'around hooks do not apply to the call of a subagent, only to the calls that the subagent makes'
  for (const hook of run.parts.plans.of('aroundToolUse', call.name).arounds)
    run.note({ plan: { trigger: 'aroundToolUse' }, call: call.id }, hook, 0, { decision: 'skipped', message })
}

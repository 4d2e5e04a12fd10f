import { freezeParsed, type Parsed } from '../../values/parse-schema.ts'
import { inexactNumber, isJsonObject, type Json } from '../../values/json.ts'
import { shorten } from '../../values/text.ts'
import {
  blockedExecution,
  failedExecution,
  rejectedExecution,
  stoppedExecution,
  type Ask,
  type ToolCall,
  type ToolExecution,
} from '../state/tool-call.ts'
import { isLeftByLimit, type TimeLimit } from '../effects/effects.ts'
import { passes } from '../effects/journal.ts'
import type { Entry } from '../effects/log.ts'
import { messageOf } from '../../errors.ts'
import type { FactValues } from '../hooks/base-context.ts'
import { modelText } from '../hooks/failure-text.ts'
import { Invocation } from '../hooks/invocation.ts'
import type { AgentParts } from '../agent/agent-parts.ts'
import { applyGuards, applyTransforms } from '../context/fire-trigger.ts'
import { toToolCall, type ActiveCall } from '../context/open-step.ts'
import type { RunContext } from '../context/run-context.ts'
import type { Tool } from '../agent/tool.ts'

/** A call after beforeToolUse. */
export type Judged = {
  readonly call: ActiveCall
  readonly tool: Tool | undefined
  /** Its attempts, if it has begun: in this step, by this process or an earlier one. */
  readonly begun: Begun | undefined
  /** It was interrupted, and the question is whether it runs again: how often it was interrupted. */
  readonly interruptions: number | undefined
  /** What the tool gets. */
  readonly parsed?: unknown
  readonly asks: readonly Ask[]
  /** Who is against it, and its result, unless it has begun. */
  readonly refusal?: { readonly by: string; readonly result: ToolExecution } | undefined
  /** Whether every guard agrees, now, to run it with these arguments. */
  readonly isAgreed: boolean
}

/** The result of a call that does not run, and has not begun. */
export function refusedResult({ begun, refusal }: Judged): ToolExecution | undefined {
  return begun === undefined ? refusal?.result : undefined
}

type Begun = { readonly first: Entry; readonly last: Entry }

/** How long an asynchronous schema may take. */
const PARSE_MS = 60_000
const none: readonly never[] = Object.freeze([])

/**
 * beforeToolUse: hooks change the arguments, the schema parses them once, guards decide on what the tool will get. What they
 * decide about a call that has begun has no effect.
 */
export async function judgeCall(run: RunContext, call: ActiveCall): Promise<Judged> {
  const { id, name } = call
  const begun = run.effects.scopeLog.begun(id)
  const tool = run.parts.tools.get(name)
  const judged: Judged = {
    call,
    tool,
    begun,
    interruptions: lostAttempts(run, begun, tool),
    asks: none,
    isAgreed: false,
  }
  const stopped = run.stoppedBy()
  if (stopped !== undefined && begun === undefined) return refused(judged, stoppedExecution(stopped))
  run.spend({ toolCalls: 1 })
  const { offered } = run.open!
  // A hook may have left out hundreds of others.
  const usable = offered.join(', ') || 'none, there are no tools'
  if (tool === undefined) return unusable(run, judged, `There is no tool "${name}". Use one of: ${usable}.`)
  if (!offered.includes(name)) return unusable(run, judged, `The tool "${name}" was not offered in this step.`)
  if (!isJsonObject(call.args)) return unusable(run, judged, argsProblem(call.args))
  const plan = run.parts.plans.of('beforeToolUse', name)
  const invocation = new Invocation(run, plan, run.state, { toolCall: toToolCall(call) }, id)
  if (plan.transforms.length > 0) {
    invocation.fits = (asked) => argsFit(run, tool, invocation, asked?.byShadow === true)
    await applyTransforms(run, invocation)
  }
  return decide(run, judged, tool, invocation)
}

/**
 * A call whose question was answered, or that was put off: time has passed, so guards judge it again. Transforms do not run
 * again: `args` are what was approved.
 */
export async function judgeAgain(run: RunContext, judged: Judged, args: Json): Promise<Judged> {
  const { call, begun, tool } = judged
  const stopped = run.stoppedBy()
  if (stopped !== undefined && begun === undefined) return refused(judged, stoppedExecution(stopped))
  const plan = run.parts.plans.of('beforeToolUse', call.name)
  const invocation = new Invocation(run, plan, run.state, { toolCall: toolCallOf(call, args) }, call.id)
  return decide(run, { ...judged, refusal: undefined }, tool!, invocation)
}

async function argsFit(run: RunContext, tool: Tool, invocation: Invocation, byShadow: boolean): Promise<boolean> {
  const { id, args } = invocation.facts['toolCall'] as ToolCall
  const parsed = tool.parse(args)
  if (!(parsed instanceof Promise)) return isValid(parsed)
  if (byShadow) return parsed.then(isValid, () => false) // shadow hooks must not be recorded
  return run.effects.withTimeout(parsed, parseLimit(run, id, 'fits')).then(isValid, () => false)
}

/** Parses the arguments, and lets the guards decide on them: block > stop > ask > allow > no opinion. */
async function decide(run: RunContext, judged: Judged, tool: Tool, invocation: Invocation): Promise<Judged> {
  const { call, begun, interruptions } = judged
  call.args = (invocation.facts['toolCall'] as ToolCall).args
  let value: unknown
  if (invocation.failure === undefined && invocation.blocked === undefined) {
    const parsed = await parseArgs(run, tool, call)
    if ('problem' in parsed) {
      // Guards have nothing to decide, but state changes of hooks apply.
      await applyGuards(run, invocation, none)
      const isChanged = call.args !== call.originalArgs
      const warning = `A hook changed the arguments of "${call.name}", and they do not fit: ${parsed.problem}`
      const message = `The arguments do not fit the tool "${call.name}": ${parsed.problem}`
      return unusable(run, judged, message, isChanged ? warning : undefined)
    }
    const { value: given, share } = freezeParsed(parsed.value, call.args)
    value = given
    invocation.update(
      invocation.state,
      share === undefined ? { toolCall: toolCallOf(call, given) } : shared(call, share),
    )
  }
  await applyGuards(run, invocation)
  const { blocked, failure } = invocation
  if (blocked !== undefined) return refused(judged, blockedExecution(blocked.by, blocked.message), blocked.by)
  if (failure !== undefined)
    return refused(judged, rejectedExecution(failedExecution(`Not run: ${modelText(failure)}`)))
  const stopped = run.stoppedBy()
  if (stopped !== undefined && begun === undefined) return refused(judged, stoppedExecution(stopped))
  const asks = asksAbout(run.parts, tool, invocation)
  if (interruptions === undefined) return { ...judged, parsed: value, asks, isAgreed: asks.length === 0 }
  const by = tool.onUnknownOutcome === 'ask' ? `tool "${tool.name}"` : 'approval'
  const again = Object.freeze({ by, message: questionAbout(call.name, interruptions) })
  return { ...judged, parsed: value, asks: [...asks, again], isAgreed: false }
}

async function parseArgs(run: RunContext, tool: Tool, { id, args }: ActiveCall): Promise<Parsed> {
  try {
    const parsed = tool.parse(args)
    return parsed instanceof Promise ? await run.effects.withTimeout(parsed, parseLimit(run, id, 'parse')) : parsed
  } catch (thrown) {
    if (passes(thrown)) throw thrown
    if (isLeftByLimit(thrown)) run.noteStillRunning(`schema of the tool "${tool.name}"`)
    return { problem: `the schema failed: ${messageOf(thrown)}` }
  }
}

function parseLimit({ effects, step }: RunContext, call: string, n: 'parse' | 'fits'): TimeLimit {
  return { ms: PARSE_MS, key: effects.keyOf({ step, kind: 'timeout', call, trigger: 'beforeToolUse', n }) }
}

/** How often a call was interrupted, if an approver is asked whether it runs again. */
function lostAttempts({ parts }: RunContext, begun: Begun | undefined, tool: Tool | undefined): number | undefined {
  if (begun === undefined || begun.last.key.kind !== 'tool') return undefined
  const n = Number(begun.last.key.n)
  if (begun.last.end !== undefined) return n === 0 ? undefined : n // it was asked about before the last attempt
  const policy = tool?.onUnknownOutcome ?? parts.approval.onUnknownOutcome
  return policy === 'ask' && !mayRepeat(tool, begun) ? n + 1 : undefined
}

/** Whether a call was declared idempotent when it began, and is so now. */
export function mayRepeat(tool: Tool | undefined, { last }: Begun): boolean {
  return tool?.idempotent === true && last.begin?.idempotent === true
}

function questionAbout(name: string, times: number): string {
  const started = times === 1 ? 'was started' : `was started ${times} times`
  return `"${name}" ${started} and interrupted before its result was known: it may have had an effect. Run it again?`
}

/** The questions of guards, of a tool with `ask`, and of `approval`. A guard may answer the latter with `allow`. */
function asksAbout({ approval }: AgentParts, tool: Tool, invocation: Invocation): readonly Ask[] {
  const { asks, allowed, defaultAsks } = invocation
  if (allowed !== undefined) return asks
  const by = tool.ask ? `tool "${tool.name}"` : approval.asksAbout(tool.name) ? 'approval' : undefined
  if (by !== undefined) return [...asks, ...defaultAsks, Object.freeze({ by, message: `Run "${tool.name}"?` })]
  return defaultAsks.length === 0 ? asks : [...asks, ...defaultAsks]
}

/** A call that cannot run as it is: the model gets the message, and the ledger has it. */
function unusable(run: RunContext, judged: Judged, message: string, warning?: string): Judged {
  if (judged.begun === undefined)
    run.noteLoop('beforeToolUse', {
      call: judged.call.id,
      decision: 'failed',
      message,
      ...(warning !== undefined && { warnings: [{ code: 'HOOK_OUTCOME_INVALID', message: warning }] }),
    })
  return refused(judged, rejectedExecution(failedExecution(message)))
}

/** A call that does not run, unless it has begun. */
export function refused(judged: Judged, result: ToolExecution, by = 'hookloop'): Judged {
  return { ...judged, parsed: undefined, asks: none, isAgreed: false, refusal: { by, result } }
}

function argsProblem(args: Json): string {
  const inexact = typeof args === 'string' ? inexactNumber(args) : undefined
  if (inexact === undefined) return 'The arguments must be a JSON object.'
  return `The arguments contain a number that cannot be represented exactly: ${shorten(inexact, 40)}. Write it as a string.`
}

function isValid(parsed: Parsed): boolean {
  return 'value' in parsed
}

function toolCallOf({ id, name }: ActiveCall, args: unknown): ToolCall<never> {
  return Object.freeze({ id, name, args: args as never })
}

/** Facts that give each reader a copy of its own. */
function shared(call: ActiveCall, share: () => unknown): FactValues {
  return {
    get toolCall() {
      return toolCallOf(call, share())
    },
  }
}

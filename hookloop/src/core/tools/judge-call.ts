import { freezeParsed, type Parsed } from '../../values/parse-schema.ts'
import { inexactNumber, isJsonObject, roundedInteger, type Json } from '../../values/json.ts'
import { shorten } from '../../values/text.ts'
import type { Ask, ToolCall, ToolExecution } from '../state/tool-call.ts'
import { isLeftByLimit, type TimeLimit } from '../effects/effects.ts'
import { passes } from '../effects/journal.ts'
import type { Entry } from '../effects/log.ts'
import { isIncomplete, messageOf } from '../../errors.ts'
import type { FactValues } from '../hooks/base-context.ts'
import { modelText } from '../hooks/failure-text.ts'
import { Invocation } from '../hooks/invocation.ts'
import type { AgentParts } from '../agent/agent-parts.ts'
import { applyTransforms, finishInvocation } from '../context/fire-trigger.ts'
import { toToolCall, type ActiveCall } from '../context/open-step.ts'
import type { RunContext } from '../context/run-context.ts'
import type { Tool } from '../agent/tool.ts'
import { blockedExecution, failedExecution, rejectedExecution, stoppedExecution } from './result.ts'

/** A call after beforeToolUse. */
export type Judged = {
  readonly call: ActiveCall
  readonly tool: Tool | undefined
  /** What the tool gets. */
  readonly parsed: unknown
  readonly asks: readonly Ask[]
  /** Its attempts, if it has begun: in this step, by this process or an earlier one. */
  readonly begun: Begun | undefined
  /** It was interrupted, and the question is whether it runs again: how often it was interrupted. */
  readonly interruptions?: number | undefined
  /** Who is against it, and its result, unless it has begun. */
  readonly refusal?: { readonly by: string; readonly result: ToolExecution } | undefined
  /** Whether every guard agrees, now, to run it with these arguments. */
  readonly isAgreed: boolean
}

/** The result of a call that does not run, and has not begun. */
export function refusedResult({ begun, refusal }: Pick<Judged, 'begun' | 'refusal'>): ToolExecution | undefined {
  return begun === undefined ? refusal?.result : undefined
}

export type Begun = { readonly first: Entry; readonly last: Entry }

/** How long an asynchronous schema may take. */
const PARSE_MS = 60_000
const none: readonly never[] = Object.freeze([])

/**
 * beforeToolUse: hooks change the arguments, the schema parses them once, guards decide on what the tool will get. What they
 * decide about a call that has begun has no effect.
 */
export async function judgeCall(run: RunContext, call: ActiveCall): Promise<Judged> {
  const begun = run.effects.scopeLog.begun(call.id)
  const tool = run.parts.tools.get(call.name)
  const place = { call, begun, tool, interruptions: lostAttempts(run, begun, tool) }
  const stopped = run.stoppedBy()
  if (stopped !== undefined && begun === undefined) return rejected(place, stoppedExecution(stopped))
  run.spend({ toolCalls: 1 })
  if (tool === undefined) return unusable(run, place, `There is no tool "${call.name}". Use one of: ${offered(run)}.`)
  if (!run.open!.offered.includes(call.name)) {
    return unusable(run, place, `The tool "${call.name}" was not offered in this step.`)
  }
  if (!isJsonObject(call.args)) return unusable(run, place, argsProblem(call.args))
  const plan = run.parts.plans.of('beforeToolUse', call.name)
  const invocation = new Invocation(run, plan, run.state, { toolCall: toToolCall(call) }, call.id)
  const candidate = { ...place, tool }
  if (plan.transforms.length > 0) {
    invocation.fits = (asked) => argsFit(run, candidate, invocation, asked?.byShadow === true)
    await applyTransforms(run, invocation)
  }
  return parseAndDecide(run, candidate, invocation)
}

/**
 * A call whose question was answered, or that was put off: time has passed, so guards judge it again. Transforms do not run
 * again: `args` are what was approved.
 */
export async function judgeAgain(run: RunContext, judged: Judged, args: Json): Promise<Judged> {
  const { call, begun, interruptions } = judged
  const tool = judged.tool!
  const stopped = run.stoppedBy()
  if (stopped !== undefined && begun === undefined) return rejected(judged, stoppedExecution(stopped))
  const plan = run.parts.plans.of('beforeToolUse', call.name)
  const invocation = new Invocation(run, plan, run.state, { toolCall: toolCallOf(call, args) }, call.id)
  return parseAndDecide(run, { call, begun, tool, interruptions }, invocation)
}

type Place = Pick<Judged, 'call' | 'begun' | 'tool' | 'interruptions'>
type Candidate = Place & { readonly tool: Tool }

async function argsFit(
  run: RunContext,
  { call, tool }: Candidate,
  { facts }: Invocation,
  byShadow: boolean,
): Promise<boolean> {
  const parsed = tool.parse((facts['toolCall'] as ToolCall).args)
  if (!(parsed instanceof Promise)) return isValid(parsed)
  if (byShadow) return parsed.then(isValid, () => false) // shadow hooks must not be recorded
  return run.effects.withTimeout(parsed, parseLimit(run, call, 'fits')).then(isValid, () => false)
}

/** Parses the arguments, then lets the guards decide on them. */
async function parseAndDecide(run: RunContext, candidate: Candidate, invocation: Invocation): Promise<Judged> {
  const { call } = candidate
  call.args = (invocation.facts['toolCall'] as ToolCall).args
  if (invocation.failure !== undefined || invocation.blocked !== undefined) {
    return followDecision(run, candidate, await finishInvocation(run, invocation), undefined)
  }
  const parsed = await parseArgs(run, candidate)
  if ('problem' in parsed) {
    // Guards have nothing to decide, but state changes of hooks apply.
    await finishInvocation(run, invocation, none)
    const isChanged = call.args !== call.originalArgs
    const warning = `A hook changed the arguments of "${call.name}", and they do not fit: ${parsed.problem}`
    const message = `The arguments do not fit the tool "${call.name}": ${parsed.problem}`
    return unusable(run, candidate, message, isChanged ? warning : undefined)
  }
  const { value, facts } = parsedFacts(call, parsed.value)
  invocation.update(invocation.state, facts)
  return followDecision(run, candidate, await finishInvocation(run, invocation), value)
}

async function parseArgs(run: RunContext, { call, tool }: Candidate): Promise<Parsed> {
  try {
    const parsed = tool.parse(call.args)
    return parsed instanceof Promise ? await run.effects.withTimeout(parsed, parseLimit(run, call, 'parse')) : parsed
  } catch (thrown) {
    if (passes(thrown)) throw thrown
    if (isIncomplete(thrown)) run.fail(thrown, 'beforeToolUse')
    if (isLeftByLimit(thrown)) run.noteStillRunning(`schema of the tool "${call.name}"`)
    return { problem: `the schema failed: ${messageOf(thrown)}` }
  }
}

function parseLimit({ effects, step }: RunContext, { id }: ActiveCall, why: 'parse' | 'fits'): TimeLimit {
  const key = effects.keyOf({ step, kind: 'timeout', call: id, trigger: 'beforeToolUse', n: why })
  return { ms: PARSE_MS, key }
}

/** block > stop > ask > allow > no opinion. `parsed` is what the tool will get. */
function followDecision(run: RunContext, candidate: Candidate, invocation: Invocation, parsed: unknown): Judged {
  const { blocked, failure } = invocation
  const { begun, call, tool, interruptions } = candidate
  if (blocked !== undefined) return rejected(candidate, blockedExecution(blocked.by, blocked.message), blocked.by)
  if (failure !== undefined)
    return rejected(candidate, rejectedExecution(failedExecution(`Not run: ${modelText(failure)}`)), 'hookloop')
  const stopped = run.stoppedBy()
  if (stopped !== undefined && begun === undefined) return rejected(candidate, stoppedExecution(stopped))
  const asks = asksAbout(run.parts, candidate, invocation)
  if (interruptions === undefined) return { ...candidate, parsed, asks, isAgreed: asks.length === 0 }
  const by = tool.onUnknownOutcome === 'ask' ? `tool "${tool.name}"` : 'approval'
  const again = Object.freeze({ by, message: questionAbout(call.name, interruptions) })
  return { ...candidate, parsed, asks: [...asks, again], isAgreed: false }
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

function asksAbout(parts: AgentParts, { tool }: Candidate, invocation: Invocation): readonly Ask[] {
  const { asks, allowed, defaultAsks: byDefault } = invocation
  if (allowed !== undefined) return asks
  const more = defaultAsks(parts, tool)
  return byDefault.length === 0 && more.length === 0 ? asks : [...asks, ...byDefault, ...more]
}

/** The questions of a tool with `ask`, and of `approval`. A guard may answer them with `allow`. */
export function defaultAsks({ approval }: AgentParts, tool: Tool): readonly Ask[] {
  if (tool.ask) return [Object.freeze({ by: `tool "${tool.name}"`, message: `Run "${tool.name}"?` })]
  if (approval.asksAbout(tool.name)) return [Object.freeze({ by: 'approval', message: `Run "${tool.name}"?` })]
  return none
}

/** A call that cannot run as it is: the model gets the message, and the ledger has it. */
function unusable(run: RunContext, place: Place, message: string, warning?: string): Judged {
  if (place.begun === undefined)
    run.noteLoop('beforeToolUse', {
      call: place.call.id,
      decision: 'failed',
      message,
      ...(warning !== undefined && { warnings: [{ code: 'HOOK_OUTCOME_INVALID', message: warning }] }),
    })
  return rejected(place, rejectedExecution(failedExecution(message)), 'hookloop')
}

/** A call that does not run, unless it has begun. */
export function rejected({ call, begun, tool, interruptions }: Place, result: ToolExecution, by = 'hookloop'): Judged {
  const refusal = { by, result }
  return { call, begun, tool, interruptions, parsed: undefined, asks: none, isAgreed: false, refusal }
}

function argsProblem(args: Json): string {
  const text = typeof args === 'string' ? args : ''
  const inexact = inexactNumber(text)
  if (inexact !== undefined)
    return `The arguments contain a number that cannot be represented exactly: ${shorten(inexact, 40)}. Write it as a string.`
  const rounded = roundedInteger(text)
  if (rounded === undefined) return 'The arguments must be a JSON object.'
  return `The arguments contain an integer beyond 2^53, which may have been rounded: ${rounded}. Write it as a string.`
}

/** The tools that the model was offered. A hook may have left out hundreds of others. */
function offered(run: RunContext): string {
  return run.open!.offered.join(', ') || 'none, there are no tools'
}

function isValid(parsed: Parsed): boolean {
  return 'value' in parsed
}

type NamedCall = { readonly id: string; readonly name: string; readonly args: Json }

/** What the tool will get, and the facts that show it to guards. */
export function parsedFacts(call: NamedCall, parsed: unknown): { readonly value: unknown; readonly facts: FactValues } {
  const { value, share } = freezeParsed(parsed, call.args)
  return { value, facts: share === undefined ? { toolCall: toolCallOf(call, value) } : sharedFacts(call, share) }
}

function toolCallOf(call: NamedCall, args: unknown): ToolCall<never> {
  return Object.freeze({ id: call.id, name: call.name, args: args as never })
}

/** Facts that give each reader a copy of its own. */
function sharedFacts(call: NamedCall, share: () => unknown): FactValues {
  return {
    get toolCall() {
      return toolCallOf(call, share())
    },
  }
}

import { inexactNumber, isJsonObject, roundedInteger, type Json } from '../../state/json.ts'
import { shorten } from '../../state/text.ts'
import type { Answer, Ask, ToolCall, ToolExecution } from '../../state/tool-call.ts'
import { isLeftByLimit, type TimeLimit } from '../../effects/effects.ts'
import { isIncomplete, messageOf, toAgentError } from '../../errors.ts'
import { modelText } from '../../hooks/failure-text.ts'
import type { FactValues } from '../../hooks/base-context.ts'
import type { Invocation } from '../../hooks/invocation.ts'
import type { Plan } from '../../hooks/stack.ts'
import { andThen, orElse, type MaybePromise } from '../../state/thenable.ts'
import type { AgentParts } from '../agent-parts.ts'
import { applyTransforms, finishInvocation, startInvocation } from '../loop/fire-trigger.ts'
import { toToolCall, type ActiveCall } from '../loop/open-step.ts'
import type { RunContext } from '../loop/run-context.ts'
import type { Tool } from '../tool.ts'
import { freezeParsed, type Parsed } from './parse-schema.ts'
import { fingerprintOf, noteAnswer, requestApproval } from './request-approval.ts'
import { blockedExecution, failedExecution, rejectedExecution, stoppedExecution } from './result.ts'

/** What was decided about a call before it runs. */
export type Authorization =
  | { readonly status: 'ready'; readonly tool: Tool; readonly parsed: unknown }
  | { readonly status: 'done'; readonly result: ToolExecution }
  | { readonly status: 'waiting' }

/** How long an asynchronous schema may take. */
const PARSE_MS = 60_000

const none: readonly never[] = Object.freeze([])

/** beforeToolUse: hooks change the arguments, the schema parses them once, guards decide on what the tool will get. */
export function authorizeCall(run: RunContext, call: ActiveCall): MaybePromise<Authorization> {
  const stopped = run.stoppedBy()
  if (stopped !== undefined) return done(stoppedExecution(stopped))
  if (call.answer === undefined) run.open!.countCall()
  else noteAnswer(run, call, call.answer, call.approval?.message)
  if (typeof call.answer === 'object' && 'block' in call.answer) return denied(call.answer.block)
  const tool = run.parts.tools.get(call.name)
  if (tool === undefined) return unusable(run, call, `There is no tool "${call.name}". Use one of: ${offered(run)}.`)
  if (call.answer === undefined && !run.open!.offered.includes(call.name)) {
    return unusable(run, call, `The tool "${call.name}" was not offered in this step.`)
  }
  if (!isJsonObject(call.args)) return unusable(run, call, argsProblem(call.args))
  const candidate = { call, tool, plan: run.parts.stack.plan('beforeToolUse', call.name) }
  if (call.answer !== undefined) {
    return isShownTool(run, call) ? applyAnswer(run, candidate, call.answer) : askAgain(run, candidate)
  }
  const facts = { toolCall: toToolCall(call) }
  const invocation = startInvocation(run, candidate.plan, facts, { callIndex: call.index })
  if (candidate.plan.transforms.length === 0) return parseAndDecide(run, candidate, invocation)
  return parseTransformed(run, candidate, invocation)
}

/** For a call with transforms. Separate, so that a call without them allocates no closures. */
function parseTransformed(run: RunContext, candidate: Candidate, invocation: Invocation): MaybePromise<Authorization> {
  invocation.fits = (asked) => argsFit(run, candidate, invocation, asked?.byShadow === true)
  return andThen(applyTransforms(run, invocation), () => parseAndDecide(run, candidate, invocation))
}

type Candidate = {
  readonly call: ActiveCall
  readonly tool: Tool
  readonly plan: Plan
  /** Questions that no guard can answer. */
  readonly asks?: readonly Ask[]
}

function argsFit(
  run: RunContext,
  { call, tool }: Candidate,
  { facts }: Invocation,
  byShadow: boolean,
): MaybePromise<boolean> {
  const parsed = tool.parse((facts['toolCall'] as ToolCall).args)
  if (!(parsed instanceof Promise)) return isValid(parsed)
  if (byShadow) return parsed.then(isValid, () => false) // shadow hooks must not be recorded
  return run.effects.withTimeout(parsed, parseLimit(run, call, 'fits')).then(isValid, () => false)
}

/** Parses the arguments, then lets the guards decide on them. */
function parseAndDecide(run: RunContext, candidate: Candidate, invocation: Invocation): MaybePromise<Authorization> {
  const { call } = candidate
  call.args = (invocation.facts['toolCall'] as ToolCall).args
  if (invocation.failure !== undefined || invocation.blocked !== undefined) {
    return andThen(finishInvocation(run, invocation), followDecision, run, candidate, undefined)
  }
  return andThen(orElse(parseArgs, parseFailed, run, candidate), decideOnParsed, run, candidate, invocation)
}

function decideOnParsed(
  parsed: Parsed,
  run: RunContext,
  candidate: Candidate,
  invocation: Invocation,
): MaybePromise<Authorization> {
  const { call } = candidate
  if ('problem' in parsed) {
    // Guards have nothing to decide, but state changes of hooks apply.
    return andThen(finishInvocation(run, invocation, none), unfitting, run, call, parsed.problem)
  }
  const { value, facts } = parsedFacts(call, parsed.value)
  invocation.update(invocation.state, facts)
  return andThen(finishInvocation(run, invocation), followDecision, run, candidate, value)
}

function unfitting(_decided: Invocation, run: RunContext, call: ActiveCall, problem: string): Authorization {
  const isChanged = call.answer === undefined && call.args !== call.originalArgs
  const warning = `A hook changed the arguments of "${call.name}", and they do not fit: ${problem}`
  return unusable(
    run,
    call,
    `The arguments do not fit the tool "${call.name}": ${problem}`,
    isChanged ? warning : undefined,
  )
}

function parseArgs(run: RunContext, { call, tool }: Candidate): MaybePromise<Parsed> {
  const parsed = tool.parse(call.args)
  return parsed instanceof Promise ? run.effects.withTimeout(parsed, parseLimit(run, call, 'parse')) : parsed
}

function parseFailed(thrown: unknown, run: RunContext, { call }: Candidate): Parsed {
  if (isIncomplete(thrown)) run.fail(thrown, 'beforeToolUse')
  if (isLeftByLimit(thrown)) run.leave(`schema of the tool "${call.name}"`)
  return { problem: `the schema failed: ${messageOf(thrown)}` }
}

function parseLimit(run: RunContext, { index }: ActiveCall, why: 'parse' | 'fits'): TimeLimit {
  return { ms: PARSE_MS, key: () => `${run.place}/${index}/${why}` }
}

/** block > stop > ask > allow > no opinion. `value` is what the tool will get. */
function followDecision(
  invocation: Invocation,
  run: RunContext,
  candidate: Candidate,
  value: unknown,
): MaybePromise<Authorization> {
  const { call, tool } = candidate
  const { blocked, failure } = invocation
  if (blocked !== undefined) return done(blockedExecution(blocked.by, blocked.message))
  if (failure !== undefined) return notRun(modelText(failure))
  const stopped = run.stoppedBy()
  if (stopped !== undefined) return done(stoppedExecution(stopped))
  const asks = asksAbout(run.parts, candidate, invocation)
  if (asks.length === 0 || isAnswered(call, invocation)) return { status: 'ready', tool, parsed: value }
  return ask(run, candidate, { asks, parsed: value })
}

/**
 * Whether an answer covers what guards ask now. An approver who allowed the call has not seen the question of a guard that was
 * added since. One who edited the arguments has decided on these, and one who has it run again has approved it before.
 */
function isAnswered({ answer, approval, interruptions }: ActiveCall, { asks }: Invocation): boolean {
  if (answer !== 'allow' || approval === undefined || interruptions !== undefined) return answer !== undefined
  return asks.every(({ by }) => approval.asks.some((shown) => shown.by === by))
}

function asksAbout(parts: AgentParts, { tool, asks }: Candidate, invocation: Invocation): readonly Ask[] {
  if (asks !== undefined) return joined(invocation.asks, asks)
  if (invocation.allowed !== undefined) return invocation.asks
  return joined(invocation.asks, joined(invocation.defaultAsks, defaultAsks(parts, tool)))
}

/** Most calls have no question: nothing is copied for them. */
function joined(asks: readonly Ask[], more: readonly Ask[]): readonly Ask[] {
  return more.length === 0 ? asks : [...asks, ...more]
}

/** The questions of a tool with `ask`, and of `approval`. A guard may answer them with `allow`. */
export function defaultAsks({ approval }: AgentParts, tool: Tool): readonly Ask[] {
  if (tool.ask) return [Object.freeze({ by: `tool "${tool.name}"`, message: `Run "${tool.name}"?` })]
  if (approval.asksAbout(tool.name)) return [Object.freeze({ by: 'approval', message: `Run "${tool.name}"?` })]
  return none
}

async function ask(
  run: RunContext,
  candidate: Candidate,
  { asks, parsed }: { readonly asks: readonly Ask[]; readonly parsed: unknown },
): Promise<Authorization> {
  const { call, tool } = candidate
  try {
    const given = await requestApproval(run, call, asks)
    if (given === undefined) return { status: 'waiting' }
    return given === 'allow' ? { status: 'ready', tool, parsed } : await applyAnswer(run, candidate, given)
  } catch (thrown) {
    const error = toAgentError(thrown, 'HOOK_FAILED')
    run.fail(error, 'beforeToolUse')
    return notRun(error.message)
  }
}

/** The answer of an approver. An approval answers the questions about this value; a guard can still block it. */
function applyAnswer(run: RunContext, candidate: Candidate, answer: Answer): MaybePromise<Authorization> {
  const { call, plan } = candidate
  call.answer = answer
  if (typeof answer === 'object' && 'block' in answer) return denied(answer.block)
  const args = answer === 'allow' ? call.args : answer.allow
  const place = { callIndex: call.index, changes: false }
  return parseAndDecide(run, candidate, startInvocation(run, plan, { toolCall: toolCallOf(call, args) }, place))
}

/** Whether the tool is still the one that the approver was shown. */
function isShownTool({ parts }: RunContext, { name, approval }: ActiveCall): boolean {
  return approval === undefined || approval.tool === fingerprintOf(parts, name)
}

/** What was approved is not what would run now: the guards decide on it, and the approver is asked again. */
function askAgain(run: RunContext, { call, ...candidate }: Candidate): MaybePromise<Authorization> {
  const message = `The tool "${call.name}" has changed since this call was approved. Run it as it is now?`
  run.noteLoop('beforeToolUse', { call: call.id, decision: 'ask', message })
  const asks = [Object.freeze({ by: 'hookloop', message })]
  delete call.answer
  const place = { callIndex: call.index, changes: false }
  const facts = { toolCall: toolCallOf(call, call.args) }
  return parseAndDecide(run, { ...candidate, call, asks }, startInvocation(run, candidate.plan, facts, place))
}

/** A call that cannot run as it is: the model gets the message, and the ledger has it. */
function unusable(run: RunContext, call: ActiveCall, message: string, warning?: string): Authorization {
  run.noteLoop('beforeToolUse', {
    call: call.id,
    decision: 'failed',
    message,
    ...(warning !== undefined && { warnings: [{ code: 'HOOK_OUTCOME_INVALID', message: warning }] }),
  })
  return done(rejectedExecution(failedExecution(message)))
}

function notRun(message: string): Authorization {
  return done(rejectedExecution(failedExecution(`Not run: ${message}`)))
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

function denied(reason: string): Authorization {
  return done(blockedExecution('approval', reason))
}

function done(result: ToolExecution): Authorization {
  return { status: 'done', result }
}

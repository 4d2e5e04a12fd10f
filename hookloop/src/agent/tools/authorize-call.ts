import { isJsonObject, type Json } from '../../state/json.ts'
import type { Answer, Ask, ToolCall, ToolExecution } from '../../state/tool-call.ts'
import { messageOf, toAgentError } from '../../errors.ts'
import type { FactValues } from '../../hooks/base-context.ts'
import { Invocation } from '../../hooks/invocation.ts'
import { askPerson, noteAnswer } from './request-approval.ts'
import { freezeParsed } from './freeze-parsed.ts'
import type { RunContext } from '../loop/run-context.ts'
import { toToolCall, type ActiveCall } from '../loop/open-step.ts'
import type { Parsed } from './parse-schema.ts'
import type { AgentParts } from '../agent-parts.ts'
import type { Tool } from '../tool.ts'
import { blockedExecution, failedExecution, stoppedExecution } from './result.ts'

/** What was decided about a call before it runs. */
export type Authorization =
  | { readonly status: 'ready'; readonly tool: Tool; readonly parsed: unknown }
  | { readonly status: 'done'; readonly result: ToolExecution }
  | { readonly status: 'waiting' }

/** How long an asynchronous schema may take. */
const PARSE_MS = 60_000

const none: readonly never[] = Object.freeze([])
const waiting: Authorization = { status: 'waiting' }

/** beforeToolUse: hooks change the arguments, the tool's schema parses them once, guards judge what the tool will get. */
export function decide(run: RunContext, call: ActiveCall): Authorization | Promise<Authorization> {
  const over = run.stoppedBy()
  if (over !== undefined) {
    return done(stoppedExecution(over))
  }
  if (call.answer === undefined) run.open!.countCall()
  else noteAnswer(run, call, call.answer, call.approval?.message)
  if (typeof call.answer === 'object' && 'block' in call.answer) return refusal(call.answer.block)
  const tool = run.parts.tools.get(call.name)
  if (tool === undefined) return unusable(run, call, `There is no tool "${call.name}". Use one of: ${names(run)}.`)
  if (call.answer === undefined && !run.open!.offered.includes(call.name)) {
    return unusable(run, call, `The tool "${call.name}" was not offered in this step.`)
  }
  if (!isJsonObject(call.args)) return unusable(run, call, 'The arguments must be a JSON object.')
  const plan = run.parts.stack.plan('beforeToolUse', call.name)
  const firing = new Invocation(run, plan, run.state, { toolCall: toToolCall(call) }, call.index)
  if (call.answer !== undefined) return answered(run, { call, tool, firing }, call.answer)
  if (plan.transforms.length === 0) return judge(run, { call, tool, firing })
  firing.fits = (asked) => {
    const parsed = tool.parse((firing.facts['toolCall'] as ToolCall).args)
    if (!(parsed instanceof Promise)) return isValid(parsed)
    if (asked?.byShadow === true) return parsed.then(isValid, () => false) // of which no record must know
    return run.effects.withTimeout(`${run.place}/${call.index}/fits`, PARSE_MS, parsed).then(isValid, () => false)
  }
  const changed = run.transform(firing, plan)
  return changed === undefined
    ? judge(run, { call, tool, firing })
    : changed.then(() => judge(run, { call, tool, firing }))
}

type Candidate = { readonly call: ActiveCall; readonly tool: Tool; readonly firing: Invocation }

function judge(run: RunContext, candidate: Candidate): Authorization | Promise<Authorization> {
  const { call, tool, firing } = candidate
  call.args = (firing.facts['toolCall'] as ToolCall).args
  if (firing.failure !== undefined || firing.blocked !== undefined) {
    void run.judge(firing, firing.plan) // guards are skipped now, so it answers at once
    return conclude(run, candidate, undefined)
  }
  const parsed = tool.parse(call.args)
  if (parsed instanceof Promise) {
    const key = `${run.place}/${call.index}/parse`
    return run.effects.withTimeout(key, PARSE_MS, parsed).then(
      (value) => judgeParsed(run, candidate, value),
      (thrown: unknown) => judgeParsed(run, candidate, { problem: `the schema failed: ${messageOf(thrown)}` }),
    )
  }
  return judgeParsed(run, candidate, parsed)
}

function judgeParsed(run: RunContext, candidate: Candidate, parsed: Parsed): Authorization | Promise<Authorization> {
  const { call, firing } = candidate
  const { plan } = firing
  if ('problem' in parsed) {
    void run.judge(firing, { ...plan, guards: [] }) // there is nothing to judge, but what hooks did to the state stands
    return unusable(run, call, `The arguments do not fit the tool "${call.name}": ${parsed.problem}`)
  }
  const { value, facts } = parsedFacts(call, parsed.value)
  firing.update(firing.state, facts)
  const judged = run.judge(firing, plan)
  return judged instanceof Promise
    ? judged.then(() => conclude(run, candidate, value))
    : conclude(run, candidate, value)
}

/** block > stop > ask > allow > no opinion. */
function conclude(run: RunContext, candidate: Candidate, parsed: unknown): Authorization | Promise<Authorization> {
  const { call, tool, firing } = candidate
  if (firing.blocked !== undefined) return done(blockedExecution(firing.blocked.by, firing.blocked.message))
  if (firing.failure !== undefined) return done(failedExecution(`Not run: ${firing.failure.message}`))
  const over = run.stoppedBy()
  if (over !== undefined) return done(stoppedExecution(over))
  const byDefault = firing.allowed === undefined ? defaultAsks(run.parts, tool) : none
  if (call.answer !== undefined || (firing.asks.length === 0 && byDefault.length === 0)) {
    return { status: 'ready', tool, parsed }
  }
  return ask(run, candidate, { asks: [...firing.asks, ...byDefault], parsed })
}

/** A tool that asks by default, or one that `approval` was told to ask about. A guard may answer these. */
export function defaultAsks({ approval }: AgentParts, tool: Tool): readonly Ask[] {
  if (tool.ask) return [Object.freeze({ by: `tool "${tool.name}"`, message: `Run "${tool.name}"?` })]
  if (approval.asksAbout(tool.name)) return [Object.freeze({ by: 'approval', message: `Run "${tool.name}"?` })]
  return []
}

async function ask(
  run: RunContext,
  candidate: Candidate,
  { asks, parsed }: { asks: readonly Ask[]; parsed: unknown },
): Promise<Authorization> {
  const { call, tool } = candidate
  try {
    const given = await askPerson(run, call, asks)
    if (given === undefined) return waiting
    return given === 'allow' ? { status: 'ready', tool, parsed } : await answered(run, candidate, given)
  } catch (thrown) {
    const error = toAgentError(thrown, 'HOOK_FAILED')
    run.fail(error, 'beforeToolUse')
    return done(failedExecution(`Not run: ${error.message}`))
  }
}

/** A person's answer: a no is a no; a yes stands for the asks on that value, never against a block. */
function answered(run: RunContext, candidate: Candidate, answer: Answer): Authorization | Promise<Authorization> {
  const { call, tool, firing: asked } = candidate
  call.answer = answer
  if (typeof answer === 'object' && 'block' in answer) return refusal(answer.block)
  const args = answer === 'allow' ? call.args : answer.allow
  const firing = new Invocation(run, asked.plan, run.state, { toolCall: toolCallOf(call, args) }, call.index)
  return judge(run, { call, tool, firing })
}

/** A call that cannot be run as it is: told to the model, kept in the ledger, never a crash. */
function unusable(run: RunContext, call: ActiveCall, message: string): Authorization {
  run.noteLoop('beforeToolUse', { call: call.id, decision: 'failed', message })
  return done(failedExecution(message))
}

/** Only what was offered: there may be hundreds that a hook has left out, and naming them would not let them be used. */
function names(run: RunContext): string {
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

/** Facts that give everybody who looks a copy of their own. */
function sharedFacts(call: NamedCall, share: () => unknown): FactValues {
  return {
    get toolCall() {
      return toolCallOf(call, share())
    },
  }
}

function refusal(reason: string): Authorization {
  return done(blockedExecution('approval', reason))
}

function done(result: ToolExecution): Authorization {
  return { status: 'done', result }
}

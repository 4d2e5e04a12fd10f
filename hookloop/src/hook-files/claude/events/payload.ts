import { SUBAGENT_KEY } from '../../../agent/subagents/child-run.ts'
import type { ContinuationOutcome, StopReason } from '../../../state/continuation.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../state/json.ts'
import type { ErrorRecord, Step } from '../../../state/execution.ts'
import type { Subagent } from '../../../state/subagent.ts'
import { textOf, type Message } from '../../../state/message.ts'
import type { ToolCall, ToolExecution } from '../../../state/tool-call.ts'
import { TITLE_KEY, type AgentState } from '../../../state/agent-state.ts'
import type { InferenceResponse } from '../../../state/inference.ts'
import { BaseContext } from '../../../hooks/base-context.ts'
import type { ClaudeEvent } from './claude-events.ts'
import {
  displayPayload,
  permissionMode,
  questionNotice,
  subagentStart,
  taskPayloads,
  type Make,
} from './call-payloads.ts'
import { toClaudeCall } from './tool-names.ts'
import { failureIn, toClaudeOutput } from './tool-outputs.ts'
import type { Transcripts } from './transcripts.ts'

/** What a hook script is told: its event, and everything on its standard input. */
export type Payload = {
  readonly event: ClaudeEvent
  readonly input: JsonObject
  /** What its matcher is about; several when a tool has several names. */
  readonly matched: readonly string[]
  /** Which of several that fire at once. */
  readonly part?: string
}

export type PayloadSurroundings = {
  readonly cwd: string
  readonly transcripts: Transcripts
  /** Whether a subagent, by its call, goes on because a hook wanted it to. */
  readonly isContinued?: (agentId: string, call: string) => boolean
  /** The arguments of the call, if a hook has changed them. */
  readonly args?: Json | undefined
}

const MAX_ERROR = 10_000

/** Where the metadata of a conversation say which session it is. */
export const SESSION_KEY = 'hookloop.claude'

/** The events that fire at one of our triggers, in their order. */
export function payloadsFor(ctx: BaseContext, around: PayloadSurroundings): readonly Payload[] {
  const made = makerFor(ctx, around)
  const several = severalFor(ctx, made, around)
  if (several !== undefined) return several
  const payload = payloadFor(ctx, made, around)
  return payload === undefined ? [] : [payload]
}

/** Where more than one fires, or one that has no trigger of its own. */
function severalFor(ctx: BaseContext, made: MakePayload, around: PayloadSurroundings): readonly Payload[] | undefined {
  const { facts } = BaseContext.draftOf(ctx)
  switch (ctx.trigger) {
    case 'beforeToolUse': {
      const asked = facts['toolCall'] as ToolCall<Json>
      const call = around.args === undefined ? asked : { ...asked, args: around.args }
      const before = toolPayload(made, 'PreToolUse', call, around)
      return [before, ...subagentStart(made, call, around.cwd), ...taskPayloads(made, call, ctx.state)]
    }
    case 'afterInference': {
      if (subagentOf(ctx.state) !== undefined) return [] // nobody sees it
      return displayPayload(made, (facts['response'] as InferenceResponse).content, ctx.state)
    }
    case 'afterCompaction': {
      const trigger = causeOf(facts)
      const summary = { trigger, compact_summary: textFact(facts, 'summary') }
      return [made('SessionStart', { source: 'compact' }, 'compact'), made('PostCompact', summary, trigger)]
    }
    default:
      return undefined
  }
}

function payloadFor(ctx: BaseContext, made: MakePayload, around: PayloadSurroundings): Payload | undefined {
  const { facts } = BaseContext.draftOf(ctx)
  switch (ctx.trigger) {
    case 'onSessionStart': {
      const source = textFact(facts, 'source')
      return made('SessionStart', { source, ...titleOf(ctx.state) }, source)
    }
    case 'onSessionEnd': {
      const said = textFact(facts, 'reason')
      const reason = said === 'exit' ? 'prompt_input_exit' : said
      return made('SessionEnd', { reason }, reason)
    }
    case 'onUserInput': {
      if (subagentOf(ctx.state) !== undefined) return undefined // nobody has said it but another agent
      const prompt = textOf((facts['input'] as Message).content)
      return made('UserPromptSubmit', { ...permissionMode, prompt, ...titleOf(ctx.state) })
    }
    case 'afterToolUse':
      return afterTool(made, facts as AfterTool, around)
    case 'afterStep':
      return batchPayload(made, facts['step'] as Step, around)
    case 'onStop':
      return stopPayload(ctx, made)
    case 'onSubagentStop':
      return subagentPayload(ctx, made, around)
    case 'onError':
      return failurePayload(facts['error'] as ErrorRecord, made)
    case 'beforeCompaction': {
      const trigger = causeOf(facts)
      return made('PreCompact', { trigger, custom_instructions: null }, trigger)
    }
    default:
      return undefined
  }
}

function causeOf({ requested }: { readonly [name: string]: unknown }): 'manual' | 'auto' {
  return requested === true ? 'manual' : 'auto'
}

function titleOf({ metadata }: AgentState): JsonObject {
  const title = metadata[TITLE_KEY]
  return typeof title === 'string' ? { session_title: title } : {}
}

type MakePayload = Make<Payload>

/** Makes the payloads of a firing. */
export function makerFor(ctx: BaseContext, around: PayloadSurroundings): MakePayload {
  return makerOf(commonOf(ctx, around))
}

function commonOf(ctx: BaseContext, around: PayloadSurroundings): JsonObject {
  return commonFrom(ctx.state, sessionOf(ctx), around)
}

/** What every event is told, also where there is no context. */
export function commonFrom(state: AgentState, session: string, { cwd, transcripts }: PayloadSurroundings): JsonObject {
  const subagent = subagentOf(state)
  return {
    session_id: session,
    transcript_path: transcripts.pathFor(state, session),
    cwd,
    ...(state.execution !== undefined && { prompt_id: state.execution.id }),
    ...(subagent !== undefined && { agent_id: state.agentId, agent_type: subagent }),
  }
}

/** The session that a conversation is; one that is none has the name of its agent. */
export function sessionOf(ctx: BaseContext): string {
  const named = BaseContext.draftOf(ctx).facts['sessionId']
  return typeof named === 'string' ? named : sessionIn(ctx.state)
}

/** The same, as the state of a run says it. */
export function sessionIn({ metadata, agentId, parentId }: AgentState): string {
  const kept = metadata[SESSION_KEY]
  if (isJsonObject(kept) && typeof kept['session'] === 'string') return kept['session']
  return parentId ?? agentId
}

/** The name of the agent, where it works for another. */
export function subagentOf({ metadata, parentId }: AgentState): string | undefined {
  const who = metadata[SUBAGENT_KEY]
  if (parentId === undefined || !isJsonObject(who)) return undefined
  return typeof who['name'] === 'string' ? who['name'] : ''
}

/** Nobody asks for more where a person or an error has ended it. A subagent ends with the hooks of whom it works for. */
function stopPayload(ctx: BaseContext, made: MakePayload): Payload | undefined {
  const { outcome, continuations } = BaseContext.draftOf(ctx).facts as {
    readonly outcome: ContinuationOutcome
    readonly continuations: number
  }
  if (subagentOf(ctx.state) !== undefined || silentEnds.has(outcome.stopReason)) return undefined
  return made('Stop', {
    ...permissionMode,
    stop_hook_active: continuations > 0,
    last_assistant_message: lastAnswer(ctx.state),
  })
}

const silentEnds: ReadonlySet<StopReason | undefined> = new Set([
  'errorForbade',
  'persistenceFailed',
  'userRequested',
  'inputBlocked',
])

type SubagentFacts = { readonly subagent: Subagent; readonly output: Json }

function subagentPayload(ctx: BaseContext, made: MakePayload, { isContinued }: PayloadSurroundings): Payload {
  const { subagent, output } = BaseContext.draftOf(ctx).facts as SubagentFacts
  const { transcript_path } = made('SubagentStop', {}).input
  const more = {
    stop_hook_active: isContinued?.(ctx.state.agentId, subagent.call) === true,
    agent_id: subagent.call,
    agent_type: subagent.name,
    agent_transcript_path: transcript_path!,
    last_assistant_message: typeof output === 'string' ? output : JSON.stringify(output ?? null),
  }
  return made('SubagentStop', { ...permissionMode, ...more }, subagent.name)
}

/** Only what a model did wrong ends a turn there; a tool that failed is told elsewhere. */
function failurePayload({ code, message }: ErrorRecord, made: MakePayload): Payload | undefined {
  if (!code.startsWith('MODEL_')) return undefined
  const error = failureNames[code] ?? 'unknown'
  return made('StopFailure', { error, error_details: message, last_assistant_message: message }, error)
}

function textFact(facts: { readonly [name: string]: unknown }, name: string): string {
  const value = facts[name]
  return typeof value === 'string' ? value : ''
}

function toolPayload(
  made: MakePayload,
  event: ClaudeEvent,
  call: ToolCall<Json>,
  { cwd }: PayloadSurroundings,
  more: JsonObject = {},
): Payload {
  const { name, names, input } = toClaudeCall(call.name, call.args, cwd)
  const id = event === 'PermissionRequest' ? {} : { tool_use_id: call.id }
  return made(
    event,
    { ...permissionMode, tool_name: name, tool_input: input, ...id, ...mcpServer(name), ...more },
    ...names,
  )
}

/** The payload of a question that is about to be put to a person. */
export function permissionPayload(ctx: BaseContext, around: PayloadSurroundings): Payload {
  return toolPayload(
    makerFor(ctx, around),
    'PermissionRequest',
    BaseContext.draftOf(ctx).facts['toolCall'] as ToolCall<Json>,
    around,
  )
}

/** The same for a call as it is put to a person, after everybody has changed it. */
export function questionPayload(known: JsonObject, call: ToolCall<Json>, around: PayloadSurroundings): Payload {
  return toolPayload(makerOf(known), 'PermissionRequest', call, around)
}

/** For what is known of a run where there is no context. */
function makerOf(known: JsonObject): MakePayload {
  return (event, input, ...matched) => ({ event, input: { ...known, hook_event_name: event, ...input }, matched })
}

/** That somebody is about to be asked about a call. */
export function noticePayload(known: JsonObject, call: ToolCall<Json>, { cwd }: PayloadSurroundings): Payload {
  return questionNotice(makerOf(known), toClaudeCall(call.name, call.args, cwd).name)
}

type AfterTool = {
  readonly toolCall: ToolCall<Json>
  readonly toolExecution: ToolExecution
  readonly durationMs?: number
}

/** A call that was not run has neither succeeded nor failed: a guard has denied it, or somebody else whom hooks know of. */
function afterTool(
  made: MakePayload,
  { toolCall, toolExecution, durationMs }: AfterTool,
  around: PayloadSurroundings,
): Payload | undefined {
  const { status, output, by } = toolExecution
  if (status === 'blocked') {
    const isAutomatic = by !== undefined && by !== 'approval' && !/(?:^|:)claude$/.test(by)
    const reason = textFrom(output)
    return isAutomatic ? toolPayload(made, 'PermissionDenied', toolCall, around, { reason }) : undefined
  }
  const took = durationMs === undefined ? {} : { duration_ms: Math.round(durationMs) }
  const failed = status === 'ok' ? failureIn(toolCall.name, output) : textFrom(output)
  if (failed === undefined) {
    const { input } = toClaudeCall(toolCall.name, toolCall.args, around.cwd)
    const more = { tool_response: toClaudeOutput(toolCall.name, output, input), ...took }
    return toolPayload(made, 'PostToolUse', toolCall, around, more)
  }
  const more = { error: middle(failed), is_interrupt: status === 'outcomeUnknown', ...took }
  return toolPayload(made, 'PostToolUseFailure', toolCall, around, more)
}

function textFrom(output: Json): string {
  return typeof output === 'string' ? output : JSON.stringify(output)
}

/** Only a step that had calls: nothing else ends a batch. */
function batchPayload(made: MakePayload, step: Step, { cwd }: PayloadSurroundings): Payload | undefined {
  if (step.toolCalls.length === 0) return undefined
  const calls = step.toolCalls.map((call, i) => {
    const { name, input } = toClaudeCall(call.name, call.args, cwd)
    const output = step.toolExecutions[i]?.output
    const response = output === undefined ? {} : { tool_response: textFrom(output) }
    return { tool_name: name, tool_input: input, tool_use_id: call.id, ...response }
  })
  return made('PostToolBatch', { ...permissionMode, tool_calls: calls })
}

function mcpServer(name: string): JsonObject {
  const [, server] = /^mcp__(.+?)__/.exec(name) ?? []
  return server === undefined ? {} : { mcp_server: { name: server } }
}

function lastAnswer({ messages }: AgentState): string {
  for (let i = messages.length - 1; i >= 0; i--) {
    const { role, content } = messages.at(i)!
    if (role === 'assistant') return textOf(content)
  }
  return ''
}

/** The specification's word for why a model did not answer. */
const failureNames: { readonly [code: string]: string } = {
  MODEL_UNAUTHORIZED: 'authentication_failed',
  MODEL_RATE_LIMITED: 'rate_limit',
  MODEL_OVERLOADED: 'overloaded',
  MODEL_REJECTED: 'invalid_request',
  MODEL_CONTEXT_OVERFLOW: 'invalid_request',
  MODEL_UNKNOWN: 'model_not_found',
  MODEL_FAILED: 'server_error',
  MODEL_UNREACHABLE: 'server_error',
  MODEL_TIMED_OUT: 'server_error',
}

function middle(text: string): string {
  if (text.length <= MAX_ERROR) return text
  const half = MAX_ERROR / 2
  return `${text.slice(0, half)}\n[… ${text.length - MAX_ERROR} characters left out …]\n${text.slice(-half)}`
}

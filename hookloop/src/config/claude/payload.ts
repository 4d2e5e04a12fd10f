import type { Json, JsonObject } from '../../data/json.ts'
import type { ErrorRecord, Step } from '../../data/execution.ts'
import { textOf, type Message } from '../../data/message.ts'
import type { ToolCall, ToolExecution } from '../../data/tool-call.ts'
import type { AgentState } from '../../data/agent-state.ts'
import { Context } from '../../hooks/draft.ts'
import type { ClaudeEvent } from './events.ts'
import { toClaudeCall } from './tool-names.ts'

/** What a hook script is told: its event, and everything on its standard input. */
export type Payload = {
  readonly event: ClaudeEvent
  readonly input: JsonObject
  /** What its matcher is about; several when a tool has several names. */
  readonly matched: readonly string[]
}

export type PayloadSurroundings = { readonly cwd: string; readonly transcriptPath: string }

const MAX_ERROR = 10_000

/** The event that fires at one of our triggers, if one does. */
export function payloadFor(ctx: Context, around: PayloadSurroundings): Payload | undefined {
  const facts = Context.draftOf(ctx).facts
  const common = commonOf(ctx, around)
  const made = (event: ClaudeEvent, input: JsonObject, ...matched: readonly string[]): Payload => ({
    event,
    input: { ...common, hook_event_name: event, ...input },
    matched,
  })
  switch (ctx.trigger) {
    case 'onSessionStart': {
      const source = textFact(facts, 'source')
      return made('SessionStart', { source }, source)
    }
    case 'onSessionEnd': {
      const reason = textFact(facts, 'reason')
      return made('SessionEnd', { reason }, reason)
    }
    case 'onUserInput':
      return made('UserPromptSubmit', { ...mode, prompt: textOf((facts['input'] as Message).content) })
    case 'beforeToolUse':
      return toolPayload(made, 'PreToolUse', facts['toolCall'] as ToolCall<Json>, around)
    case 'afterToolUse':
      return afterTool(made, facts as AfterTool, around)
    case 'afterStep':
      return batchPayload(made, facts['step'] as Step, around)
    case 'onStop':
      return made('Stop', {
        ...mode,
        stop_hook_active: (facts['continuations'] as number) > 0,
        last_assistant_message: lastAnswer(ctx.state),
      })
    case 'onSubagentStop':
      return made('SubagentStop', { ...mode, stop_hook_active: false, ...agentFacts(facts) }, agentType(facts))
    case 'onError': {
      const error = facts['error'] as ErrorRecord
      if (!error.code.startsWith('MODEL_')) return undefined
      return made(
        'StopFailure',
        { error: failureName(error.code), error_details: error.message },
        failureName(error.code),
      )
    }
    case 'beforeCompaction':
      return made('PreCompact', { trigger: 'auto', custom_instructions: null }, 'auto')
    case 'afterCompaction':
      return made('PostCompact', { trigger: 'auto', compact_summary: textFact(facts, 'summary') }, 'auto')
    default:
      return undefined
  }
}

const mode = { permission_mode: 'default' }

function commonOf({ state }: Context, { cwd, transcriptPath }: PayloadSurroundings): JsonObject {
  return {
    session_id: sessionOf(state),
    transcript_path: transcriptPath,
    cwd,
    ...(state.execution !== undefined && { prompt_id: state.execution.id }),
    ...(state.parentId !== undefined && { agent_id: state.agentId }),
  }
}

function sessionOf({ metadata, agentId }: AgentState): string {
  const kept = metadata['hookloop.session']
  return typeof kept === 'string' ? kept : agentId
}

function textFact(facts: { readonly [name: string]: unknown }, name: string): string {
  const value = facts[name]
  return typeof value === 'string' ? value : ''
}

type Make = (event: ClaudeEvent, input: JsonObject, ...matched: readonly string[]) => Payload

function toolPayload(
  made: Make,
  event: ClaudeEvent,
  call: ToolCall<Json>,
  { cwd }: PayloadSurroundings,
  more: JsonObject = {},
): Payload {
  const { name, names, input } = toClaudeCall(call.name, call.args, cwd)
  const id = event === 'PermissionRequest' ? {} : { tool_use_id: call.id }
  return made(event, { ...mode, tool_name: name, tool_input: input, ...id, ...mcpServer(name), ...more }, ...names)
}

/** The payload of a question that is about to be put to a person. */
export function permissionPayload(ctx: Context, around: PayloadSurroundings): Payload {
  const common = commonOf(ctx, around)
  const made: Make = (event, input, ...matched) => ({
    event,
    input: { ...common, hook_event_name: event, ...input },
    matched,
  })
  return toolPayload(made, 'PermissionRequest', Context.draftOf(ctx).facts['toolCall'] as ToolCall<Json>, around)
}

type AfterTool = {
  readonly toolCall: ToolCall<Json>
  readonly toolExecution: ToolExecution
  readonly durationMs?: number
}

/** A call that was not run has neither succeeded nor failed. */
function afterTool(
  made: Make,
  { toolCall, toolExecution }: AfterTool,
  around: PayloadSurroundings,
): Payload | undefined {
  const { status, output } = toolExecution
  if (status === 'ok') return toolPayload(made, 'PostToolUse', toolCall, around, { tool_response: output })
  if (status === 'blocked') return undefined
  const text = typeof output === 'string' ? output : JSON.stringify(output)
  const more = { error: middle(text), is_interrupt: status === 'outcomeUnknown' }
  return toolPayload(made, 'PostToolUseFailure', toolCall, around, more)
}

/** Only a step that had calls: nothing else ends a batch. */
function batchPayload(made: Make, step: Step, { cwd }: PayloadSurroundings): Payload | undefined {
  if (step.toolCalls.length === 0) return undefined
  const calls = step.toolCalls.map((call, i) => {
    const { name, input } = toClaudeCall(call.name, call.args, cwd)
    const output = step.toolExecutions[i]?.output
    const response =
      output === undefined ? {} : { tool_response: typeof output === 'string' ? output : JSON.stringify(output) }
    return { tool_name: name, tool_input: input, tool_use_id: call.id, ...response }
  })
  return made('PostToolBatch', { ...mode, tool_calls: calls })
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

function agentFacts(facts: { readonly [name: string]: unknown }): JsonObject {
  const output = facts['output'] as Json
  return {
    agent_id: textFact(facts, 'agentId'),
    agent_type: agentType(facts),
    last_assistant_message: typeof output === 'string' ? output : JSON.stringify(output ?? null),
  }
}

function agentType(facts: { readonly [name: string]: unknown }): string {
  return textFact(facts, 'name')
}

/** The specification's word for why a model did not answer. */
function failureName(code: string): string {
  return failureNames[code] ?? 'unknown'
}

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

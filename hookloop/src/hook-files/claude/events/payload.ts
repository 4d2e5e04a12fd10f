import { commandIn } from '../../../core/agent/slash-commands.ts'
import { BaseContext } from '../../../core/hooks/base-context.ts'
import { TASKS_KEY, TITLE_KEY, type AgentState } from '../../../core/state/agent-state.ts'
import type { ContinuationOutcome, StopReason } from '../../../core/state/continuation.ts'
import type { ErrorRecord, Step } from '../../../core/state/execution.ts'
import type { InferenceResponse } from '../../../core/state/inference.ts'
import { isJsonObject, textOfJson, type Json, type JsonObject } from '../../../values/json.ts'
import { textOf, type Message, type Part } from '../../../core/state/message.ts'
import type { Subagent } from '../../../core/state/subagent.ts'
import type { ToolCall, ToolExecution } from '../../../core/state/tool-call.ts'
import type { ClaudeEvent } from './claude-events.ts'
import {
  makerFor,
  permissionMode,
  subagentOf,
  type MakePayload,
  type Payload,
  type PayloadOptions,
} from './common-payload.ts'
import { stringIn } from '../../text.ts'
import { toClaudeCall } from './tool-names.ts'
import { failureIn, toClaudeOutput } from './tool-outputs.ts'

const MAX_ERROR = 10_000

/** The payloads of the events that fire at a trigger, in their order. */
export function payloadsFor(ctx: BaseContext, options: PayloadOptions): readonly Payload[] {
  const make = makerFor(ctx, options)
  const { facts } = BaseContext.draftOf(ctx)
  const { state } = ctx
  const isSubagent = subagentOf(state) !== undefined
  switch (ctx.trigger) {
    case 'onSessionStart': {
      const source = stringIn(facts['source'])
      return [make('SessionStart', { source, ...titleOf(state) }, source)]
    }
    case 'onSessionEnd': {
      const given = stringIn(facts['reason'])
      const reason = given === 'exit' ? 'prompt_input_exit' : given
      return [make('SessionEnd', { reason }, reason)]
    }
    case 'onUserInput': {
      if (isSubagent) return [] // the input of a subagent is from another agent, not from a user
      const prompt = textOf((facts['input'] as Message).content)
      return [make('UserPromptSubmit', { ...permissionMode, prompt, ...titleOf(state) })]
    }
    case 'beforeToolUse': {
      const asked = facts['toolCall'] as ToolCall<Json>
      const call = options.args === undefined ? asked : { ...asked, args: options.args }
      return [
        toolPayload(make, 'PreToolUse', call, options),
        ...subagentStartPayloads(make, call, options),
        ...taskPayloads(make, call, state),
      ]
    }
    case 'afterToolUse':
      return afterToolPayloads(make, facts as AfterTool, options)
    case 'afterInference':
      return isSubagent ? [] : displayPayloads(make, (facts['response'] as InferenceResponse).content, state)
    case 'afterStep':
      return batchPayloads(make, facts['step'] as Step, options)
    case 'onStop':
      return isSubagent ? [] : stopPayloads(make, facts as StopFacts, state) // the parent fires SubagentStop
    case 'onSubagentStop':
      return [subagentStopPayload(make, facts as SubagentFacts, { ...options, state })]
    case 'onError':
      return failurePayloads(make, facts['error'] as ErrorRecord)
    case 'beforeCompaction': {
      const trigger = compactionTrigger(facts)
      return [make('PreCompact', { trigger, custom_instructions: null }, trigger)]
    }
    case 'afterCompaction': {
      const trigger = compactionTrigger(facts)
      const summary = { trigger, compact_summary: stringIn(facts['summary']) }
      return [make('SessionStart', { source: 'compact' }, 'compact'), make('PostCompact', summary, trigger)]
    }
    default:
      return []
  }
}

type Facts = { readonly [name: string]: unknown }

function compactionTrigger({ requested }: Facts): 'manual' | 'auto' {
  return requested === true ? 'manual' : 'auto'
}

function titleOf({ metadata }: AgentState): JsonObject {
  const title = metadata[TITLE_KEY]
  return typeof title === 'string' ? { session_title: title } : {}
}

export function toolPayload(
  make: MakePayload,
  event: ClaudeEvent,
  call: ToolCall<Json>,
  { cwd, more = {} }: Pick<PayloadOptions, 'cwd'> & { readonly more?: JsonObject },
): Payload {
  const { name, names, input } = toClaudeCall(call.name, call.args, cwd)
  const id = event === 'PermissionRequest' ? {} : { tool_use_id: call.id }
  const common = { ...permissionMode, tool_name: name, tool_input: input, ...id, ...mcpServer(name) }
  return make(event, { ...common, ...more }, ...names)
}

function mcpServer(name: string): JsonObject {
  const [, server] = /^mcp__(.+?)__/.exec(name) ?? []
  return server === undefined ? {} : { mcp_server: { name: server } }
}

/** For the notification that a call needs approval. */
export function notificationPayload(make: MakePayload, call: ToolCall<Json>, { cwd }: PayloadOptions): Payload {
  const { name } = toClaudeCall(call.name, call.args, cwd)
  const type = 'permission_prompt'
  const text = { message: `Permission is needed to use ${name}`, title: 'Permission needed' }
  return make('Notification', { ...text, notification_type: type }, type)
}

function subagentStartPayloads(make: MakePayload, call: ToolCall<Json>, { cwd }: PayloadOptions): readonly Payload[] {
  const { name, input } = toClaudeCall(call.name, call.args, cwd)
  const { subagent_type: type } = input
  if (name !== 'Agent' || typeof type !== 'string') return []
  return [make('SubagentStart', { agent_id: call.id, agent_type: type }, type)]
}

type Task = { readonly subject: string; readonly isDone: boolean }

/** For tasks that a call adds to the list, or marks as done. */
function taskPayloads(make: MakePayload, { name, args }: ToolCall<Json>, state: AgentState): readonly Payload[] {
  if (name !== 'todo_write' || !isJsonObject(args)) return []
  const before = new Map(tasksIn(state.metadata[TASKS_KEY]).map(({ subject, isDone }) => [subject, isDone]))
  return tasksIn(args['todos'] ?? null).flatMap(({ subject, isDone }, i) => {
    const input = { ...permissionMode, task_id: String(i + 1), task_subject: subject }
    return [
      ...(before.has(subject) ? [] : [make('TaskCreated', input)]),
      ...(isDone && before.get(subject) !== true ? [make('TaskCompleted', input)] : []),
    ]
  })
}

function tasksIn(stored: Json | undefined): readonly Task[] {
  const list = isJsonObject(stored) ? stored['tasks'] : stored
  if (!Array.isArray(list)) return []
  return list.flatMap((each: Json) => {
    if (!isJsonObject(each) || typeof each['content'] !== 'string') return []
    return [{ subject: each['content'], isDone: each['status'] === 'completed' }]
  })
}

type AfterTool = {
  readonly toolCall: ToolCall<Json>
  readonly toolExecution: ToolExecution
  readonly durationMs?: number
}

/** A call that is unusable fires nothing. A blocked call fires PermissionDenied only if neither an approver nor a Claude Code hook blocked it. */
function afterToolPayloads(
  make: MakePayload,
  { toolCall, toolExecution, durationMs }: AfterTool,
  { cwd }: PayloadOptions,
): readonly Payload[] {
  const { status, output, by, rejected } = toolExecution
  if (rejected === true) return []
  const payload = (event: ClaudeEvent, more: JsonObject): readonly Payload[] => [
    toolPayload(make, event, toolCall, { cwd, more }),
  ]
  if (status === 'blocked') {
    const isAutomatic = by !== undefined && by !== 'approval' && !/(?:^|:)claude$/.test(by)
    return isAutomatic ? payload('PermissionDenied', { reason: textOfJson(output) }) : []
  }
  const duration = durationMs === undefined ? {} : { duration_ms: Math.round(durationMs) }
  const failure = status === 'ok' ? failureIn(toolCall.name, output) : textOfJson(output)
  if (failure === undefined) {
    const { input } = toClaudeCall(toolCall.name, toolCall.args, cwd)
    return payload('PostToolUse', { tool_response: toClaudeOutput(toolCall.name, output, input), ...duration })
  }
  const error = shortenMiddle(failure)
  return payload('PostToolUseFailure', { error, is_interrupt: status === 'outcomeUnknown', ...duration })
}

function shortenMiddle(text: string): string {
  if (text.length <= MAX_ERROR) return text
  const half = MAX_ERROR / 2
  return `${text.slice(0, half)}\n[… ${text.length - MAX_ERROR} characters left out …]\n${text.slice(-half)}`
}

function displayPayloads(
  make: MakePayload,
  content: readonly Part[],
  { execution, messages }: AgentState,
): readonly Payload[] {
  const delta = textOf(content)
  if (delta === '') return []
  const turn = execution?.id ?? ''
  const ids = { turn_id: turn, message_id: `${turn}/${messages.length}` }
  return [make('MessageDisplay', { ...ids, index: 0, final: true, delta })]
}

function batchPayloads(make: MakePayload, step: Step, { cwd }: PayloadOptions): readonly Payload[] {
  if (step.toolCalls.length === 0) return []
  const calls = step.toolCalls.map((call, i) => {
    const { name, input } = toClaudeCall(call.name, call.args, cwd)
    const output = step.toolExecutions[i]?.output
    const response = output === undefined ? {} : { tool_response: textOfJson(output) }
    return { tool_name: name, tool_input: input, tool_use_id: call.id, ...response }
  })
  return [make('PostToolBatch', { ...permissionMode, tool_calls: calls })]
}

type StopFacts = { readonly outcome: ContinuationOutcome; readonly continuations: number }

/** There is no Stop if the user or an error ended the run. */
function stopPayloads(make: MakePayload, { outcome, continuations }: StopFacts, state: AgentState): readonly Payload[] {
  if (reasonsWithoutStop.has(outcome.stopReason)) return []
  const input = { stop_hook_active: continuations > 0, last_assistant_message: lastAnswer(state) }
  return [make('Stop', { ...permissionMode, ...input })]
}

const reasonsWithoutStop: ReadonlySet<StopReason | undefined> = new Set([
  'errorForbade',
  'persistenceFailed',
  'userRequested',
  'inputBlocked',
])

function lastAnswer({ messages }: AgentState): string {
  return textOf(messages.findLast(({ role }) => role === 'assistant')?.content ?? [])
}

type SubagentFacts = { readonly subagent: Subagent; readonly output: Json }

function subagentStopPayload(
  make: MakePayload,
  { subagent, output }: SubagentFacts,
  { isContinued, state }: PayloadOptions & { readonly state: AgentState },
): Payload {
  const { transcript_path } = make('SubagentStop', {}).input
  const input = {
    stop_hook_active: isContinued?.(state.agentId, subagent.call) === true,
    agent_id: subagent.call,
    agent_type: subagent.name,
    agent_transcript_path: transcript_path!,
    last_assistant_message: textOfJson(output ?? null),
  }
  return make('SubagentStop', { ...permissionMode, ...input }, subagent.name)
}

/** Only model errors end a turn. Failed tools have their own events. */
function failurePayloads(make: MakePayload, { code, message }: ErrorRecord): readonly Payload[] {
  if (!code.startsWith('MODEL_')) return []
  const error = failureNames[code] ?? 'unknown'
  return [make('StopFailure', { error, error_details: message, last_assistant_message: message }, error)]
}

/** The names that Claude Code has for model errors. */
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

/** For a command of the user, before it is replaced by its text. */
export function expansionPayload(ctx: BaseContext, make: MakePayload): Payload | undefined {
  const command = commandOf(ctx)
  if (command === undefined) return undefined
  const input = {
    ...permissionMode,
    expansion_type: 'slash_command',
    command_name: command.name,
    command_args: command.given,
    command_source: command.source,
    prompt: textOf(inputOf(ctx).content),
  }
  return make('UserPromptExpansion', input, command.name)
}

/** The command of the agent that the user typed, if it is one. */
export function commandOf(ctx: BaseContext): ReturnType<typeof commandIn> {
  return subagentOf(ctx.state) === undefined ? commandIn(BaseContext.hostOf(ctx), inputOf(ctx)) : undefined
}

function inputOf(ctx: BaseContext): Message {
  return BaseContext.draftOf(ctx).facts['input'] as Message
}

import { TASKS_KEY, type AgentState } from '../../../state/agent-state.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../state/json.ts'
import { textOf, type Part } from '../../../state/message.ts'
import type { ToolCall } from '../../../state/tool-call.ts'
import type { ClaudeEvent } from './claude-events.ts'
import { toClaudeCall } from './tool-names.ts'

// Events that have no trigger of their own: what a call is about to do, and what a person sees.

/** Makes a payload of an event: what it is told, and what its matcher is about. */
export type Make<P> = (event: ClaudeEvent, input: JsonObject, ...matched: readonly string[]) => P

export const permissionMode = { permission_mode: 'default' }

/** A call that sets a subagent to work. */
export function subagentStart<P>(made: Make<P>, call: ToolCall<Json>, cwd: string): readonly P[] {
  const { name, input } = toClaudeCall(call.name, call.args, cwd)
  const { subagent_type: type } = input
  if (name !== 'Agent' || typeof type !== 'string') return []
  return [made('SubagentStart', { agent_id: call.id, agent_type: type }, type)]
}

type Task = { readonly subject: string; readonly isDone: boolean }

/** Tasks that a call would add to the list, or mark as done. */
export function taskPayloads<P>(made: Make<P>, { name, args }: ToolCall<Json>, state: AgentState): readonly P[] {
  if (name !== 'todo_write' || !isJsonObject(args)) return []
  const before = new Map(getEventTasks(state.metadata[TASKS_KEY]).map(({ subject, isDone }) => [subject, isDone]))
  return getEventTasks(args['todos'] ?? null).flatMap(({ subject, isDone }, i) => {
    const input = { ...permissionMode, task_id: String(i + 1), task_subject: subject }
    return [
      ...(before.has(subject) ? [] : [made('TaskCreated', input)]),
      ...(isDone && before.get(subject) !== true ? [made('TaskCompleted', input)] : []),
    ]
  })
}

function getEventTasks(kept: Json | undefined): readonly Task[] {
  const list = isJsonObject(kept) ? kept['tasks'] : kept
  if (!Array.isArray(list)) return []
  return list.flatMap((each: Json) => {
    if (!isJsonObject(each) || typeof each['content'] !== 'string') return []
    return [{ subject: each['content'], isDone: each['status'] === 'completed' }]
  })
}

/** What a model said, as a whole. */
export function displayPayload<P>(
  made: Make<P>,
  content: readonly Part[],
  { execution, messages }: AgentState,
): readonly P[] {
  const delta = textOf(content)
  if (delta === '') return []
  const turn = execution?.id ?? ''
  const ids = { turn_id: turn, message_id: `${turn}/${messages.length}` }
  return [made('MessageDisplay', { ...ids, index: 0, final: true, delta })]
}

/** Somebody is about to be asked about a call. */
export function questionNotice<P>(made: Make<P>, tool: string): P {
  const type = 'permission_prompt'
  const words = { message: `Permission is needed to use ${tool}`, title: 'Permission needed' }
  return made('Notification', { ...words, notification_type: type }, type)
}

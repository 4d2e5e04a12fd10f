import { toJson, type Json, type JsonObject } from '../data/json.ts'
import type { InferenceRequest } from '../data/inference.ts'
import { textOf, type Message } from '../data/message.ts'
import { List } from '../data/list.ts'
import { Context } from '../hooks/draft.ts'
import { specOf } from '../hooks/triggers.ts'

/**
 * What an action is told, as JSON: where in which run it is, and what the trigger carries, under the names that a hook in
 * code finds on its context. Of a request only its size is told: a conversation grows, and a command is started each time.
 */
export function eventFor(ctx: Context): JsonObject {
  const { state, trigger, now } = ctx
  const { facts } = Context.draftOf(ctx)
  const carried = specOf(trigger).carries.map((name) => [name, told(facts[name])] as const)
  return toJson({
    trigger,
    now,
    agentId: state.agentId,
    ...(state.parentId !== undefined && { parentId: state.parentId }),
    ...(state.execution !== undefined && { executionId: state.execution.id }),
    step: state.stepCount,
    spent: ctx.spent,
    metadata: state.metadata,
    ...Object.fromEntries(carried.filter(([, value]) => value !== undefined)),
  }) as JsonObject
}

function told(value: unknown): unknown {
  if (value instanceof List) return { count: value.length, last: lastText(value as List<Message>) }
  if (isRequest(value)) {
    const { model, messages, tools, system } = value
    return { model: `${model.provider}/${model.modelId}`, system, tools, messages: told(messages) as Json }
  }
  return value
}

function isRequest(value: unknown): value is InferenceRequest {
  return typeof value === 'object' && value !== null && 'model' in value && 'messages' in value && 'tools' in value
}

function lastText(messages: List<Message>): string {
  const last = messages.at(-1)
  return last === undefined ? '' : textOf(last.content)
}

import type { InferenceRequest } from '../state/inference.ts'
import { toJson, type JsonObject } from '../state/json.ts'
import { List } from '../state/list.ts'
import { textOf, type Message } from '../state/message.ts'
import { AgentError } from '../errors.ts'
import { BaseContext } from '../hooks/base-context.ts'
import { specOf } from '../hooks/triggers.ts'

export type EventOptions = {
  /** Whether whole conversations are told. Otherwise it is how many messages there are, and the text of the last. */
  readonly conversation?: boolean
  /** The most characters an event may have. */
  readonly maxCharacters?: number
}

/** What no command, server or model is sent: whoever judges half of a call has not judged it. */
const MAX_CHARACTERS = 16 * 1024 * 1024

/**
 * What an action is told, as JSON text: where in which run it is, and what the trigger carries, under the names that a hook
 * in code finds on its context. Nothing of a call, a result or an answer is cut off: an event that is too long is an error.
 */
export function eventText(
  ctx: BaseContext,
  { maxCharacters = MAX_CHARACTERS, conversation = false }: EventOptions = {},
): string {
  const text = JSON.stringify(eventFor(ctx, { conversation }))
  if (text.length <= maxCharacters) return text
  const words = `The event has ${text.length} characters, and at most ${maxCharacters} are told.`
  throw new AgentError('HOOK_FAILED', words, { value: text.length })
}

export function eventFor(
  ctx: BaseContext,
  { conversation = false }: Pick<EventOptions, 'conversation'> = {},
): JsonObject {
  const { state, trigger, now } = ctx
  const { facts } = BaseContext.draftOf(ctx)
  const carried = specOf(trigger).carries.map((name) => [name, told(facts[name], conversation)] as const)
  return toJson({
    trigger,
    now,
    agentId: state.agentId,
    ...(state.parentId !== undefined && { parentId: state.parentId }),
    ...(state.execution !== undefined && { executionId: state.execution.id }),
    stepCount: state.stepCount,
    spent: ctx.spent,
    metadata: shared(state.metadata),
    ...Object.fromEntries(carried.filter(([, value]) => value !== undefined)),
  }) as JsonObject
}

/** What the runtime keeps for itself among the metadata is nobody else's business, but for who a subagent is. */
function shared(metadata: JsonObject): JsonObject {
  const isShared = (key: string): boolean => !key.startsWith('hookloop.') || key === 'hookloop.subagent'
  return Object.fromEntries(Object.entries(metadata).filter(([key]) => isShared(key)))
}

/** A conversation grows with every step, and a command is started at each: so it is told only to those who want it. */
function told(value: unknown, conversation: boolean): unknown {
  if (value instanceof List) return messagesTold(value as List<Message>, conversation)
  if (!isRequest(value)) return value
  const { model, messages, tools, system, settings } = value
  return {
    model: `${model.provider}/${model.modelId}`,
    system,
    tools,
    ...(settings !== undefined && { settings }),
    messages: messagesTold(messages, conversation),
  }
}

function messagesTold(messages: List<Message>, conversation: boolean): unknown {
  if (conversation) return messages.slice()
  const last = messages.at(-1)
  return { count: messages.length, last: last === undefined ? '' : textOf(last.content) }
}

function isRequest(value: unknown): value is InferenceRequest {
  return typeof value === 'object' && value !== null && 'model' in value && 'messages' in value && 'tools' in value
}

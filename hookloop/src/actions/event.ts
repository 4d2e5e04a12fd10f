import {
  factsOf,
  messageList,
  textOf,
  triggers,
  type ActionContext,
  type InferenceRequest,
  type Message,
} from '../plugin.ts'
import { toJson, type JsonObject } from '../values/json.ts'
import { AgentError } from '../errors.ts'

type EventOptions = {
  /** Whether the event contains complete conversations instead of their length and last message. */
  readonly conversation?: boolean
  /** Maximum length of the event. */
  readonly maxChars?: number
}

/** Longer events are not sent: a call must be judged as a whole. */
const MAX_CHARS = 16 * 1024 * 1024

/**
 * The event that an action reads, as JSON: the run, the step, and what the trigger provides, under the names of the hook
 * context. Nothing is truncated: an event that is too long is an error.
 */
export function eventText(
  ctx: ActionContext,
  { maxChars = MAX_CHARS, conversation = false }: EventOptions = {},
): string {
  const text = JSON.stringify(eventOf(ctx, conversation))
  if (text.length <= maxChars) return text
  const message = `The event has ${text.length} characters; the maximum is ${maxChars}.`
  throw new AgentError('HOOK_FAILED', message, { value: text.length })
}

function eventOf(ctx: ActionContext, conversation: boolean): JsonObject {
  const { state, trigger, now } = ctx
  const facts = factsOf(ctx)
  const carried = triggers[trigger].carries.map(
    (name) => [name, toEventValue(name, facts[name], conversation)] as const,
  )
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

/** The metadata without the keys of the runtime, except the one that names the subagent. */
function shared(metadata: JsonObject): JsonObject {
  const isShared = (key: string): boolean => !key.startsWith('hookloop.') || key === 'hookloop.subagent'
  return Object.fromEntries(Object.entries(metadata).filter(([key]) => isShared(key)))
}

/** A conversation grows with every step, so it is sent only on request. */
function toEventValue(name: string, value: unknown, conversation: boolean): unknown {
  if (name === 'messages') return conversation ? value : briefly(value as readonly Message[])
  if (!isRequest(value)) return value
  const { model, tools, system, settings } = value
  return {
    model: `${model.provider}/${model.modelId}`,
    system,
    tools,
    ...(settings !== undefined && { settings }),
    messages: conversation ? value.messages : briefly(messageList(value)),
  }
}

/** Without a copy of the conversation. */
function briefly(messages: Pick<readonly Message[], 'length' | 'at'>): JsonObject {
  const last = messages.at(-1)
  return { count: messages.length, last: last === undefined ? '' : textOf(last.content) }
}

function isRequest(value: unknown): value is InferenceRequest {
  return typeof value === 'object' && value !== null && 'model' in value && 'messages' in value && 'tools' in value
}

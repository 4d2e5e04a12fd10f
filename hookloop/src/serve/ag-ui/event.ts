import type { Json, JsonObject } from '../../values/json.ts'

/** The events of AG-UI 1.0 that are sent. */
export type AgUiEvent =
  | {
      readonly type: 'RUN_STARTED'
      readonly threadId: string
      readonly runId: string
      readonly protocolVersion: string
    }
  | ({ readonly type: 'RUN_FINISHED'; readonly threadId: string; readonly runId: string } & Finished)
  | ({ readonly type: 'RUN_ERROR' } & Failed)
  | { readonly type: 'STEP_STARTED' | 'STEP_FINISHED'; readonly stepName: string }
  | { readonly type: 'TEXT_MESSAGE_START'; readonly messageId: string; readonly role: 'assistant' }
  | { readonly type: 'REASONING_MESSAGE_START'; readonly messageId: string; readonly role: 'reasoning' }
  | {
      readonly type: 'TEXT_MESSAGE_CONTENT' | 'REASONING_MESSAGE_CONTENT'
      readonly messageId: string
      readonly delta: string
    }
  | {
      readonly type: 'TEXT_MESSAGE_END' | 'REASONING_START' | 'REASONING_MESSAGE_END' | 'REASONING_END'
      readonly messageId: string
    }
  | ({
      readonly type: 'TOOL_CALL_START'
      readonly toolCallId: string
      readonly toolCallName: string
    } & AgUiOwner)
  | { readonly type: 'TOOL_CALL_ARGS'; readonly toolCallId: string; readonly delta: string }
  | { readonly type: 'TOOL_CALL_END'; readonly toolCallId: string }
  | {
      readonly type: 'TOOL_CALL_RESULT'
      readonly messageId: string
      readonly toolCallId: string
      readonly role: 'tool'
      readonly content: string
      readonly metadata: JsonObject
      readonly subagentRunId?: string
    }
  | { readonly type: 'MESSAGES_SNAPSHOT'; readonly messages: readonly AgUiMessage[] }
  | { readonly type: 'CUSTOM'; readonly name: `hookloop.${string}`; readonly value: Json }

/** Whose call it is: that of a message of the agent, or of a subagent. */
export type AgUiOwner = { readonly parentMessageId?: string; readonly subagentRunId?: string }

/** How a run ends. */
export type AgUiEnd = Finished | Failed

type Finished = {
  readonly outcome:
    | { readonly type: 'success' }
    | { readonly type: 'cancelled' }
    | { readonly type: 'interrupt'; readonly interrupts: readonly Interrupt[] }
  readonly result?: JsonObject
}

type Failed = { readonly message: string; readonly code?: string }

/** A question. */
export type Interrupt = JsonObject & { readonly id: string; readonly message: string }

/** A message of a conversation. */
export type AgUiMessage =
  | { readonly id: string; readonly role: 'user'; readonly content: Json }
  | { readonly id: string; readonly role: 'reasoning'; content: string }
  | {
      readonly id: string
      readonly role: 'assistant'
      readonly subagentRunId?: string
      content?: string
      toolCalls?: AgUiCall[]
    }
  | {
      readonly id: string
      readonly role: 'tool'
      readonly toolCallId: string
      readonly content: string
      readonly metadata: JsonObject
      readonly subagentRunId?: string
    }

type AgUiCall = {
  readonly id: string
  readonly type: 'function'
  readonly function: { readonly name: string; arguments: string }
}

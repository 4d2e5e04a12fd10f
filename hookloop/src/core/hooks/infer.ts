import type { FinishReason, ModelSettings, ModelSource } from '../state/inference.ts'
import type { JsonObject } from '../../values/json.ts'
import type { Message } from '../state/message.ts'
import type { OutputOf, Schema } from '../../values/schema.ts'
import type { TokenUsage } from '../state/usage.ts'
import type { HookTrigger } from './triggers.ts'

/** What a hook sends to a model: a prompt, a conversation, or a conversation followed by a prompt. */
export type InferOptions<S = Schema | JsonObject> = {
  /** Defaults to the model of the conversation. */
  readonly model?: ModelSource
  /** The system prompt. Default: empty. */
  readonly system?: string
  /** A conversation. Default: empty. */
  readonly messages?: Iterable<Message>
  /** The last message. Default none: the conversation is enough. */
  readonly prompt?: string | Message
  /** The schema of the answer. `output` in the result is the parsed value. Default none: the answer is a text. */
  readonly output?: S
  /** Settings for this call. The settings of the agent do not apply to it. Default none. */
  readonly settings?: ModelSettings
}

/** The answer of the model. */
export type Inferred = {
  readonly text: string
  readonly finishReason: FinishReason
  /** What the call cost, including a second attempt. The run has counted it already. */
  readonly usage: TokenUsage
  /** The model that answered, as named by its provider. */
  readonly modelId?: string
}

/** A context that can call models. */
export interface Infers {
  /**
   * Calls a model. Like every model call it is decided on by the guards at `beforeInference`, counted, and recorded, so
   * that a replay calls no model. Rejects with MODEL_FORBIDDEN, with the error of the call, or with OUTPUT_INVALID.
   */
  infer<S extends Schema | JsonObject>(
    options: InferOptions<S> & { readonly output: S },
  ): Promise<Inferred & { readonly output: OutputOf<S> }>
  infer(options: InferOptions): Promise<Inferred>
}

/** The hook that calls models, and where. */
export type InferringHook = {
  readonly hook: string
  readonly mode: 'transform' | 'guard' | 'observe'
  readonly trigger: HookTrigger
  readonly call: string | undefined
  /** What the hook is part of: see `HookHost`. */
  readonly place?: string | undefined
}

/** The model calls of one hook in one invocation. */
export type HookInference = {
  /** What the calls have cost so far. The run is billed when the hook has ended. */
  readonly spent: TokenUsage
  infer(options: InferOptions): Promise<Inferred & { readonly output?: unknown }>
  /** The calls that the hook did not wait for, if there are any. They count as a part of the hook: its time limit applies. */
  readonly pending?: Promise<unknown> | undefined
  /** Call when the hook has ended: waits for calls that the hook did not wait for, and bills the run. */
  close(end: 'returned' | 'threw' | 'timedOut'): Promise<void>
}

import type { FinishReason, ModelSettings, ModelSource } from '../state/inference.ts'
import type { JsonObject } from '../state/json.ts'
import type { Message } from '../state/message.ts'
import type { OutputOf, Schema } from '../state/schema.ts'
import type { TokenUsage } from '../state/usage.ts'
import type { HookTrigger } from './triggers.ts'

/** What a hook asks a model: a prompt, a conversation, or a conversation and then a prompt. */
export type InferOptions<S = Schema | JsonObject> = {
  /** The model of the conversation unless told. */
  readonly model?: ModelSource
  readonly system?: string
  readonly messages?: Iterable<Message>
  readonly prompt?: string | Message
  /** The schema of the answer: `output` is then what it makes of it. */
  readonly output?: S
  /** Settings for this call; those of the agent are for its own calls. */
  readonly settings?: ModelSettings
}

/** What the model answered. */
export type Inferred = {
  readonly text: string
  readonly finishReason: FinishReason
  /** What it cost, a second try included. It is counted already. */
  readonly usage: TokenUsage
  /** The model that answered, as its provider calls it. */
  readonly modelId?: string
}

export interface Infers {
  /**
   * Asks a model. The call is judged like any other by the guards at `beforeInference`, counted, and recorded, so that a
   * replay asks nobody. Rejects with MODEL_FORBIDDEN, with how the call failed, or with OUTPUT_INVALID.
   */
  infer<S extends Schema | JsonObject>(
    asked: InferOptions<S> & { readonly output: S },
  ): Promise<Inferred & { readonly output: OutputOf<S> }>
  infer(asked: InferOptions): Promise<Inferred>
}
/** The hook that asks, and where. */
export type Asker = {
  readonly hook: string
  readonly mode: 'transform' | 'guard' | 'observe'
  readonly trigger: HookTrigger
  /** The beginning of the key of everything it asks. */
  readonly key: string
}

/** What one hook asks of models in one firing. */
export interface HookInference {
  /** What that has cost so far. The run is billed when the hook has ended. */
  readonly spent: TokenUsage
  infer(asked: InferOptions): Promise<Inferred & { readonly output?: unknown }>
  /** The hook has ended. Waits for what it has not waited for, and hands everything over to the run. */
  close(how: 'returned' | 'threw' | 'timedOut'): Promise<void>
}

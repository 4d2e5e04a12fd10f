import { SpanKind, type Attributes, type Context } from '@opentelemetry/api'
import type { InferenceRequest, InferenceResponse } from '../core/state/inference.ts'
import type { ObserveContext } from '../core/hooks/context.ts'
import { inputContent, outputContent, systemContent } from './content.ts'
import { attributes, operations } from './conventions.ts'
import { modelFacts, settingsFacts, usageFacts } from './facts.ts'
import { substituteOf, type Reading } from './hook-times.ts'
import type { Instruments } from './instruments.ts'
import type { Spans } from './spans.ts'

export type Answered =
  | { readonly response: InferenceResponse; readonly durationMs: number | undefined; readonly error?: never }
  | {
      readonly error: { readonly code: string; readonly message: string }
      readonly response?: never
      readonly durationMs?: never
    }

type Place = { readonly parent: Context; readonly facts: Attributes }

/** The model calls of an execution. Each becomes one span when it is over, including all attempts of around hooks. */
export class InferenceTrace {
  readonly #spans: Spans
  readonly #instruments: Instruments
  #pending: { readonly at: number; readonly request: InferenceRequest } | undefined

  constructor(spans: Spans, instruments: Instruments) {
    this.#spans = spans
    this.#instruments = instruments
  }

  /** The current request, if there is one. */
  get request(): InferenceRequest | undefined {
    return this.#pending?.request
  }

  /** A model is about to be called, unless a hook has forbidden it. */
  start({ request, state, signal }: ObserveContext<'beforeInference'>, at: number): void {
    const forbidden = state.execution!.votes.some((vote) => vote.decision === 'forbidContinuation')
    this.#pending = forbidden || signal.aborted ? undefined : { at, request }
  }

  /** The call has succeeded or failed. */
  end({ response, error, durationMs = Infinity }: Answered, reading: Reading, { parent, facts: own }: Place): void {
    const { at, request } = this.#pending!
    this.#pending = undefined
    const until = Math.max(at, Math.min(at + durationMs, reading.callEnded))
    const by = substituteOf(reading)
    const measured: Attributes = {
      [attributes.operation]: operations.chat,
      ...modelFacts(request),
      ...(response?.modelId !== undefined && { [attributes.responseModel]: response.modelId }),
    }
    this.#spans.add([operations.chat, request.model.modelId], {
      at,
      until,
      parent,
      facts: {
        ...measured,
        ...settingsFacts(request),
        ...own,
        ...(response && { [attributes.finishReasons]: [response.finishReason] }),
        ...(by === undefined ? response && usageFacts(response.usage) : { [attributes.answeredBy]: by }),
      },
      kind: SpanKind.CLIENT,
      content: () => ({
        ...systemContent(request.system),
        ...inputContent(request.messages),
        ...(response && outputContent(response)),
      }),
      error,
    })
    if (by !== undefined) return // no model was called
    if (response !== undefined) this.#instruments.spent(response.usage, measured)
    this.#instruments.took('duration', until - at, {
      ...measured,
      ...(error && { [attributes.errorType]: error.code }),
    })
  }
}

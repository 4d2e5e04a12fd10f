import { SpanKind, type Attributes, type Context } from '@opentelemetry/api'
import type { InferenceRequest, InferenceResponse } from '../state/inference.ts'
import type { ObserveContext } from '../hooks/context.ts'
import { outputContent, requestContent } from './content.ts'
import { attributes, operations } from './conventions.ts'
import { modelFacts, requestFacts, responseFacts, usageFacts } from './facts.ts'
import { substituteOf, type Reading } from './hook-times.ts'
import type { Instruments } from './instruments.ts'
import type { Spans } from './spans.ts'

export type Answered =
  | { readonly response: InferenceResponse; readonly error?: never }
  | { readonly error: { readonly code: string; readonly message: string }; readonly response?: never }

type Pending = { readonly at: number; readonly request: InferenceRequest }
type Place = { readonly parent: Context; readonly facts: Attributes }

/** The model calls of an execution. Each becomes one span when it is over, including all attempts of around hooks. */
export class InferenceTrace {
  readonly #spans: Spans
  readonly #instruments: Instruments
  #pending: Pending | undefined

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
  end(answered: Answered, reading: Reading, { parent, facts: own }: Place): void {
    const pending = this.#pending!
    this.#pending = undefined
    const { at, request } = pending
    const { response, error } = answered
    const until = Math.max(at, reading.callEnded)
    const by = substituteOf(reading)
    const facts: Attributes = {
      ...requestFacts(request),
      ...own,
      ...(response && responseFacts(response)),
      ...(by === undefined ? response && usageFacts(response.usage) : { [attributes.answeredBy]: by }),
    }
    const span = this.#spans.start([operations.chat, request.model.modelId], {
      at,
      parent,
      facts,
      kind: SpanKind.CLIENT,
    })
    this.#spans.addContent(span, () => ({ ...requestContent(request), ...(response && outputContent(response)) }))
    if (error !== undefined) this.#spans.fail(span, error)
    span.end(until)
    if (by === undefined) this.#measure(pending, answered, until) // otherwise no model was called
  }

  #measure({ at, request }: Pending, { response, error }: Answered, until: number): void {
    const facts: Attributes = {
      [attributes.operation]: operations.chat,
      ...modelFacts(request),
      ...(response?.modelId !== undefined && { [attributes.responseModel]: response.modelId }),
    }
    if (response !== undefined) this.#instruments.spent(response.usage, facts)
    this.#instruments.took('duration', until - at, { ...facts, ...(error && { [attributes.errorType]: error.code }) })
  }
}

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

type Asked = { readonly at: number; readonly request: InferenceRequest }
type Place = { readonly parent: Context; readonly facts: Attributes }

/** The model calls of an execution. Each is told when it is over, as one with all attempts that hooks around it made. */
export class InferenceTrace {
  readonly #spans: Spans
  readonly #instruments: Instruments
  #asked: Asked | undefined

  constructor(spans: Spans, instruments: Instruments) {
    this.#spans = spans
    this.#instruments = instruments
  }

  /** The request that is under way, if one is. */
  get request(): InferenceRequest | undefined {
    return this.#asked?.request
  }

  /** A model is about to be asked, unless somebody has forbidden it. */
  begin({ request, state, signal }: ObserveContext<'beforeInference'>, at: number): void {
    const forbidden = state.execution!.votes.some((vote) => vote.decision === 'forbidContinuation')
    this.#asked = forbidden || signal.aborted ? undefined : { at, request }
  }

  /** It has answered or failed. */
  end(answered: Answered, reading: Reading, { parent, facts: own }: Place): void {
    const asked = this.#asked!
    this.#asked = undefined
    const { at, request } = asked
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
    this.#spans.tell(span, () => ({ ...requestContent(request), ...(response && outputContent(response)) }))
    if (error !== undefined) this.#spans.fail(span, error)
    span.end(until)
    if (by === undefined) this.#measure(asked, answered, until) // otherwise nobody was asked
  }

  #measure({ at, request }: Asked, { response, error }: Answered, until: number): void {
    const facts: Attributes = {
      [attributes.operation]: operations.chat,
      ...modelFacts(request),
      ...(response?.modelId !== undefined && { [attributes.responseModel]: response.modelId }),
    }
    if (response !== undefined) this.#instruments.spent(response.usage, facts)
    this.#instruments.took('duration', until - at, { ...facts, ...(error && { [attributes.errorType]: error.code }) })
  }
}

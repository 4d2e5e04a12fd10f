import { SpanStatusCode, trace } from '@opentelemetry/api'
import type { Attributes, Context, Span, SpanKind, Tracer } from '@opentelemetry/api'
import { attributes, spanKinds } from './conventions.ts'

type Name = readonly [operation: keyof typeof spanKinds, object: string | undefined]
type Failure = { readonly code: string; readonly message: string }

/** A span, and the context for the spans in it. */
export type OpenSpan = { readonly span: Span; readonly context: Context }

type NewSpan = {
  /** The start time in milliseconds since 1970. */
  readonly at: number
  readonly parent: Context
  readonly facts: Attributes
  readonly kind?: SpanKind
}

type EndedSpan = NewSpan & {
  readonly until: number
  readonly content?: (() => Attributes) | undefined
  readonly error?: Failure | undefined
}

/** Creates spans, and adds content to them only if the option `content` is on. */
export class Spans {
  readonly #tracer: Tracer
  readonly #content: boolean

  constructor(tracer: Tracer, content: boolean) {
    this.#tracer = tracer
    this.#content = content
  }

  /** Starts a span named after the operation and, if known, its object. */
  open([operation, object]: Name, { at, parent, facts, ...options }: NewSpan): OpenSpan {
    const name = object === undefined ? operation : `${operation} ${object}`
    const all = { [attributes.spanKind]: spanKinds[operation], ...facts }
    const span = this.#tracer.startSpan(name, { ...options, startTime: at, attributes: all }, parent)
    return { span, context: trace.setSpan(parent, span) }
  }

  /** Adds a span of something that is over. */
  add(name: Name, { until, content, error, ...how }: EndedSpan): void {
    const { span } = this.open(name, how)
    if (content !== undefined) this.addContent(span, content)
    if (error !== undefined) this.fail(span, error)
    span.end(until)
  }

  /** Adds content, if it is wanted and the span is recorded. */
  addContent(span: Span, content: () => Attributes): void {
    if (this.#content && span.isRecording()) span.setAttributes(content())
  }

  /** Marks a span as failed. The message of an error may quote anything, so it is content; its code is not. */
  fail(span: Span, { code, message }: Failure): void {
    span.setAttribute(attributes.errorType, code)
    span.setStatus({ code: SpanStatusCode.ERROR, ...(this.#content && { message }) })
  }
}

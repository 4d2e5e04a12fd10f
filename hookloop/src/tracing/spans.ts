import { SpanStatusCode, type Attributes, type Context, type Link, type Span, type Tracer } from '@opentelemetry/api'
import type { SpanKind } from '@opentelemetry/api'
import { attributes } from './conventions.ts'

type NewSpan = {
  /** The start time in milliseconds since 1970. */
  readonly at: number
  readonly parent: Context
  readonly facts: Attributes
  readonly kind?: SpanKind
  readonly links?: Link[]
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
  start([operation, object]: readonly [string, string | undefined], { at, parent, facts, ...options }: NewSpan): Span {
    const name = object === undefined ? operation : `${operation} ${object}`
    return this.#tracer.startSpan(name, { ...options, startTime: at, attributes: facts }, parent)
  }

  /** Adds content, if it is wanted and the span is recorded. */
  addContent(span: Span, content: () => Attributes): void {
    if (this.#content && span.isRecording()) span.setAttributes(content())
  }

  /** Marks a span as failed. The message of an error may quote anything, so it is content; its code is not. */
  fail(span: Span, { code, message }: { readonly code: string; readonly message: string }): void {
    span.setAttribute(attributes.errorType, code)
    span.setStatus({ code: SpanStatusCode.ERROR, ...(this.#content && { message }) })
  }
}

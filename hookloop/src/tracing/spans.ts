import { SpanStatusCode, type Attributes, type Context, type Link, type Span, type Tracer } from '@opentelemetry/api'
import type { SpanKind } from '@opentelemetry/api'
import { attributes } from './conventions.ts'

type NewSpan = {
  /** When it began, in milliseconds since 1970. */
  readonly at: number
  readonly parent: Context
  readonly facts: Attributes
  readonly kind?: SpanKind
  readonly links?: Link[]
}

/** Makes spans, and keeps what was said out of them unless it was asked for. */
export class Spans {
  readonly #tracer: Tracer
  readonly #content: boolean

  constructor(tracer: Tracer, content: boolean) {
    this.#tracer = tracer
    this.#content = content
  }

  /** A span with a name made of what is done and to what, if that is known. */
  start([what, to]: readonly [string, string | undefined], { at, parent, facts, ...options }: NewSpan): Span {
    const name = to === undefined ? what : `${what} ${to}`
    return this.#tracer.startSpan(name, { ...options, startTime: at, attributes: facts }, parent)
  }

  /** Adds what was said. It is written out only if it is wanted and somebody records it. */
  tell(span: Span, content: () => Attributes): void {
    if (this.#content && span.isRecording()) span.setAttributes(content())
  }

  /** Marks a span as failed. The words of an error may quote anything, so they are content; its code is not. */
  fail(span: Span, { code, message }: { readonly code: string; readonly message: string }): void {
    span.setAttribute(attributes.errorType, code)
    span.setStatus({ code: SpanStatusCode.ERROR, ...(this.#content && { message }) })
  }
}

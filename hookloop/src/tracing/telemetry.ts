import { metrics, SpanStatusCode, trace } from '@opentelemetry/api'
import type { Attributes, Context, Histogram, Meter, MeterProvider, Span, SpanKind, Tracer } from '@opentelemetry/api'
import type { TokenUsage } from '../core/state/usage.ts'
import { attributes, metricNames, spanKinds } from './conventions.ts'

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
  readonly content: () => Attributes
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
  add(name: Name, { until, content, error, ...rest }: EndedSpan): void {
    const { span } = this.open(name, rest)
    this.addContent(span, content)
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

export const SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
const TOKENS = Array.from({ length: 14 }, (_, i) => 4 ** i) // 1, 4, 16 … 67,108,864

type Histograms = { readonly [K in keyof typeof metricNames]: Histogram }

/** The metrics. Unlike tracers, meters do not follow a provider that is registered later, so it is checked each time. */
export class Instruments {
  readonly #meter: Meter | undefined
  #provider: MeterProvider | undefined
  #histograms: Histograms | undefined

  constructor(meter: Meter | undefined) {
    this.#meter = meter
  }

  /** Records a duration in milliseconds. */
  took(what: 'duration' | 'tool' | 'execution', ms: number, facts: Attributes): void {
    this.#current()[what].record(ms / 1000, facts)
  }

  /** Records the tokens of a call. Counts that were not reported are not recorded. */
  spent({ inputTokens, outputTokens }: TokenUsage, facts: Attributes): void {
    const { tokens } = this.#current()
    if (inputTokens > 0) tokens.record(inputTokens, { ...facts, [attributes.tokenType]: 'input' })
    if (outputTokens > 0) tokens.record(outputTokens, { ...facts, [attributes.tokenType]: 'output' })
  }

  #current(): Histograms {
    const provider = metrics.getMeterProvider()
    if (this.#histograms === undefined || (this.#meter === undefined && provider !== this.#provider)) {
      this.#histograms = histogramsOf(this.#meter ?? provider.getMeter('hookloop'))
      this.#provider = provider
    }
    return this.#histograms
  }
}

function histogramsOf(meter: Meter): Histograms {
  const seconds = (name: string, description: string): Histogram =>
    meter.createHistogram(name, { description, unit: 's', advice: { explicitBucketBoundaries: SECONDS } })
  return {
    tokens: meter.createHistogram(metricNames.tokens, {
      description: 'Tokens of a model call.',
      unit: '{token}',
      advice: { explicitBucketBoundaries: TOKENS },
    }),
    duration: seconds(metricNames.duration, 'Duration of a model call.'),
    tool: seconds(metricNames.tool, 'Duration of a tool call.'),
    execution: seconds(metricNames.execution, 'Duration of an execution, until its end or suspension.'),
  }
}

import { AsyncLocalStorage } from 'node:async_hooks'
import { ROOT_CONTEXT, SpanStatusCode, type Context, type ContextManager } from '@opentelemetry/api'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
  type Histogram,
} from '@opentelemetry/sdk-metrics'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider, type ReadableSpan } from '@opentelemetry/sdk-trace'
import { tracing, type TracingOptions } from './tracing.ts'

export type Measured = {
  readonly [attribute: string]: unknown
  readonly count: number
  readonly sum: number | undefined
}

/** The capability, and what OpenTelemetry's in-memory exporters received from it. */
export function inMemory(options: TracingOptions = {}) {
  const exporter = new InMemorySpanExporter()
  const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] })
  const metricExporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter: metricExporter, exportIntervalMillis: 600_000 })
  const meters = new MeterProvider({ readers: [reader] })
  const tracer = provider.getTracer('test')
  const latest = (name: string) => {
    const all = metricExporter.getMetrics().at(-1)?.scopeMetrics ?? []
    return all.flatMap((scope) => scope.metrics).find(({ descriptor }) => descriptor.name === name)?.dataPoints ?? []
  }
  return {
    provider,
    meters,
    tracer,
    tracing: tracing({ tracer, meter: meters.getMeter('test'), ...options }),
    spans: (): readonly ReadableSpan[] => [...exporter.getFinishedSpans()],
    span: (name: string): ReadableSpan => exporter.getFinishedSpans().find((each) => each.name === name)!,
    /** The measurements of a histogram, with their attributes. Stops measuring. */
    measured: async (name: string): Promise<readonly Measured[]> => {
      await meters.shutdown()
      return latest(name).map((point) => {
        const { count, sum } = point.value as Histogram
        return { ...point.attributes, count, sum }
      })
    },
    /** The values of a counter or a gauge now, each after its attributes. */
    values: async (name: string): Promise<readonly unknown[]> => {
      await meters.forceFlush()
      return latest(name).flatMap(({ attributes, value }) => [...Object.values(attributes), value])
    },
  }
}

/** Spans as an indented tree of names, siblings in the order in which they ended, failed ones with an exclamation mark. */
export function treeOf(spans: readonly ReadableSpan[]): readonly string[] {
  const ids = new Set(spans.map((span) => span.spanContext().spanId))
  const below = (parent: string | undefined, depth: number): string[] =>
    spans
      .filter(({ parentSpanContext: own }) => (ids.has(own?.spanId ?? '') ? own!.spanId : undefined) === parent)
      .flatMap((span) => [
        `${'  '.repeat(depth)}${span.name}${span.status.code === SpanStatusCode.ERROR ? ' !' : ''}`,
        ...below(span.spanContext().spanId, depth + 1),
      ])
  return below(undefined, 0)
}

/** When a span started and ended, in milliseconds since 1970. */
export function timesOf({ startTime, endTime }: ReadableSpan): { readonly start: number; readonly end: number } {
  const toMs = ([seconds, nanos]: readonly [number, number]): number => seconds * 1000 + nanos / 1e6
  return { start: toMs(startTime), end: toMs(endTime) }
}

/** The context manager that OpenTelemetry has for Node, as far as a test needs it. */
export class AsyncContexts implements ContextManager {
  readonly #storage = new AsyncLocalStorage<Context>()

  active(): Context {
    return this.#storage.getStore() ?? ROOT_CONTEXT
  }
  with<A extends unknown[], F extends (...args: A) => ReturnType<F>>(
    context: Context,
    fn: F,
    thisArg?: ThisParameterType<F>,
    ...args: A
  ): ReturnType<F> {
    return this.#storage.run(context, () => fn.call(thisArg as never, ...args))
  }
  bind<T>(_context: Context, target: T): T {
    return target
  }
  enable(): this {
    return this
  }
  disable(): this {
    this.#storage.disable()
    return this
  }
}

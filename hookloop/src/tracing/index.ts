// The only entry point that needs `@opentelemetry/api`.

export { tracing, type TracingOptions } from './tracing.ts'
export { workerMetrics, type WorkerMetricsOptions } from './worker-metrics.ts'

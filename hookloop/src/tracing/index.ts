// What `hookloop/tracing` offers. It needs `@opentelemetry/api`, and is the only door that loads it.

export { tracing, type TracingOptions } from './tracing.ts'

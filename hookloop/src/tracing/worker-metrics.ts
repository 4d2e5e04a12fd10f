import { metrics, type Meter } from '@opentelemetry/api'
import { checkOptions } from '../values/check-options.ts'
import type { SessionStore } from '../sessions/stores/store.ts'
import { attributes, OTHER_ERROR, workerMetricNames as names } from './conventions.ts'
import { SECONDS } from './telemetry.ts'

/** Options of `workerMetrics`. */
export type WorkerMetricsOptions = {
  /** Creates the metrics. Default: the global meter named "hookloop". */
  readonly meter?: Meter
  /** Counts the open sessions in this store. Default: they are not counted. */
  readonly store?: SessionStore
}

/** What is needed of the report of a turn. Workers and tracing do not import each other. */
type Report = {
  readonly type: 'started' | 'ended' | 'retried'
  readonly lagMs?: number
  readonly durationMs?: number
  readonly status?: string
  readonly takenOver?: true
  readonly error?: { readonly code?: string }
}

const openStatuses = ['running', 'suspended', 'interrupted'] as const

/**
 * Reports the turns of a worker to OpenTelemetry, as the option `onTurn` of `serveSessions`.
 *
 * @example
 * await serveSessions({ agent, connectionString, onTurn: workerMetrics({ store }) })
 */
export function workerMetrics(options: WorkerMetricsOptions = {}): (report: Report) => void {
  checkOptions('workerMetrics', options, ['meter', 'store'])
  const { meter = metrics.getMeter('hookloop'), store } = options
  if (store !== undefined) countOpen(meter, store)
  const seconds = { unit: 's', advice: { explicitBucketBoundaries: SECONDS } }
  const turns = { unit: '{turn}' }
  const running = meter.createUpDownCounter(names.running, { ...turns, description: 'Turns that are driven now.' })
  const duration = meter.createHistogram(names.duration, { ...seconds, description: 'Duration of a turn.' })
  const lag = meter.createHistogram(names.lag, { ...seconds, description: 'From sending a turn to its start.' })
  const retries = meter.createCounter(names.retries, { ...turns, description: 'Attempts that are repeated.' })
  const takeovers = meter.createCounter(names.takeovers, { ...turns, description: 'Runs taken over.' })
  return ({ type, lagMs, durationMs = 0, status, takenOver, error }) => {
    running.add(type === 'started' ? 1 : -1)
    if (lagMs !== undefined) lag.record(lagMs / 1000)
    if (type === 'retried') retries.add(1, { [attributes.errorType]: error?.code ?? OTHER_ERROR })
    if (type === 'ended') duration.record(durationMs / 1000, { [attributes.status]: status })
    if (takenOver === true) takeovers.add(1)
  }
}

function countOpen(meter: Meter, store: SessionStore): void {
  const description = 'Sessions with a run that has not ended.'
  meter.createObservableGauge(names.open, { unit: '{session}', description }).addCallback(async (gauge) => {
    for (const status of openStatuses) {
      // Without a measurement while the store cannot be reached.
      const sessions = await store.list({ status }).catch(() => undefined)
      if (sessions !== undefined) gauge.observe(sessions.length, { [attributes.status]: status })
    }
  })
}

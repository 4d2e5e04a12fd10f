import { metrics, type Attributes, type Histogram, type Meter, type MeterProvider } from '@opentelemetry/api'
import type { TokenUsage } from '../state/usage.ts'
import { attributes, metricNames } from './conventions.ts'

const SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
const TOKENS = Array.from({ length: 14 }, (_, i) => 4 ** i) // 1, 4, 16 … 67,108,864

type Histograms = { readonly [K in keyof typeof metricNames]: Histogram }

/** What is measured. Unlike tracers, meters do not wait for a provider that comes later, so it is looked for again. */
export class Instruments {
  readonly #meter: Meter | undefined
  #provider: MeterProvider | undefined
  #histograms: Histograms | undefined

  constructor(meter: Meter | undefined) {
    this.#meter = meter
  }

  /** How long something took, from one time to another in milliseconds. */
  took(what: 'duration' | 'tool' | 'execution', ms: number, facts: Attributes): void {
    this.#current()[what].record(ms / 1000, facts)
  }

  /** What a call spent. Nothing is recorded where nothing was reported. */
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
      description: 'Tokens that a model call used.',
      unit: '{token}',
      advice: { explicitBucketBoundaries: TOKENS },
    }),
    duration: seconds(metricNames.duration, 'How long a model call took.'),
    tool: seconds(metricNames.tool, 'How long a tool ran.'),
    execution: seconds(metricNames.execution, 'How long an execution took, to its end or to its suspension.'),
  }
}

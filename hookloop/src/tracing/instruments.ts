import { metrics, type Attributes, type Histogram, type Meter, type MeterProvider } from '@opentelemetry/api'
import type { TokenUsage } from '../core/state/usage.ts'
import { attributes, metricNames } from './conventions.ts'

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

import { invalidOption } from '../agent/options.ts'
import type { TokenUsage } from '../data/usage.ts'
import { priceList, type Price, type Prices } from './price-list.ts'

export type { Price, Prices }

const MILLION = 1_000_000

/** Dates and aliases that providers put behind the name of a model, and that change nothing about its price. */
const VERSION = /[-@](?:latest|\d{8}|\d{4}-\d{2}-\d{2}|\d{2}-\d{4}|\d{2}-\d{2}|\d{4}|\d{3})$/

/** What a model costs: from the given prices, or from the list that comes with the library. */
export function priceOf(provider: string, modelId: string, given: Prices = {}): Price | undefined {
  const name = `${provider}/${modelId}`
  const undated = name.replace(VERSION, '')
  for (const prices of [given, priceList]) {
    for (const key of [name, undated]) if (Object.hasOwn(prices, key)) return prices[key]
  }
  return provider === 'ollama' ? free : undefined // it runs on one's own machine
}

/** A price that is none would take a limit on cost away. */
export function checkPrices(prices: Prices): void {
  for (const [model, price] of Object.entries<unknown>(prices)) {
    const { input, output, cachedInput = 0, cacheWrite = 0 } = (price ?? {}) as { [rate: string]: unknown }
    const fits = [input, output, cachedInput, cacheWrite].every(
      (rate) => typeof rate === 'number' && rate >= 0 && rate < Infinity,
    )
    if (fits && /^[^/]+\/.+$/.test(model)) continue
    throw invalidOption(
      'prices',
      `"${model}" must be 'provider/model': { input, output }, in dollars per million tokens`,
      price,
    )
  }
}

const free: Price = Object.freeze({ input: 0, output: 0 })

/** What a call cost, in US dollars. */
export function costOf(usage: Partial<TokenUsage> | undefined, price: Price): number {
  const { inputTokens = 0, outputTokens = 0, cachedInputTokens = 0, cacheWriteTokens = 0 } = usage ?? {}
  const { input, output, cachedInput = input, cacheWrite = input } = tierOf(price, inputTokens)
  const fresh = Math.max(0, inputTokens - cachedInputTokens - cacheWriteTokens)
  const dollars =
    fresh * input + cachedInputTokens * cachedInput + cacheWriteTokens * cacheWrite + outputTokens * output
  return dollars / MILLION
}

function tierOf(price: Price, inputTokens: number): Omit<Price, 'above'> {
  return price.above !== undefined && inputTokens > price.above.inputTokens ? price.above : price
}

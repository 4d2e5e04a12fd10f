import { describeValue, isPlainObject } from '../values/describe-value.ts'
import { checkOptions } from '../values/check-options.ts'
import type { TokenUsage } from '../core/state/usage.ts'
import { AgentError } from '../errors.ts'
import { priceList, type Price, type Prices } from './price-list.ts'

const MILLION = 1_000_000

/** Dates and aliases at the end of a model name that do not change its price. */
const VERSION = /[-@](?:latest|\d{8}|\d{4}-\d{2}-\d{2}|\d{2}-\d{4}|\d{2}-\d{2}|\d{4}|\d{3})$/

/** Validates the option `prices`. An amount that is not a number would make calls look free, and no cost limit would apply. */
export function checkedPrices(prices: Prices | undefined): Prices | undefined {
  if (prices !== undefined && !isPlainObject(prices))
    throw new AgentError(
      'AGENT_INVALID_OPTION',
      `prices: must be an object by 'provider/model', not ${describeValue(prices)}.`,
      {
        value: prices,
      },
    )
  for (const [name, price] of Object.entries(prices ?? {})) {
    if (isPlainObject(price)) checkOptions(`prices: "${name}"`, price, [...rates, 'above'])
    if (isPlainObject(price?.above)) checkOptions(`prices: "${name}", above`, price.above, [...rates, 'inputTokens'])
    const wrong =
      wrongIn(price, ['input', 'output']) ?? (price.above && wrongIn(price.above, ['inputTokens', 'input', 'output']))
    if (wrong === undefined && /^[^/]+\/.+/.test(name)) continue
    throw new AgentError(
      'AGENT_INVALID_OPTION',
      wrong === undefined
        ? `prices: the name "${name}" must have the form 'provider/model'.`
        : `prices: "${wrong}" of "${name}" must be a number of at least 0, in US dollars per million tokens.`,
      { value: price },
    )
  }
  return prices
}

const rates = ['input', 'output', 'cachedInput', 'cacheWrite']

/** The first amount of a price that is missing or invalid. */
function wrongIn(price: object | null | undefined, needed: readonly string[]): string | undefined {
  const { above: _above, ...amounts } = (price ?? {}) as { readonly [name: string]: unknown }
  const isWrong = (name: string): boolean => {
    const amount = amounts[name]
    return typeof amount !== 'number' || !(amount >= 0 && amount < Infinity)
  }
  return [...needed, ...Object.keys(amounts).filter((name) => amounts[name] !== undefined)].find(isWrong)
}

/** The price of a model: from the given prices, or from the built-in list. */
export function priceOf(provider: string, modelId: string, given: Prices = {}): Price | undefined {
  const name = `${provider}/${modelId}`
  const undated = name.replace(VERSION, '')
  for (const prices of [given, priceList]) {
    for (const key of [name, undated]) if (Object.hasOwn(prices, key)) return prices[key]
  }
  return provider === 'ollama' ? free : undefined // it runs locally
}

const free: Price = Object.freeze({ input: 0, output: 0 })

/** The cost of a call in US dollars. */
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

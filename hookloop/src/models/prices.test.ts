import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noTokens } from '../core/state/usage.ts'
import { costOf, priceOf } from './prices.ts'

const price = { input: 1, output: 10, cachedInput: 0.1, cacheWrite: 2 }
const usage = { ...noTokens, inputTokens: 1_000_000, outputTokens: 100_000, cachedInputTokens: 500_000 }

test('cached and cache-write input have separate prices, and reasoning counts as output', () => {
  const spent = { ...usage, cacheWriteTokens: 200_000, reasoningTokens: 90_000 }
  assert.equal(costOf(spent, price), 0.3 + 0.05 + 0.4 + 1)
})

test('a long input raises the price of the whole call', () => {
  const tiered = { ...price, above: { inputTokens: 999_999, input: 2, output: 20 } }
  assert.deepEqual(
    [costOf({ inputTokens: 999_999 }, tiered), costOf({ inputTokens: 1_000_000 }, tiered)],
    [0.999999, 2],
  )
})

test('inconsistent token counts never give a negative cost', () => {
  assert.equal(costOf({ inputTokens: 0, cachedInputTokens: 1_000_000 }, price), 0.1)
})

test('a price is found with or without the date of a version', () => {
  const undated = priceOf('anthropic', 'claude-sonnet-4-5')
  assert.ok(undated !== undefined)
  for (const version of ['-20250929', '-latest', '@20250929', '-2025-09-29']) {
    assert.equal(priceOf('anthropic', `claude-sonnet-4-5${version}`), undated)
  }
})

test('given prices override the built-in list, also for a name with a date', () => {
  const own = { 'openai/gpt-5': price }
  assert.deepEqual([priceOf('openai', 'gpt-5', own), priceOf('openai', 'gpt-5-2025-08-07', own)], [price, price])
})

test('the price of an unlisted model is unknown', () => {
  assert.deepEqual(
    [priceOf('acme', 'large'), priceOf('__proto__', 'x'), priceOf('', '')],
    [undefined, undefined, undefined],
  )
})

test('models of Ollama are free', () => {
  assert.equal(costOf(usage, priceOf('ollama', 'llama3.2')!), 0)
})

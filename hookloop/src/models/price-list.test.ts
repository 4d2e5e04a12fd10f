import assert from 'node:assert/strict'
import { test } from 'node:test'
import { priceList } from './price-list.ts'

const models = Object.keys(priceList)
const rates = Object.entries(priceList).flatMap(([model, { above, ...usual }]) =>
  above === undefined
    ? [{ model, ...usual }]
    : [
        { model, ...usual },
        { model: `${model}, long input`, ...above },
      ],
)

test('every price is a number of at least 0, and cached input is not more expensive than other input', () => {
  const isWrong = (amount: unknown): boolean => typeof amount !== 'number' || !(amount >= 0 && amount < Infinity)
  assert.deepEqual(
    rates.filter(
      ({ model: _model, ...amounts }) =>
        Object.values(amounts).some(isWrong) || (amounts.cachedInput ?? amounts.input) > amounts.input,
    ),
    [],
  )
})

test('a call with a long input is not cheaper than a short one, and has a price for the same kinds of tokens', () => {
  const odd = Object.entries(priceList).filter(([, { above, ...usual }]) => {
    if (above === undefined) return false
    const { inputTokens, ...long } = above
    const cheaper = long.input < usual.input || long.output < usual.output
    return inputTokens < 1 || cheaper || Object.keys(long).join() !== Object.keys(usual).join()
  })
  assert.deepEqual(odd, [])
})

test('models are listed as provider/model in lower case, without the date of a version', () => {
  const listed = /^(?:anthropic|cohere|deepseek|google|groq|mistral|openai|xai)(?:\/[a-z0-9]+(?:[.-][a-z0-9]+)*)+$/
  const dated = /-(?:\d{8}|\d{4}-\d{2}-\d{2}|\d{2}-\d{4}|\d{2}-\d{2}|\d{3,4})(?:-|$)/
  assert.deepEqual(
    models.filter((model) => !listed.test(model) || dated.test(model)),
    [],
  )
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { priceList } from '../../models/price-list.ts'
import { providers } from '../../models/providers.ts'
import { exampleModel } from './example-models.ts'

test('the example of a provider with a price list is a model in that list', () => {
  const listed = Object.keys(priceList)
  const priced = providers.filter(({ name }) => listed.some((model) => model.startsWith(`${name}/`)))
  const examples = priced.map(exampleModel)
  assert.ok(examples.length > 5)
  assert.deepEqual(
    examples.filter((model) => !listed.includes(model)),
    [],
  )
})

test('every example can be pasted into a shell', () => {
  assert.deepEqual(
    providers.map(exampleModel).filter((model) => !/^[\w-]+\/[\w./:-]+$/.test(model)),
    [],
  )
})

import { priceOf } from '../../models/prices.ts'
import { providers } from '../../models/providers.ts'
import { exampleModel } from './example-models.ts'

const MAX_DISTANCE = 2

/** What somebody may have meant whose name of a model cannot be understood: `ollma/llama3`, or `gpt-5` alone. */
export function didYouMean(name: string): string | undefined {
  const serves = providers.find((each) => each.name !== 'ollama' && priceOf(each.name, name) !== undefined)
  if (serves !== undefined) return `${serves.name}/${name}`
  const slash = name.indexOf('/')
  const [said, model] = slash === -1 ? [name, ''] : [name.slice(0, slash), name.slice(slash + 1)]
  const nearest = providers
    .map((provider) => ({ provider, distance: distanceBetween(said.toLowerCase(), provider.name) }))
    .toSorted((a, b) => a.distance - b.distance)[0]!
  if (nearest.distance > MAX_DISTANCE || nearest.distance >= said.length / 2) return undefined
  return model === '' ? exampleModel(nearest.provider) : `${nearest.provider.name}/${model}`
}

/** How many letters must be put in, left out or replaced to get from one word to the other. */
function distanceBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, i) => i)
  for (const [i, letter] of from.split('').entries()) {
    const next = [i + 1]
    for (let j = 1; j <= to.length; j++) {
      const replaced = row[j - 1]! + (letter === to[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1))
    }
    row = next
  }
  return row[to.length]!
}

import { priceOf } from '../../models/prices.ts'
import { providers } from '../../models/providers.ts'
import { exampleModel } from './example-models.ts'

const MAX_DISTANCE = 2

/** The model name that was probably meant by an unknown one, such as `ollma/llama3` or `gpt-5`. */
export function didYouMean(name: string): string | undefined {
  const serving = providers.find((each) => each.name !== 'ollama' && priceOf(each.name, name) !== undefined)
  if (serving !== undefined) return `${serving.name}/${name}`
  const slash = name.indexOf('/')
  const [typed, model] = slash === -1 ? [name, ''] : [name.slice(0, slash), name.slice(slash + 1)]
  const nearest = providers
    .map((provider) => ({ provider, distance: distanceBetween(typed.toLowerCase(), provider.name) }))
    .toSorted((a, b) => a.distance - b.distance)[0]!
  if (nearest.distance > MAX_DISTANCE || nearest.distance >= typed.length / 2) return undefined
  return model === '' ? exampleModel(nearest.provider) : `${nearest.provider.name}/${model}`
}

/** The Levenshtein distance. */
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

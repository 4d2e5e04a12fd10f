import { priceOf } from '../../models/prices.ts'
import { providers } from '../../models/providers.ts'
import { nearestName } from '../../values/nearest-name.ts'
import { exampleModel } from './example-models.ts'

/** The model name that was probably meant by an unknown one, such as `ollma/llama3` or `gpt-5`. */
export function didYouMean(name: string): string | undefined {
  const serving = providers.find((each) => each.name !== 'ollama' && priceOf(each.name, name) !== undefined)
  if (serving !== undefined) return `${serving.name}/${name}`
  const slash = name.indexOf('/')
  const [typed, model] = slash === -1 ? [name, ''] : [name.slice(0, slash), name.slice(slash + 1)]
  const nearest = nearestName(
    typed,
    providers.map((each) => each.name),
  )
  if (nearest === undefined) return undefined
  return model === '' ? exampleModel(providers.find((each) => each.name === nearest)!) : `${nearest}/${model}`
}

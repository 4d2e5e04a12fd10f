import type { LanguageModel, ModelSource, ToModel } from '../data/inference.ts'
import type { TokenUsage } from '../data/usage.ts'
import { AgentError } from '../errors.ts'
import { fromAiSdk, isAiSdkModel } from './ai-sdk/model.ts'
import { modelByName } from './by-name.ts'
import { costOf, priceOf, type Prices } from './prices.ts'

/** Makes models of whatever names them, the same one each time. Own prices go before the list that comes along. */
export function modelMaker(prices?: Prices): ToModel {
  const byName = new Map<string, LanguageModel>()
  const byObject = new WeakMap<object, LanguageModel>() // hooks may make models as they go
  return (source) => {
    const known = typeof source === 'string' ? byName.get(source) : isObject(source) && byObject.get(source)
    if (known) return known
    const model = make(source, prices)
    if (typeof source === 'string') byName.set(source, model)
    else byObject.set(source, model)
    return model
  }
}

/** A model of whatever names it, to be asked directly: by a hook that wants an opinion, or by a tool. */
export function languageModel(source: ModelSource, options: { readonly prices?: Prices } = {}): LanguageModel {
  return make(source, options.prices)
}

function make(source: unknown, prices: Prices | undefined): LanguageModel {
  if (typeof source === 'string') return modelByName(source, prices)
  if (isLanguageModel(source)) return source.cost === 'unknown' ? priced(source, prices) : source
  if (isAiSdkModel(source)) return fromAiSdk(source, prices)
  throw new AgentError(
    'MODEL_INVALID',
    'A model is a name such as "anthropic/claude-sonnet-4-5", a language model of the AI SDK, or an object with ' +
      'provider, modelId and infer(request, call).',
    { value: source },
  )
}

/** A model that does not know its price may be given one. */
function priced(model: LanguageModel, prices: Prices | undefined): LanguageModel {
  const price = priceOf(model.provider, model.modelId, prices)
  if (price === undefined) return model
  const infer: LanguageModel['infer'] = (request, call) => model.infer(request, call)
  return Object.freeze({ ...model, infer, cost: (usage: TokenUsage) => costOf(usage, price) })
}

function isObject(source: unknown): source is object {
  return typeof source === 'object' && source !== null
}

function isLanguageModel(source: unknown): source is LanguageModel {
  return typeof (source as LanguageModel | null | undefined)?.infer === 'function'
}

import { checkedSettings } from '../core/state/model-settings.ts'
import { checkOptions } from '../values/check-options.ts'
import {
  toResponse,
  type InferenceResponse,
  type LanguageModel,
  type ModelRequest,
  type ModelSource,
  type ToModel,
} from '../core/state/inference.ts'
import { toMessage, type Message } from '../core/state/message.ts'
import { toTokens, type TokenUsage } from '../core/state/usage.ts'
import { AgentError } from '../errors.ts'
import { fromAiSdk, isAiSdkModel } from './ai-sdk/model.ts'
import { modelByName } from './by-name.ts'
import type { Prices } from './price-list.ts'
import { checkedPrices, costOf, priceOf } from './prices.ts'

/** Resolves model sources to models, each source to the same model every time. Given prices override the built-in list. */
export function modelMaker(given?: Prices): ToModel {
  const prices = checkedPrices(given)
  const byName = new Map<string, LanguageModel>()
  const byObject = new WeakMap<object, LanguageModel>() // weak, because hooks may create models during a run
  return (source) => {
    const known = typeof source === 'string' ? byName.get(source) : isObject(source) && byObject.get(source)
    if (known) return known
    const model = make(source, prices)
    if (typeof source === 'string') byName.set(source, model)
    else byObject.set(source, model)
    return model
  }
}

/** A model that can be called directly, outside of an agent: by a tool or by a script. */
export type CallableModel = LanguageModel & {
  /** Sends a prompt or a conversation. The usage is in the response; a tool reports it with `run.spend(response.usage)`. */
  ask(input: string | Message | Iterable<Message>, options?: AskOptions): Promise<InferenceResponse>
}

export type AskOptions = Pick<Partial<ModelRequest>, 'system' | 'settings' | 'responseFormat'> & {
  readonly signal?: AbortSignal
}

/**
 * Resolves a model from a name, an AI SDK model or an object with `infer`, and adds `ask` to call it directly.
 *
 * @example
 * const model = languageModel('anthropic/claude-haiku-4-5')
 * const { text, usage } = await model.ask('Translate to French: good morning')
 */
export function languageModel(source: ModelSource, options: { readonly prices?: Prices } = {}): CallableModel {
  checkOptions('languageModel', options, ['prices'])
  const model = make(source, checkedPrices(options.prices))
  const infer: LanguageModel['infer'] = (request, call) => model.infer(request, call)
  return Object.freeze({ ...model, infer, ask: (input, options) => ask(model, input, options) } satisfies CallableModel)
}

async function ask(
  model: LanguageModel,
  input: string | Message | Iterable<Message>,
  options: AskOptions = {},
): Promise<InferenceResponse> {
  checkOptions('languageModel.ask', options, ['signal', 'system', 'settings', 'responseFormat'])
  const { signal = new AbortController().signal, system = '', ...rest } = options
  if (rest.settings !== undefined) checkedSettings('languageModel.ask', rest.settings)
  const messages = isIterable(input) ? [...input] : [toMessage(input, 'input')]
  const request = {
    system,
    messages: messages.map((each) => toMessage(each, 'message')),
    tools: [],
    ...rest,
  }
  const reply = await model.infer(request, { signal })
  const usage = toTokens(reply.usage ?? {})
  const costUsd = typeof model.cost === 'function' && usage.costUsd === 0 ? model.cost(usage) : usage.costUsd
  return toResponse({ ...reply, usage: { ...usage, costUsd } })
}

function isIterable(input: unknown): input is Iterable<Message> {
  return typeof input === 'object' && input !== null && Symbol.iterator in input
}

function make(source: unknown, prices: Prices | undefined): LanguageModel {
  if (typeof source === 'string') return modelByName(source, prices)
  if (isLanguageModel(source)) return (source.cost ?? 'unknown') === 'unknown' ? priced(source, prices) : source
  if (isAiSdkModel(source)) return fromAiSdk(source, prices)
  throw new AgentError(
    'MODEL_INVALID',
    'A model must be a name such as "anthropic/claude-sonnet-5-5", a language model of the AI SDK, or an object with ' +
      'provider, modelId and infer(request, call).',
    { value: source },
  )
}

/** Adds a price to a model that does not have one. */
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

import type { AiSdkModel, LanguageModel } from '../state/inference.ts'
import { AgentError, messageOf } from '../errors.ts'
import { isAiSdkModel, toPort } from './ai-sdk/model.ts'
import { structuredOutputOf } from './ai-sdk/structured-output.ts'
import { priceOf, type Prices } from './prices.ts'
import { addressOf, isInstalled, keyVariable, providers, type Provider } from './providers.ts'

/**
 * A model by its name, `provider/model`. That its package is installed is checked now; it is loaded with the first call,
 * and keys are read then, by the provider itself.
 */
export function modelByName(name: string, prices: Prices | undefined): LanguageModel {
  const slash = name.indexOf('/')
  const provider = providers.find((each) => each.name === name.slice(0, slash))
  const modelId = name.slice(slash + 1)
  if (slash <= 0 || provider === undefined || modelId === '') throw unknownName(name)
  if (!isInstalled(provider)) throw notInstalled(name, provider)
  let loading: Promise<AiSdkModel> | undefined
  return toPort({
    provider: provider.name,
    modelId,
    price: priceOf(provider.name, modelId, prices),
    structuredOutput: structuredOutputOf({ provider: provider.name }),
    load: () =>
      (loading ??= load(provider, modelId).catch((thrown: unknown) => {
        loading = undefined // what was missing may be there the next time
        throw thrown
      })),
  })
}

async function load(provider: Provider, modelId: string): Promise<AiSdkModel> {
  const factory = await factoryOf(provider)
  const baseURL = provider.address?.(process.env)
  if (provider.addressVariable !== undefined && baseURL === undefined) {
    throw new AgentError('MODEL_REJECTED', `Set ${provider.addressVariable} to where the server is.`)
  }
  const variable = keyVariable(provider)
  const empty = provider.keys.find((each) => process.env[each] === '')
  if (variable === undefined && empty !== undefined) {
    throw new AgentError('MODEL_UNAUTHORIZED', `${empty} is set, but empty.`)
  }
  const apiKey = provider.handedOver?.includes(variable ?? '') ? process.env[variable!] : undefined
  const model: unknown = factory({
    ...provider.options,
    ...(baseURL !== undefined && { baseURL }),
    ...(apiKey !== undefined && { apiKey }),
  })(modelId)
  if (isAiSdkModel(model)) return model
  throw new AgentError('MODEL_INVALID', `${provider.package} gave something that is not a language model.`)
}

type Factory = (options: object) => (modelId: string) => unknown

async function factoryOf(provider: Provider): Promise<Factory> {
  try {
    const loaded = (await import(addressOf(provider.package)!)) as { readonly [name: string]: Factory | undefined }
    const factory = loaded[provider.factory]
    if (factory !== undefined) return factory
    throw new Error(`it has no ${provider.factory}; install a newer one`)
  } catch (thrown) {
    throw new AgentError('MODEL_NOT_INSTALLED', `${provider.package} cannot be loaded: ${messageOf(thrown)}`, {
      cause: thrown,
    })
  }
}

function unknownName(name: string): AgentError {
  const known = providers.map((each) => each.name).join(', ')
  return new AgentError(
    'MODEL_UNKNOWN',
    `"${name}" names no model. Write provider/model, such as "anthropic/claude-sonnet-5-5". Providers: ${known}. ` +
      'Models of others are passed as objects.',
    { value: name },
  )
}

function notInstalled(name: string, provider: Provider): AgentError {
  return new AgentError(
    'MODEL_NOT_INSTALLED',
    `"${name}" needs the package ${provider.package}. Install it with: ${installCommand(provider)}`,
    { value: provider.package },
  )
}

/** What to type to have a provider. */
export function installCommand(provider: Provider): string {
  return `npm install ${provider.package}`
}

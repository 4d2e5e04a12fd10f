import type { AiSdkModel, LanguageModel } from '../core/state/inference.ts'
import { AgentError, messageOf } from '../errors.ts'
import { isAiSdkModel, structuredOutputOf, toPort } from './ai-sdk/model.ts'
import type { Prices } from './price-list.ts'
import { priceOf } from './prices.ts'
import { providerPackages } from './provider-packages.ts'
import { isInstalled, keyVariable, providers, type Provider } from './providers.ts'

/**
 * A model by its name, `provider/model`. Whether its package is installed is checked now. The package is loaded with the
 * first call, and reads its API key then.
 */
export function modelByName(name: string, prices: Prices | undefined): LanguageModel {
  const slash = name.indexOf('/')
  const provider = providers.find((each) => each.name === name.slice(0, slash))
  const modelId = name.slice(slash + 1)
  if (slash <= 0 || provider === undefined || modelId === '') throw unknownName(name)
  if (isInstalled(provider) === false) throw notInstalled(name, provider)
  let loading: Promise<AiSdkModel> | undefined
  return toPort({
    provider: provider.name,
    modelId,
    price: priceOf(provider.name, modelId, prices),
    structuredOutput: structuredOutputOf({ provider: provider.name }),
    load: () =>
      (loading ??= load(provider, modelId).catch((thrown: unknown) => {
        loading = undefined // try again with the next call
        throw thrown
      })),
  })
}

async function load(provider: Provider, modelId: string): Promise<AiSdkModel> {
  const factory = await factoryOf(provider)
  const baseURL = provider.address?.(process.env)
  if (provider.addressVariable !== undefined && baseURL === undefined) {
    throw new AgentError('MODEL_REJECTED', `Set ${provider.addressVariable} to the URL of the server.`)
  }
  const variable = keyVariable(provider)
  const empty = provider.keys.find((each) => process.env[each] === '')
  if (variable === undefined && empty !== undefined) {
    throw new AgentError('MODEL_UNAUTHORIZED', `The environment variable ${empty} is empty. Set it to an API key.`)
  }
  const apiKey = provider.passedKeys?.includes(variable ?? '') ? process.env[variable!] : undefined
  const model: unknown = factory({
    ...provider.options,
    ...(baseURL !== undefined && { baseURL }),
    ...(apiKey !== undefined && { apiKey }),
  })(modelId)
  if (isAiSdkModel(model)) return model
  throw new AgentError('MODEL_INVALID', `${provider.package} returned an object that is not a language model.`)
}

type Factory = (options: object) => (modelId: string) => unknown

async function factoryOf(provider: Provider): Promise<Factory> {
  try {
    const loaded = (await providerPackages[provider.package]!()) as { readonly [name: string]: Factory | undefined }
    const factory = loaded[provider.factory]
    if (factory !== undefined) return factory
    throw new Error(`it does not export ${provider.factory}; install a newer version`)
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
    `Unknown model "${name}". Write provider/model, such as "anthropic/claude-sonnet-5-5". Providers: ${known}. ` +
      'For any other provider, pass a language model object of the AI SDK.',
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

/** The command that installs the package of a provider. */
export function installCommand(provider: Provider): string {
  return `npm install ${provider.package}`
}

/** How the models of a provider are loaded by name. */
export type Provider = {
  /** The part before the slash in `name/model`. */
  readonly name: string
  /** The AI SDK package, and the function in it that creates the provider. */
  readonly package: string
  readonly factory: string
  /** Environment variables that may hold the API key, the usual one first. Empty if it needs none. */
  readonly keys: readonly string[]
  /** Those that the package does not read by itself. */
  readonly passedKeys?: readonly string[]
  /** The base URL, for providers that have no fixed one. Undefined if it is not set. */
  readonly address?: (env: Environment) => string | undefined
  /** The environment variable to set if the base URL is missing. */
  readonly addressVariable?: string
  /** Further options for the function. */
  readonly options?: { readonly [option: string]: unknown }
}

export type Environment = { readonly [name: string]: string | undefined }

/** Every provider that has a name here. Others are used by passing a model object of their package. */
export const providers: readonly Provider[] = [
  { name: 'anthropic', package: '@ai-sdk/anthropic', factory: 'createAnthropic', keys: ['ANTHROPIC_API_KEY'] },
  { name: 'openai', package: '@ai-sdk/openai', factory: 'createOpenAI', keys: ['OPENAI_API_KEY'] },
  {
    name: 'google',
    package: '@ai-sdk/google',
    factory: 'createGoogleGenerativeAI',
    keys: ['GOOGLE_GENERATIVE_AI_API_KEY', 'GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    passedKeys: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    address: (env) => env['GOOGLE_GENERATIVE_AI_BASE_URL'],
  },
  {
    name: 'ollama',
    package: '@ai-sdk/openai-compatible',
    factory: 'createOpenAICompatible',
    keys: [],
    address: ollamaAddress,
    options: { name: 'ollama', includeUsage: true, supportsStructuredOutputs: true },
  },
  {
    name: 'openai-compatible',
    package: '@ai-sdk/openai-compatible',
    factory: 'createOpenAICompatible',
    keys: ['OPENAI_COMPATIBLE_API_KEY'],
    passedKeys: ['OPENAI_COMPATIBLE_API_KEY'],
    address: (env) => env['OPENAI_COMPATIBLE_BASE_URL'],
    addressVariable: 'OPENAI_COMPATIBLE_BASE_URL',
    options: { name: 'openai-compatible', includeUsage: true },
  },
  {
    name: 'openrouter',
    package: '@openrouter/ai-sdk-provider',
    factory: 'createOpenRouter',
    keys: ['OPENROUTER_API_KEY'],
  },
  { name: 'gateway', package: '@ai-sdk/gateway', factory: 'createGateway', keys: ['AI_GATEWAY_API_KEY'] },
  { name: 'azure', package: '@ai-sdk/azure', factory: 'createAzure', keys: ['AZURE_API_KEY'] },
  {
    name: 'bedrock',
    package: '@ai-sdk/amazon-bedrock',
    factory: 'createAmazonBedrock',
    keys: ['AWS_BEARER_TOKEN_BEDROCK', 'AWS_ACCESS_KEY_ID'],
  },
  { name: 'mistral', package: '@ai-sdk/mistral', factory: 'createMistral', keys: ['MISTRAL_API_KEY'] },
  { name: 'groq', package: '@ai-sdk/groq', factory: 'createGroq', keys: ['GROQ_API_KEY'] },
  { name: 'xai', package: '@ai-sdk/xai', factory: 'createXai', keys: ['XAI_API_KEY'] },
  { name: 'deepseek', package: '@ai-sdk/deepseek', factory: 'createDeepSeek', keys: ['DEEPSEEK_API_KEY'] },
  { name: 'cohere', package: '@ai-sdk/cohere', factory: 'createCohere', keys: ['COHERE_API_KEY'] },
  { name: 'cerebras', package: '@ai-sdk/cerebras', factory: 'createCerebras', keys: ['CEREBRAS_API_KEY'] },
  { name: 'togetherai', package: '@ai-sdk/togetherai', factory: 'createTogetherAI', keys: ['TOGETHER_API_KEY'] },
  { name: 'fireworks', package: '@ai-sdk/fireworks', factory: 'createFireworks', keys: ['FIREWORKS_API_KEY'] },
]

/** Whether the package of a provider is installed. Undefined in a bundle, which contains its packages. */
export function isInstalled({ package: name }: Provider): boolean | undefined {
  if (addressOf(name) !== undefined) return true
  return addressOf('hookloop/package.json') === undefined ? undefined : false
}

/** The URL of an installed package, or undefined. */
export function addressOf(name: string): string | undefined {
  try {
    return import.meta.resolve(name)
  } catch {
    return undefined
  }
}

/** The name of the environment variable that holds the key of a provider, if one is set. Never the key itself. */
export function keyVariable({ keys }: Provider, env: Environment = process.env): string | undefined {
  return keys.find((name) => (env[name] ?? '') !== '')
}

/** Reads the variables as Ollama does: scheme, host and port may each be missing. */
function ollamaAddress(env: Environment): string {
  const given = (env['OLLAMA_BASE_URL'] || env['OLLAMA_HOST'] || 'localhost').trim().replace(/\/+$/, '')
  if (/^https?:\/\//.test(given)) return given.endsWith('/v1') ? given : `${given}/v1`
  const host = given.startsWith(':') ? `localhost${given}` : given
  return `http://${/:\d+$/.test(host) ? host : `${host}:11434`}/v1`
}

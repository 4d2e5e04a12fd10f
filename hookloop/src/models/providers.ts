/** How models of a provider are loaded by name, and what that needs. */
export type Provider = {
  /** What stands before the slash in `name/model`. */
  readonly name: string
  /** The package that talks to it, and the function in it that makes a provider. */
  readonly package: string
  readonly factory: string
  /** Environment variables that may hold its key, the usual one first. Empty: it needs none. */
  readonly keys: readonly string[]
  /** Those of them that its package does not read by itself. */
  readonly handedOver?: readonly string[]
  /** Where it is, for those that could be anywhere. Gives nothing as long as that is not known. */
  readonly address?: (env: Environment) => string | undefined
  /** What to set when the address is not known. */
  readonly addressVariable?: string
  /** What else the function wants to know. */
  readonly options?: { readonly [option: string]: unknown }
}

export type Environment = { readonly [name: string]: string | undefined }

/** Every provider that can be named. Others are used through a model object of their own package. */
export const providers: readonly Provider[] = [
  { name: 'anthropic', package: '@ai-sdk/anthropic', factory: 'createAnthropic', keys: ['ANTHROPIC_API_KEY'] },
  { name: 'openai', package: '@ai-sdk/openai', factory: 'createOpenAI', keys: ['OPENAI_API_KEY'] },
  {
    name: 'google',
    package: '@ai-sdk/google',
    factory: 'createGoogleGenerativeAI',
    keys: ['GOOGLE_GENERATIVE_AI_API_KEY', 'GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    handedOver: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
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
    handedOver: ['OPENAI_COMPATIBLE_API_KEY'],
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

/** Whether its package can be loaded from here. */
export function isInstalled({ package: name }: Provider): boolean {
  return addressOf(name) !== undefined
}

/** Where a package is, seen from this library. */
export function addressOf(name: string): string | undefined {
  try {
    return import.meta.resolve(name)
  } catch {
    return undefined
  }
}

/** The environment variable that holds the key of a provider, if one is set. Never the key. */
export function keyVariable({ keys }: Provider, env: Environment = process.env): string | undefined {
  return keys.find((name) => (env[name] ?? '') !== '')
}

/** As Ollama itself reads it: the scheme, the host and the port may each be missing. */
function ollamaAddress(env: Environment): string {
  const given = (env['OLLAMA_BASE_URL'] || env['OLLAMA_HOST'] || 'localhost').trim().replace(/\/+$/, '')
  if (/^https?:\/\//.test(given)) return given.endsWith('/v1') ? given : `${given}/v1`
  const host = given.startsWith(':') ? `localhost${given}` : given
  return `http://${/:\d+$/.test(host) ? host : `${host}:11434`}/v1`
}

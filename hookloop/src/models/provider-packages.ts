/// <reference path="./untyped-packages.d.ts" />

/**
 * Imports the package of a provider. Each is written out, so that a bundler finds those that are installed; `catch` tells it
 * that the others may be missing.
 */
export const providerPackages: { readonly [name: string]: () => Promise<object> } = {
  '@ai-sdk/amazon-bedrock': () => import('@ai-sdk/amazon-bedrock').catch(fail),
  '@ai-sdk/anthropic': () => import('@ai-sdk/anthropic').catch(fail),
  '@ai-sdk/azure': () => import('@ai-sdk/azure').catch(fail),
  '@ai-sdk/cerebras': () => import('@ai-sdk/cerebras').catch(fail),
  '@ai-sdk/cohere': () => import('@ai-sdk/cohere').catch(fail),
  '@ai-sdk/deepseek': () => import('@ai-sdk/deepseek').catch(fail),
  '@ai-sdk/fireworks': () => import('@ai-sdk/fireworks').catch(fail),
  '@ai-sdk/gateway': () => import('@ai-sdk/gateway').catch(fail),
  '@ai-sdk/google': () => import('@ai-sdk/google').catch(fail),
  '@ai-sdk/groq': () => import('@ai-sdk/groq').catch(fail),
  '@ai-sdk/mistral': () => import('@ai-sdk/mistral').catch(fail),
  '@ai-sdk/openai': () => import('@ai-sdk/openai').catch(fail),
  '@ai-sdk/openai-compatible': () => import('@ai-sdk/openai-compatible').catch(fail),
  '@ai-sdk/togetherai': () => import('@ai-sdk/togetherai').catch(fail),
  '@ai-sdk/xai': () => import('@ai-sdk/xai').catch(fail),
  '@openrouter/ai-sdk-provider': () => import('@openrouter/ai-sdk-provider').catch(fail),
}

function fail(error: unknown): never {
  throw error
}

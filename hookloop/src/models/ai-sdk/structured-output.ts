import type { AiSdkModel, LanguageModel } from '../../data/inference.ts'

/** Families whose adapters hold an answer to a JSON Schema, also while tools are offered. */
const native: ReadonlySet<string> = new Set(['openai', 'azure', 'anthropic', 'xai', 'ollama'])

/** Families that do so only when no tools are offered. */
const nativeAlone: ReadonlySet<string> = new Set(['google', 'vertex', 'groq'])

/** How a model can be held to a schema. Models that say so themselves are believed. */
export function structuredOutputOf(model: Pick<AiSdkModel, 'provider'>): LanguageModel['structuredOutput'] {
  const { supportsStructuredOutputs } = model as { supportsStructuredOutputs?: unknown }
  if (supportsStructuredOutputs === true) return 'native'
  if (supportsStructuredOutputs === false) return 'tool'
  const [family = ''] = model.provider.split('.')
  if (native.has(family)) return 'native'
  return nativeAlone.has(family) ? 'native-alone' : undefined
}

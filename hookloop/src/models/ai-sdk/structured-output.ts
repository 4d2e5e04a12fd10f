import type { AiSdkModel, LanguageModel } from '../../state/inference.ts'

/** Families whose adapters hold an answer to a JSON Schema, also while tools are offered. */
const native: ReadonlySet<string> = new Set(['openai', 'azure', 'anthropic', 'xai'])

/** Families that do so only when no tools are offered: either they refuse both together, or no tool is ever called. */
const nativeAlone: ReadonlySet<string> = new Set(['google', 'vertex', 'groq', 'ollama'])

/** How a model can be held to a schema. Of families that are not known, those that say so themselves are believed. */
export function structuredOutputOf(model: Pick<AiSdkModel, 'provider'>): LanguageModel['structuredOutput'] {
  const [family = ''] = model.provider.split('.')
  if (nativeAlone.has(family)) return 'native-alone'
  if (native.has(family)) return 'native'
  const { supportsStructuredOutputs } = model as { supportsStructuredOutputs?: unknown }
  return supportsStructuredOutputs === true ? 'native' : undefined
}

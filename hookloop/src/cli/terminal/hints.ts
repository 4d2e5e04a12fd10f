import type { AgentError } from '../../errors.ts'
import { keyVariable, providers, type Environment } from '../../models/providers.ts'

/** What to do about a failed model call, where the command line knows more than the error. */
export function hintFor(
  { code, value, message }: Pick<AgentError, 'code' | 'value' | 'message'>,
  env: Environment,
): string | undefined {
  const model = (value ?? {}) as { readonly provider?: string; readonly model?: string; readonly status?: number }
  const provider = providers.find(({ name }) => name === model.provider)
  if (provider === undefined) return undefined
  if (code === 'MODEL_UNAUTHORIZED') {
    const isNamedAlready = provider.keys.some((name) => message.includes(name))
    if (provider.keys.length === 0 || keyVariable(provider, env) !== undefined || isNamedAlready) return undefined
    return `No API key for ${provider.name} is set. Set one with: export ${provider.keys[0]!}=…`
  }
  if (provider.name !== 'ollama') return undefined
  if (code === 'MODEL_UNREACHABLE') return 'Ollama may not be running. Start it with: ollama serve'
  return model.status === 404
    ? `The model may not be installed. Install it with: ollama pull ${model.model}`
    : undefined
}

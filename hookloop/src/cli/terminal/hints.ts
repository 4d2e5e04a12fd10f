import type { AgentError } from '../../errors.ts'
import { keyVariable, providers, type Environment } from '../../models/providers.ts'

/** What to do about a model that failed, where the command line knows more than the error says. */
export function hintFor(
  { code, value, message }: Pick<AgentError, 'code' | 'value' | 'message'>,
  env: Environment,
): string | undefined {
  const asked = (value ?? {}) as { readonly provider?: string; readonly model?: string; readonly status?: number }
  const provider = providers.find(({ name }) => name === asked.provider)
  if (provider === undefined) return undefined
  if (code === 'MODEL_UNAUTHORIZED') {
    const isToldAlready = provider.keys.some((name) => message.includes(name))
    if (provider.keys.length === 0 || keyVariable(provider, env) !== undefined || isToldAlready) return undefined
    return `There is no key for ${provider.name}. Set one with: export ${provider.keys[0]!}=…`
  }
  if (provider.name !== 'ollama') return undefined
  if (code === 'MODEL_UNREACHABLE') return 'Is Ollama running? Start it with: ollama serve'
  return asked.status === 404 ? `Is the model there? Get it with: ollama pull ${asked.model}` : undefined
}

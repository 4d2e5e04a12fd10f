import type { Provider } from '../../models/providers.ts'

/** A small model of each provider to start with. The user has to replace names in capitals. */
const examples: { readonly [provider: string]: string | undefined } = {
  anthropic: 'claude-sonnet-5-5',
  openai: 'gpt-6-luna',
  google: 'gemini-3.5-flash-lite',
  ollama: 'llama3.2',
  'openai-compatible': 'MODEL',
  openrouter: 'openai/gpt-6-luna',
  gateway: 'openai/gpt-6-luna',
  azure: 'DEPLOYMENT',
  bedrock: 'MODEL',
  mistral: 'mistral-small',
  groq: 'openai/gpt-oss-20b',
  xai: 'grok-4.3',
  deepseek: 'deepseek-flash',
  cohere: 'command-a',
  cerebras: 'gpt-oss-120b',
  togetherai: 'openai/gpt-oss-20b',
  fireworks: 'MODEL',
}

/** A value of `--model` for a provider. */
export function exampleModel({ name }: Provider): string {
  return `${name}/${examples[name] ?? 'MODEL'}`
}

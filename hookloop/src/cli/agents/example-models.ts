import type { Provider } from '../../models/providers.ts'

/** A model of each provider to begin with: not its largest. What is written in capitals only the user knows. */
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

/** What could stand behind `--model` for a provider. */
export function exampleModel({ name }: Provider): string {
  return `${name}/${examples[name] ?? 'MODEL'}`
}

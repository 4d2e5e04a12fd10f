import { isJsonObject } from '../../state/json.ts'
import { providers, type Environment } from '../../models/providers.ts'

/** For a server that accepts the connection and does not answer. A missing server is known at once. */
const TIMEOUT_MS = 1500

/** Names are printed in command lines to copy, so names with characters that a shell interprets are left out. */
const NAME = /^[\w./:@+-]+$/

/** The models of the Ollama server; null if no server answers. */
export type Ollama = { readonly host: string; readonly models: readonly string[] | null }

export async function findOllama(env: Environment): Promise<Ollama> {
  const api = providers.find(({ name }) => name === 'ollama')?.address?.(env) ?? ''
  const host = URL.parse(api)?.host ?? '' // the only part of an address that is never secret
  try {
    const response = await fetch(api.replace(/\/v1$/, '/api/tags'), { signal: AbortSignal.timeout(TIMEOUT_MS) })
    return { host, models: response.ok ? namesIn(await response.json()) : null }
  } catch {
    return { host, models: null }
  }
}

/** Models that generate text, in the order of Ollama: the newest first. */
function namesIn(answer: unknown): readonly string[] | null {
  if (!isJsonObject(answer) || !Array.isArray(answer['models'])) return null
  return answer['models'].flatMap((model) => {
    const name = isJsonObject(model) ? model['name'] : undefined
    const isEmbedding = /embed|bert/i.test(JSON.stringify(model))
    return typeof name === 'string' && NAME.test(name) && !isEmbedding ? [name] : []
  })
}

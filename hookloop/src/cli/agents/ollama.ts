import { isJsonObject } from '../../state/json.ts'
import { providers, type Environment } from '../../models/providers.ts'

/** Where nothing listens that is known at once; this is for what listens and does not answer. */
const TIMEOUT_MS = 1500

/** Names end up in lines to copy, so one that a shell would read in its own way is left out. */
const NAME = /^[\w./:@+-]+$/

/** What answers at the address of Ollama: nothing, or the models it has. */
export type Ollama = { readonly host: string; readonly models: readonly string[] | null }

/** Looks whether Ollama is there, and what it has. */
export async function findOllama(env: Environment): Promise<Ollama> {
  const api = providers.find(({ name }) => name === 'ollama')?.address?.(env) ?? ''
  const host = URL.parse(api)?.host ?? '' // of an address, the only part that is never secret
  try {
    const response = await fetch(api.replace(/\/v1$/, '/api/tags'), { signal: AbortSignal.timeout(TIMEOUT_MS) })
    return { host, models: response.ok ? namesIn(await response.json()) : null }
  } catch {
    return { host, models: null }
  }
}

/** Models that can talk, in the order in which Ollama lists them: the newest first. */
function namesIn(answer: unknown): readonly string[] | null {
  if (!isJsonObject(answer) || !Array.isArray(answer['models'])) return null
  return answer['models'].flatMap((model) => {
    const name = isJsonObject(model) ? model['name'] : undefined
    const talks = !/embed|bert/i.test(JSON.stringify(model))
    return typeof name === 'string' && NAME.test(name) && talks ? [name] : []
  })
}

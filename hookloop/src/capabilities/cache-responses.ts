import { optionTypes } from '../values/option-types.ts'
import {
  fingerprintRequest,
  hook,
  isFinishReason,
  isReplyPart,
  toResponse,
  type Capability,
  type InferenceResponse,
} from '../plugin.ts'
import { BoundedMap } from '../values/bounded-map.ts'
import { checkOptions } from '../values/check-options.ts'
import { hashJson, isJsonObject, toJson, type Json } from '../values/json.ts'
import { waitAtMost } from '../system/timeout.ts'

/** Where `cacheResponses` stores responses. A store that fails or takes longer than 5 s is treated as empty. */
export type ResponseStore = {
  get(key: string): Json | undefined | Promise<Json | undefined>
  set(key: string, value: Json): void | Promise<void>
}

/** Options of `cacheResponses`. */
export type CacheResponsesOptions = {
  /** Where responses are stored. Default: in memory, the latest 1,000. */
  readonly store?: ResponseStore
  /** How long a response is valid. Default: as long as it is stored. */
  readonly ttlMs?: number
}

/**
 * Returns the stored response to an equal request, at no cost. Requests are equal if model, system prompt, messages,
 * names of tools and settings are. Only complete responses are stored.
 *
 * @example
 * createAgent({ model, use: [cacheResponses({ ttlMs: 60_000 })] })
 */
export function cacheResponses(options: CacheResponsesOptions = {}): Capability {
  checkOptions('cacheResponses', options, { store: optionTypes.any, ttlMs: optionTypes.positive })
  const { store = memoryStore(), ttlMs = Infinity } = options
  const cached = hook(
    'aroundInference',
    async (ctx, next) => {
      const key = hashJson(fingerprintRequest(ctx.request))
      const stored = await quietly(() => store.get(key))
      if (isEntry(stored) && Date.now() < stored.until) return toResponse({ ...stored.answer })
      const response = await next()
      if (response.finishReason === 'stop' || response.finishReason === 'tool-calls') {
        await quietly(() => store.set(key, entryFor(response, ttlMs)))
      }
      return response
    },
    { name: 'cacheResponses', priority: 120 }, // around `fallback` and `retry`
  )
  return { name: 'cacheResponses', hooks: [cached], notes: ['Responses to equal requests come from a cache.'] }
}

type Entry = { readonly until: number; readonly answer: Pick<InferenceResponse, 'content' | 'finishReason'> }

function entryFor({ content, finishReason, modelId }: InferenceResponse, ttlMs: number): Json {
  const until = Math.min(Date.now() + ttlMs, Number.MAX_SAFE_INTEGER)
  return toJson({ until, answer: { content, finishReason, ...(modelId !== undefined && { modelId }) } })
}

function isEntry(value: unknown): value is Entry {
  if (!isJsonObject(value) || typeof value['until'] !== 'number' || !isJsonObject(value['answer'])) return false
  const { content, finishReason } = value['answer']
  return Array.isArray(content) && content.every(isReplyPart) && isFinishReason(finishReason)
}

const STORE_TIMEOUT_MS = 5_000

async function quietly<T>(work: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await waitAtMost(Promise.resolve(work()), STORE_TIMEOUT_MS)
  } catch {
    return undefined // a cache must not make a run fail or hang
  }
}

/** Stores the most recently used responses. */
function memoryStore(): ResponseStore {
  const entries = new BoundedMap<string, Json>()
  return {
    get: (key) => {
      const value = entries.get(key)
      if (value !== undefined) entries.set(key, value)
      return value
    },
    set: (key, value) => void entries.set(key, value),
  }
}

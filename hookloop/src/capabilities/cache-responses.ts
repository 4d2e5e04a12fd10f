import type { Capability } from '../agent/capability.ts'
import { fingerprintRequest } from '../agent/model/fingerprint-request.ts'
import { checkOptions, invalidOption } from '../agent/check-options.ts'
import { isFinishReason, toResponse, type InferenceResponse } from '../state/inference.ts'
import { hashJson, isJsonObject, toJson, type Json } from '../state/json.ts'
import { isReplyPart } from '../state/message.ts'
import { hook } from '../hooks/hook.ts'
import { waitAtMost } from '../system/timeout.ts'

/** Where answers are kept. One that fails is treated as if it were empty. */
export type ResponseStore = {
  get(key: string): Json | undefined | Promise<Json | undefined>
  set(key: string, value: Json): void | Promise<void>
}

export type CacheOptions = {
  /** Default: the memory of this process, for the latest 1,000 answers. */
  readonly store?: ResponseStore
  /** How long an answer is good for. Default: as long as the store keeps it. */
  readonly ttlMs?: number
}

/**
 * Gives the answer that was given to the same request before, at no cost. The same means: model, instructions,
 * conversation, tools by name and settings. Only complete answers are kept.
 */
export function cacheResponses(options: CacheOptions = {}): Capability {
  checkOptions('cacheResponses', options, ['store', 'ttlMs'])
  const { store = memoryStore(), ttlMs = Infinity } = options
  if (!(ttlMs > 0)) throw invalidOption('cacheResponses', '"ttlMs" must be positive', ttlMs)
  const remembered = hook(
    'aroundInference',
    async (ctx, next) => {
      const key = hashJson(fingerprintRequest(ctx.request))
      const known = await quietly(() => store.get(key))
      if (isAnswer(known) && Date.now() < known.until) return toResponse({ ...known.answer })
      const response = await next()
      if (response.finishReason === 'stop' || response.finishReason === 'tool-calls') {
        await quietly(() => store.set(key, entryFor(response, ttlMs)))
      }
      return response
    },
    { name: 'cacheResponses', priority: 120 }, // outside of `fallback` and `retry`
  )
  return { name: 'cacheResponses', hooks: [remembered], notes: ['Answers to equal requests are given from a cache.'] }
}

type Entry = { readonly until: number; readonly answer: Pick<InferenceResponse, 'content' | 'finishReason'> }

function entryFor({ content, finishReason, modelId }: InferenceResponse, ttlMs: number): Json {
  const until = Math.min(Date.now() + ttlMs, Number.MAX_SAFE_INTEGER)
  return toJson({ until, answer: { content, finishReason, ...(modelId !== undefined && { modelId }) } })
}

function isAnswer(value: unknown): value is Entry {
  if (!isJsonObject(value) || typeof value['until'] !== 'number' || !isJsonObject(value['answer'])) return false
  const { content, finishReason } = value['answer']
  return Array.isArray(content) && content.every(isReplyPart) && isFinishReason(finishReason)
}

const PATIENCE_MS = 5_000

async function quietly<T>(work: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await waitAtMost(Promise.resolve(work()), PATIENCE_MS)
  } catch {
    return undefined // a cache is never worth a failed run, nor one that hangs
  }
}

const MAX_ENTRIES = 1_000

/** The latest answers, by when they were last used. */
function memoryStore(): ResponseStore {
  const entries = new Map<string, Json>()
  const put = (key: string, value: Json): void => {
    entries.delete(key)
    entries.set(key, value)
    if (entries.size > MAX_ENTRIES) entries.delete(entries.keys().next().value!)
  }
  return {
    get: (key) => {
      const value = entries.get(key)
      if (value !== undefined) put(key, value)
      return value
    },
    set: put,
  }
}

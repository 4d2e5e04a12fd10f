import type { Client } from '@modelcontextprotocol/client'
import { isJsonObject, type Json, type JsonObject } from '../../values/json.ts'

/** A list that was read page by page, and whether all of it was read. */
export type Listed = { readonly items: readonly Json[]; readonly isComplete: boolean }

export type SendOptions = { readonly timeout: number; readonly signal?: AbortSignal }

const MAX_PAGES = 64
const MAX_ITEMS = 20_000
const MAX_CHARS = 33_554_432

/** All pages of a list, up to the limits. Throws if the answer is not a list. */
export async function readPages(
  client: Client,
  { method, key }: { readonly method: string; readonly key: string },
  options: SendOptions,
): Promise<Listed> {
  const items: Json[] = []
  const cursors = new Set<string>()
  let [characters, cursor] = [0, undefined as string | undefined]
  for (let page = 0; page < MAX_PAGES; page++) {
    const params = cursor === undefined ? {} : { cursor }
    const answer = await plainRequest(client, { method, params }, options)
    const found = answer[key]
    if (!Array.isArray(found)) throw new Error(`its list of ${key} cannot be read`)
    items.push(...(found as readonly Json[]).slice(0, MAX_ITEMS - items.length))
    characters += JSON.stringify(found).length
    if (characters > MAX_CHARS || items.length === MAX_ITEMS) break
    cursor = typeof answer['nextCursor'] === 'string' ? answer['nextCursor'] : ''
    if (cursor === '') return { items, isComplete: true }
    if (cursors.has(cursor)) break
    cursors.add(cursor)
  }
  return { items, isComplete: false }
}

/** Sends a request without a result schema: each item is checked separately, so that one bad item does not fail the list. */
export async function plainRequest(
  client: Client,
  request: { readonly method: string; readonly params: JsonObject },
  options: SendOptions,
): Promise<JsonObject> {
  const answer = await client.request(request as never, anything, options)
  return isJsonObject(answer) ? answer : {}
}

/** A result schema that accepts everything, because the code that uses a result checks it. */
export const anything = {
  '~standard': { version: 1, vendor: 'hookloop', validate: (value: unknown) => ({ value }) },
} as const

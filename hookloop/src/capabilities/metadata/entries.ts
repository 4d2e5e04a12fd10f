import { isJsonObject, type Json, type JsonObject } from '../../data/json.ts'

/** What is stored, by key, without a prototype: a key such as `constructor` finds nothing that was not stored. */
export type Entries = { readonly [key: string]: Json }

export type Limits = {
  readonly maxKeys: number
  readonly maxKeyLength: number
  readonly maxValueBytes: number
  readonly maxTotalBytes: number
  readonly maxDepth: number
  readonly isReserved: (key: string) => boolean
}

export type Stored = { readonly entries: Entries; readonly words: string } | { readonly problem: string }

const KEY = /^[A-Za-z][A-Za-z0-9_.-]*$/

/** The entries as they are after one value was stored, or why it cannot be. Null removes. */
export function storeEntry(entries: Entries, { key, value }: JsonObject, limits: Limits): Stored {
  const problem = keyProblem(key, limits)
  if (typeof key !== 'string' || problem !== undefined) return { problem: problem! }
  if (value === null || value === undefined) return removeEntry(entries, key)
  if (isDeeper(value, limits.maxDepth)) {
    return { problem: `The value is nested more than ${limits.maxDepth} levels deep. Store a flatter one.` }
  }
  const bytes = bytesOf(value)
  if (bytes > limits.maxValueBytes) {
    return { problem: `The value has ${bytes} bytes, and ${limits.maxValueBytes} may be stored under a key.` }
  }
  if (!Object.hasOwn(entries, key) && Object.keys(entries).length >= limits.maxKeys) {
    return { problem: `There are ${limits.maxKeys} keys already, as many as there may be. Remove one: store null.` }
  }
  const next = withoutPrototype({ ...entries, [key]: value })
  const total = bytesOf(next)
  if (total > limits.maxTotalBytes) {
    return {
      problem: `That would make ${total} bytes in all, of ${limits.maxTotalBytes}. Remove something: store null.`,
    }
  }
  return { entries: next, words: `Stored ${bytes} bytes under "${key}".` }
}

/** Entries as they were kept. What is none is nothing: the state may come from anywhere. */
export function readEntries(kept: Json | undefined): Entries {
  return withoutPrototype(isJsonObject(kept) ? kept : {})
}

function keyProblem(key: Json | undefined, { maxKeyLength, isReserved }: Limits): string | undefined {
  if (typeof key !== 'string' || !KEY.test(key)) {
    return 'A key is made of letters, digits and _ . - and begins with a letter.'
  }
  if (key.length > maxKeyLength) return `A key has at most ${maxKeyLength} characters, and this one has ${key.length}.`
  return isReserved(key) ? `The key "${key}" is reserved. Choose another.` : undefined
}

function removeEntry(entries: Entries, key: string): Stored {
  if (!Object.hasOwn(entries, key)) return { entries, words: `There was nothing under "${key}".` }
  const { [key]: _removed, ...rest } = entries
  return { entries: withoutPrototype(rest), words: `Removed "${key}".` }
}

function isDeeper(value: Json, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1))
}

function bytesOf(value: Json): number {
  return Buffer.byteLength(JSON.stringify(value))
}

function withoutPrototype(entries: Entries): Entries {
  return Object.freeze(Object.assign(Object.create(null) as Record<string, Json>, entries))
}

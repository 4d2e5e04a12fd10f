import type { Json } from '../data/json.ts'

/**
 * Freezes what a schema made of the arguments, so that the tool gets what the guards have seen. Where something in it
 * cannot be frozen (a Date, a Map), `share` gives each reader a copy of its own instead.
 */
export function freezeParsed(value: unknown, raw: Json): { readonly value: unknown; readonly share?: () => unknown } {
  return value === raw || freezeDeep(value) ? { value } : { value, share: () => copyOf(value) }
}

/** Returns whether all of it is frozen now. */
function freezeDeep(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return typeof value !== 'function'
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== Array.prototype && prototype !== null) return false
  let frozen = true
  for (const key in value) frozen = freezeDeep((value as Record<string, unknown>)[key]) && frozen
  Object.freeze(value)
  return frozen
}

function copyOf(value: unknown): unknown {
  try {
    return structuredClone(value)
  } catch {
    return value // an instance of somebody's class: there is no general way to copy it
  }
}

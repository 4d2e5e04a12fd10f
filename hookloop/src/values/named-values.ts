import { isJsonObject, type Json } from './json.ts'

// Values that a model stores by name, limited in number, size and depth.

/** Without a prototype, so that a name such as `constructor` finds only what was stored. */
export type NamedValues = { readonly [name: string]: Json }

export type NamingLimits = SizeLimits & {
  /** The word for a name in messages to the model: `key`, `name`. */
  readonly word: string
  readonly maxNames: number
  readonly maxNameLength: number
  /** Of all names and values. */
  readonly maxTotalBytes: number
  readonly isReserved: (name: string) => boolean
}

export type SizeLimits = {
  /** Of one value, as JSON in UTF-8. */
  readonly maxValueBytes: number
  readonly maxDepth: number
}

/** The values with a new one, or the problem as a message for the model. */
export type Naming = { readonly values: NamedValues; readonly bytes: number } | { readonly problem: string }

const NAME = /^[A-Za-z][A-Za-z0-9_.-]*$/

/** Stores a value under a name. An existing value is replaced. */
export function nameValue(values: NamedValues, [name, value]: readonly [Json, Json], limits: NamingLimits): Naming {
  const { maxNames, maxTotalBytes } = limits
  const problem = nameProblem(name, limits) ?? sizeProblem(value, limits)
  if (problem !== undefined) return { problem }
  if (!Object.hasOwn(values, name as string) && Object.keys(values).length >= maxNames) {
    return { problem: `There are already ${maxNames}, which is the maximum. Replace or remove one.` }
  }
  const next = withoutPrototype({ ...values, [name as string]: value })
  const total = bytesOf(next)
  if (total > maxTotalBytes)
    return { problem: `All values would have ${total} bytes; the maximum is ${maxTotalBytes}.` }
  return { values: next, bytes: bytesOf(value) }
}

/** The problem with a name, if there is one. */
export function nameProblem(name: Json, { word, maxNameLength, isReserved }: NamingLimits): string | undefined {
  if (typeof name !== 'string' || !NAME.test(name)) {
    return `A ${word} must consist of letters, digits and _ . - and start with a letter.`
  }
  if (name.length > maxNameLength) {
    return `A ${word} may have at most ${maxNameLength} characters; this one has ${name.length}.`
  }
  return isReserved(name) ? `The ${word} "${name}" is reserved. Choose another.` : undefined
}

/** The problem with the size of a value, if there is one. */
export function sizeProblem(value: Json, { maxValueBytes, maxDepth }: SizeLimits): string | undefined {
  if (isDeeper(value, maxDepth)) return `The value is nested more than ${maxDepth} levels deep.`
  const bytes = bytesOf(value)
  return bytes > maxValueBytes ? `The value has ${bytes} bytes; the maximum is ${maxValueBytes}.` : undefined
}

export function withoutName(values: NamedValues, name: string): NamedValues {
  const { [name]: _removed, ...rest } = values
  return withoutPrototype(rest)
}

/** Reads stored values. Anything else is read as no values: a state may come from any source. */
export function readNamed(stored: Json | undefined): NamedValues {
  return withoutPrototype(isJsonObject(stored) ? stored : {})
}

function isDeeper(value: Json, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1))
}

function bytesOf(value: Json): number {
  return Buffer.byteLength(JSON.stringify(value))
}

function withoutPrototype(values: NamedValues): NamedValues {
  return Object.freeze(Object.assign(Object.create(null) as Record<string, Json>, values))
}

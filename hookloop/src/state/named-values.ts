import { isJsonObject, type Json } from './json.ts'

// Values that a model keeps by name: bounded in number, size and depth, and named so that no name means anything to us.

/** By name, without a prototype: a name such as `constructor` finds nothing that was not kept. */
export type NamedValues = { readonly [name: string]: Json }

export type NamingLimits = SizeLimits & {
  /** What the model calls a name: `key`, `name`. */
  readonly word: string
  readonly maxNames: number
  readonly maxNameLength: number
  /** Of all values and their names together. */
  readonly maxTotalBytes: number
  readonly isReserved: (name: string) => boolean
}

export type SizeLimits = {
  /** Of one value, as JSON in UTF-8. */
  readonly maxValueBytes: number
  readonly maxDepth: number
}

/** The values with one more, or what speaks against it in words for the model. */
export type Naming = { readonly values: NamedValues; readonly bytes: number } | { readonly problem: string }

const NAME = /^[A-Za-z][A-Za-z0-9_.-]*$/

/** Keeps a value under a name; one that is there is replaced. */
export function nameValue(values: NamedValues, [name, value]: readonly [Json, Json], limits: NamingLimits): Naming {
  const { maxNames, maxTotalBytes } = limits
  const problem = nameProblem(name, limits) ?? sizeProblem(value, limits)
  if (problem !== undefined) return { problem }
  if (!Object.hasOwn(values, name as string) && Object.keys(values).length >= maxNames) {
    return { problem: `There are ${maxNames} already, as many as there may be. Replace or remove one.` }
  }
  const next = withoutPrototype({ ...values, [name as string]: value })
  const total = bytesOf(next)
  if (total > maxTotalBytes) return { problem: `That would make ${total} bytes in all, of at most ${maxTotalBytes}.` }
  return { values: next, bytes: bytesOf(value) }
}

/** What speaks against a name, if anything does. */
export function nameProblem(name: Json, { word, maxNameLength, isReserved }: NamingLimits): string | undefined {
  if (typeof name !== 'string' || !NAME.test(name)) {
    return `A ${word} is made of letters, digits and _ . - and begins with a letter.`
  }
  if (name.length > maxNameLength) {
    return `A ${word} has at most ${maxNameLength} characters, and this one has ${name.length}.`
  }
  return isReserved(name) ? `The ${word} "${name}" is reserved. Choose another.` : undefined
}

/** What speaks against the size of a value, if anything does. */
export function sizeProblem(value: Json, { maxValueBytes, maxDepth }: SizeLimits): string | undefined {
  if (isDeeper(value, maxDepth)) return `The value is nested more than ${maxDepth} levels deep.`
  const bytes = bytesOf(value)
  return bytes > maxValueBytes ? `The value has ${bytes} bytes, and may have at most ${maxValueBytes}.` : undefined
}

export function withoutName(values: NamedValues, name: string): NamedValues {
  const { [name]: _removed, ...rest } = values
  return withoutPrototype(rest)
}

/** Values as they were kept. What is none is nothing: a state may come from anywhere. */
export function readNamed(kept: Json | undefined): NamedValues {
  return withoutPrototype(isJsonObject(kept) ? kept : {})
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

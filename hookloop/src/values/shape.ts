import { isJsonObject, type Json } from './json.ts'

// Checks of stored data. They are plain functions because they run on the hot path: a session is checked each time it is
// opened. For a state of 1,000 steps they take 1 ms; a JSON Schema validator takes about 30 ms.

/** Returns what is wrong with a value, if anything is. An empty path is the value as a whole. */
export type Shape = (value: Json | undefined, path: string) => string | undefined

/** A shape made of a predicate. The message continues a sentence: `must be a string`. */
export function must(isValid: (value: Json | undefined) => boolean, message: string): Shape {
  return (value, path) => (isValid(value) ? undefined : `${path === '' ? 'it' : `"${path}"`} ${message}`)
}

export const string = must((value) => typeof value === 'string', 'must be a string')
export const number = must((value) => typeof value === 'number', 'must be a number')
export const amount = must((value) => typeof value === 'number' && value >= 0, 'must be a number from 0 up')
export const boolean = must((value) => typeof value === 'boolean', 'must be true or false')
export const object = must(isJsonObject, 'must be an object')
export const present = must((value) => value !== undefined, 'is missing')

export function optional(shape: Shape): Shape {
  return (value, path) => (value === undefined ? undefined : shape(value, path))
}

export function oneOf(...values: readonly (string | number)[]): Shape {
  return must((value) => values.includes(value as string), `must be one of ${values.join(', ')}`)
}

export function listOf(shape: Shape): Shape {
  return (value, path) => {
    if (!Array.isArray(value)) return `"${path}" must be an array`
    for (let i = 0; i < value.length; i++)
      if (shape(value[i] as Json, path) !== undefined) return shape(value[i] as Json, `${path}[${i}]`)
    return undefined
  }
}

/** An object with these fields. Other fields are ignored. */
export function shapeOf(fields: { readonly [key: string]: Shape }): Shape {
  const isRight = changedShapeOf(fields)
  return (value, path) => isRight(value, path, undefined)
}

/**
 * The same for an object that was made from another one, which was right: values that are the same object or text as before are
 * not checked again. A path is only made for a problem: making all of them would take longer than the checks.
 */
export function changedShapeOf(fields: {
  readonly [key: string]: Shape
}): (value: Json | undefined, path: string, before: object | undefined) => string | undefined {
  const entries = Object.entries(fields)
  return (value, path, before) => {
    if (!isJsonObject(value)) return object(value, path)
    const known = (before ?? nothing) as { readonly [key: string]: unknown }
    for (const [key, shape] of entries) {
      const part = Object.hasOwn(value, key) ? value[key] : undefined
      if (part !== undefined && part === known[key]) continue
      if (shape(part, key) !== undefined) return shape(part, path === '' ? key : `${path}.${key}`)
    }
    return undefined
  }
}

const nothing = Object.freeze({})

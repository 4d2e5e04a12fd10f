import { shorten } from './text.ts'

const MAX_CHARS = 80

/** A short description of any value, for error messages. Never throws, whatever the value is. */
export function describeValue(value: unknown): string {
  try {
    return describe(value)
  } catch {
    return `a value of type ${typeof value} that cannot be read`
  }
}

function describe(value: unknown): string {
  switch (typeof value) {
    case 'function':
      return value.name === '' ? 'a function' : `the function "${shorten(value.name, MAX_CHARS)}"`
    case 'symbol':
      return 'a symbol'
    case 'bigint':
      return `${value}n`
    case 'string':
      return JSON.stringify(shorten(value, MAX_CHARS))
    case 'object': {
      if (value === null || Array.isArray(value) || isPlainObject(value)) return textOf(value)
      const name: unknown = value.constructor?.name
      return typeof name === 'string' && name !== '' ? `an instance of ${shorten(name, MAX_CHARS)}` : 'an object'
    }
    default:
      return String(value)
  }
}

/** JSON that also shows what JSON leaves out. */
function textOf(value: object | null): string {
  const text = JSON.stringify(value, (_key, inner: unknown) => {
    if (typeof inner === 'bigint') return `${inner}n`
    return typeof inner === 'function' || typeof inner === 'symbol' || inner === undefined ? `(${typeof inner})` : inner
  })
  return shorten(text, MAX_CHARS)
}

/** Whether an object has no class, in this realm or another one. */
export function isPlainObject(value: unknown): value is { readonly [key: string]: unknown } {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

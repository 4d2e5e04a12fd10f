import type { Json } from '../../state/json.ts'

/**
 * What a schema made of the arguments as a frozen copy, so that the tool gets what the guards have seen and nothing of
 * the schema's own is frozen with it. A Date, Map, Set or buffer in it cannot be frozen: `share` gives each reader a copy
 * that has its own. An instance of any other class is passed as it is; there is no general way to copy one.
 */
export function freezeParsed(value: unknown, raw: Json): { readonly value: unknown; readonly share?: () => unknown } {
  if (value === raw) return { value } // JSON that was frozen when it came in
  const copy = new FrozenCopy(false)
  const frozen = copy.of(value)
  return copy.isMutable ? { value: frozen, share: () => new FrozenCopy(true).of(frozen) } : { value: frozen }
}

/** The objects on the way to a value, from the inside out. */
type Path = { readonly value: object; readonly outer: Path | undefined }

class FrozenCopy {
  isMutable = false
  readonly #clones: boolean

  constructor(clones: boolean) {
    this.#clones = clones
  }

  of(value: unknown, outer?: Path): unknown {
    if (typeof value !== 'object' || value === null) return value
    if (value instanceof Date || value instanceof Map || value instanceof Set || ArrayBuffer.isView(value)) {
      this.isMutable = true
      return this.#clones ? structuredClone(value) : value
    }
    if (!isPlain(value) || isOn(outer, value)) return value
    const copy = Array.isArray(value) ? value.slice() : { ...value }
    for (const key in copy) {
      const inner = (copy as Record<string, unknown>)[key]
      if (typeof inner !== 'object' || inner === null) continue
      ;(copy as Record<string, unknown>)[key] = this.of(inner, { value, outer })
    }
    return Object.freeze(copy)
  }
}

function isOn(path: Path | undefined, value: object): boolean {
  for (let at = path; at !== undefined; at = at.outer) if (at.value === value) return true
  return false
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === Array.prototype || prototype === null
}

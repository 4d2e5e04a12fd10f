import { hashText } from '../../state/json.ts'

const MAX_NAME = 128
const HASH = 8

/**
 * The names under which tools of a server appear: `mcp__<server>__<tool>`. A name that cannot be used as it is becomes
 * one that can, the same every time, and never one that another tool has.
 */
export class ToolNames {
  readonly #prefix: string
  readonly #taken = new Set<string>()

  constructor(server: string) {
    this.#prefix = `mcp__${server}__`
  }

  /** Whether a tool can have its own name here. Such names are given out first, so that no other can take them. */
  fits(name: string): boolean {
    return /^[A-Za-z0-9_.:-]+$/.test(name) && this.#prefix.length + name.length <= MAX_NAME
  }

  /** The name of a tool, or undefined when it is taken: the server lists a name twice, or imitates another tool's. */
  take(name: string): string | undefined {
    const full = `${this.#prefix}${this.fits(name) ? name : this.#mapped(name)}`
    if (this.#taken.has(full)) return undefined
    this.#taken.add(full)
    return full
  }

  #mapped(name: string): string {
    const room = MAX_NAME - this.#prefix.length - HASH - 1
    return `${name.replace(/[^A-Za-z0-9_.:-]/g, '_').slice(0, room)}_${hashText(name).slice(0, HASH)}`
  }
}

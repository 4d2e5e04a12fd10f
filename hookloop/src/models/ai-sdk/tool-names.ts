import type { ToolDescription } from '../../state/inference.ts'

const MAX_LENGTH = 64

/** Providers take letters, digits, _ and - as the name of a tool, 64 at most, no digit first. The way there and back. */
export class ToolNames {
  readonly #there = new Map<string, string>()
  readonly #back = new Map<string, string>()

  constructor(tools: readonly ToolDescription[]) {
    for (const { name } of tools) this.sent(name)
  }

  /** The name a provider is given. */
  sent(name: string): string {
    const known = this.#there.get(name)
    if (known !== undefined) return known
    const safe = name
      .replace(/[^A-Za-z0-9_-]/g, '_')
      .replace(/^(?![A-Za-z_])/, '_')
      .slice(0, MAX_LENGTH)
    // Packages look names up in plain objects, where these stand for something else.
    let unique = safe in Object.prototype ? `${safe}_` : safe
    for (let n = 2; this.#back.has(unique); n++) unique = `${safe.slice(0, MAX_LENGTH - 4)}_${n}`
    this.#there.set(name, unique)
    this.#back.set(unique, name)
    return unique
  }

  /** Whether it is the name of a tool there is, or was. */
  has(sent: string): boolean {
    return this.#back.has(sent)
  }

  /** The name an agent knows; what no tool has stays as the model wrote it. */
  own(sent: string): string {
    return this.#back.get(sent) ?? sent
  }
}

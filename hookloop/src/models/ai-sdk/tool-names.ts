import type { ToolDescription } from '../../core/state/inference.ts'

const MAX_LENGTH = 64

/** Maps tool names to names that every provider accepts (letters, digits, _ and -, at most 64, no digit first), and back. */
export class ToolNames {
  readonly #there = new Map<string, string>()
  readonly #back = new Map<string, string>()

  constructor(tools: readonly ToolDescription[]) {
    for (const { name } of tools) this.sent(name)
  }

  /** The name to send. */
  sent(name: string): string {
    const known = this.#there.get(name)
    if (known !== undefined) return known
    const safe = name
      .replace(/[^A-Za-z0-9_-]/g, '_')
      .replace(/^(?![A-Za-z_])/, '_')
      .slice(0, MAX_LENGTH)
    // Some packages look names up in plain objects, where these have another meaning.
    let unique = safe in Object.prototype ? `${safe}_` : safe
    for (let n = 2; this.#back.has(unique); n++) unique = `${safe.slice(0, MAX_LENGTH - 4)}_${n}`
    this.#there.set(name, unique)
    this.#back.set(unique, name)
    return unique
  }

  /** Whether a tool with this name was sent. */
  has(sent: string): boolean {
    return this.#back.has(sent)
  }

  /** The agent's name of a tool. An unknown name stays as the model wrote it. */
  own(sent: string): string {
    return this.#back.get(sent) ?? sent
  }
}

import type { Effect } from './effects.ts'
import type { RecordEntry } from './recording.ts'

/** The model call, a tool call or a question of a step: the id of its execution, and the rest of its key. */
const OF_STEP = /^(.*)\/\d+\/(?:inference(?:\.\d+)?|\d+\/(?:tool|approval))(?:~\d+)?$/
/** What happens inside a model call or a tool call has no fixed order. */
const INSIDE_CALL = /\/(?:inference(?:\.\d+)?|tool)(?:~\d+)?\/|\/around/

/**
 * The model calls, tool calls and questions that earlier processes have recorded and that the resumed run has not asked for.
 * The same agent asks for all of them before it starts anything new; an agent that does not has changed.
 */
export class UnusedEffects {
  /** By execution: the run and each of its subagents. */
  readonly #keys = new Map<string, Set<string>>()

  constructor(entries: readonly RecordEntry[]) {
    const ended = new Set(entries.flatMap((entry) => (entry.type === 'end' ? [entry.key] : [])))
    for (const entry of entries) {
      if (entry.type !== 'begin' || entry.kind === 'hook') continue
      if (entry.kind === 'inference' && !ended.has(entry.key)) continue // it can be repeated
      const [, execution] = OF_STEP.exec(entry.key) ?? []
      if (execution === undefined) continue
      const keys = this.#keys.get(execution)
      if (keys === undefined) this.#keys.set(execution, new Set([entry.key]))
      else keys.add(entry.key)
    }
  }

  use(key: string): void {
    for (const [execution, keys] of this.#keys) {
      if (keys.delete(key) && keys.size === 0) this.#keys.delete(execution)
    }
  }

  /** The key of an effect that must be asked for before this new one starts, if there is one. */
  before(key: string, { kind, mode }: Effect): string | undefined {
    if (this.#keys.size === 0 || mode === 'observe') return undefined
    if (kind === 'hook' ? INSIDE_CALL.test(key) : !OF_STEP.test(key)) return undefined
    for (const [execution, keys] of this.#keys) if (key.startsWith(`${execution}/`)) return first(keys)
    return undefined
  }

  /** The key of any of them. */
  get any(): string | undefined {
    for (const keys of this.#keys.values()) return first(keys)
    return undefined
  }
}

function first(keys: ReadonlySet<string>): string | undefined {
  for (const key of keys) return key
  return undefined
}

import { checkSessionId } from './store.ts'

/** How a store learns what other processes have written. It runs only while there are watchers. */
export type Polling = { start(): void; stop(): void }

/** Polls in intervals. If a poll takes long, the next one is later, so that polling never takes more than a tenth of the time. */
export function pollEvery(
  ms: () => number,
  poll: () => void | Promise<void>,
  /** Whether it keeps the process alive. Default true. */
  { ref = true } = {},
): Polling {
  let current: { timer?: NodeJS.Timeout } | undefined
  const runLater = (mine: { timer?: NodeJS.Timeout }, took: number): void => {
    if (current !== mine) return
    mine.timer = setTimeout(() => void run(mine), Math.max(ms(), 9 * took))
    if (!ref) mine.timer.unref()
  }
  const run = async (mine: { timer?: NodeJS.Timeout }): Promise<void> => {
    const started = performance.now()
    const polling = poll()
    const took = performance.now() - started
    if (polling !== undefined) await polling
    runLater(mine, took)
  }
  return {
    start: () => runLater((current = {}), 0),
    stop() {
      clearTimeout(current?.timer)
      current = undefined
    },
  }
}

type Watcher = { readonly id: string; readonly onChange: () => void; readonly onEnd: () => void }

/** The watchers of a store. */
export class SessionWatchers {
  readonly #watchers = new Map<string, Set<Watcher>>()
  /** The version of each watched session at the last check. */
  readonly #versions = new Map<string, unknown>()
  readonly #polling: Polling | undefined

  constructor(polling?: Polling) {
    this.#polling = polling
  }

  /** The ids of the sessions that are watched. */
  get ids(): readonly string[] {
    return [...this.#watchers.keys()]
  }

  /** Implements `SessionStore.watch`. */
  watch(id: string, onChange: () => void, onEnd: () => void): () => void {
    checkSessionId(id)
    if (this.#watchers.size === 0) this.#polling?.start()
    const watcher: Watcher = { id, onChange, onEnd }
    const known = this.#watchers.get(id)
    if (known === undefined) this.#watchers.set(id, new Set([watcher]))
    else known.add(watcher)
    return () => this.#remove(watcher)
  }

  #remove(watcher: Watcher): void {
    const { id } = watcher
    const watchers = this.#watchers.get(id)
    if (watchers?.delete(watcher) !== true || watchers.size > 0) return
    this.#watchers.delete(id)
    this.#versions.delete(id)
    if (this.#watchers.size === 0) this.#polling?.stop()
  }

  /** Calls the watchers of a session. Without an id: all. */
  changed(id?: string): void {
    const ids = id === undefined ? this.ids : [id]
    for (const each of ids) this.#watchers.get(each)?.forEach(({ onChange }) => onChange())
  }

  /** Calls the watchers of each session that has another version than at the last check. */
  check(versionOf: (id: string) => unknown): void {
    for (const id of this.ids) {
      const version = versionOf(id)
      if (this.#versions.has(id) && version === this.#versions.get(id)) continue
      this.#versions.set(id, version)
      this.changed(id)
    }
  }

  /** Ends all watchers. */
  close(): void {
    if (this.#watchers.size === 0) return
    this.#polling?.stop()
    const all = [...this.#watchers.values()].flatMap((watchers) => [...watchers])
    this.#watchers.clear()
    for (const { onEnd } of all) onEnd()
  }
}

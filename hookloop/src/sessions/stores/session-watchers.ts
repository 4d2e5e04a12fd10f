import { checkSessionId } from './store.ts'

type Watcher = { readonly id: string; readonly onChange: () => void; readonly onEnd: () => void }

/** How a store learns what other processes have written. */
type Polling = {
  readonly ms: number
  /** The version of each session that exists. */
  versions(ids: readonly string[]): Promise<ReadonlyMap<string, unknown>>
}

/** The watchers of a store. It is polled only while there are some. */
export class SessionWatchers {
  readonly #watchers = new Map<string, Set<Watcher>>()
  /** The version of each watched session at the last check. */
  readonly #versions = new Map<string, unknown>()
  readonly #polling: Polling | undefined
  #timer: NodeJS.Timeout | undefined
  #hasFailed = false

  constructor(polling?: Polling) {
    this.#polling = polling
  }

  /** Implements `SessionStore.watch`. */
  watch(id: string, onChange: () => void, onEnd: () => void): () => void {
    checkSessionId(id)
    const watcher: Watcher = { id, onChange, onEnd }
    const known = this.#watchers.get(id)
    if (known === undefined) this.#watchers.set(id, new Set([watcher]))
    else known.add(watcher)
    if (this.#timer === undefined) this.#pollLater(0)
    return () => this.#remove(watcher)
  }

  #remove(watcher: Watcher): void {
    const { id } = watcher
    const watchers = this.#watchers.get(id)
    if (watchers?.delete(watcher) !== true || watchers.size > 0) return
    this.#watchers.delete(id)
    this.#versions.delete(id)
    if (this.#watchers.size === 0) this.#stop()
  }

  /** Calls the watchers of a session. */
  changed(id: string): void {
    this.#watchers.get(id)?.forEach(({ onChange }) => onChange())
  }

  /** If a poll takes long, the next one is later, so that polling never takes more than a tenth of the time. */
  #pollLater(took: number): void {
    if (this.#polling === undefined) return
    const timer = setTimeout(() => void this.#poll(timer), Math.max(this.#polling.ms, 9 * took))
    this.#timer = timer
  }

  async #poll(timer: NodeJS.Timeout): Promise<void> {
    const started = performance.now()
    const ids = [...this.#watchers.keys()]
    try {
      const versions = await this.#polling!.versions(ids)
      this.#hasFailed = false
      if (this.#timer === timer) for (const id of ids) this.#compare(id, versions.get(id))
    } catch {
      // Once, because the reads of the watchers report it.
      if (!this.#hasFailed) for (const id of ids) this.changed(id)
      this.#hasFailed = true
    }
    if (this.#timer === timer) this.#pollLater(performance.now() - started)
  }

  #compare(id: string, version: unknown): void {
    if (!this.#watchers.has(id) || (this.#versions.has(id) && this.#versions.get(id) === version)) return
    this.#versions.set(id, version)
    this.changed(id)
  }

  #stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** Ends all watchers. */
  close(): void {
    this.#stop()
    const all = [...this.#watchers.values()].flatMap((watchers) => [...watchers])
    this.#watchers.clear()
    for (const { onEnd } of all) onEnd()
  }
}

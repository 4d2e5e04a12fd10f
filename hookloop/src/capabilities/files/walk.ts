import { closeSync, openSync, readdirSync, type Dirent } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { openFlags, type HeldDirectory } from './held-directory.ts'

/** Something that was come across. `names` is its path below the folder in which the walk began. */
export type Entry = {
  readonly names: readonly string[]
  readonly kind: 'file' | 'directory' | 'link' | 'other'
  /** A path to it, for one call before the walk goes on. */
  readonly path: string
}

export type WalkOptions = {
  readonly lookup: HeldDirectory['lookup']
  readonly maxDepth: number
  /** Leaves out an entry and all that is in it. */
  readonly isHidden: (names: readonly string[]) => boolean
  /** Does not look into a folder, which is told all the same. */
  readonly isSkipped: (name: string) => boolean
  readonly limit: WorkLimit
}

/** How long some work may go on. It makes room for others every few milliseconds. */
export class WorkLimit {
  readonly #until: number
  readonly #signal: AbortSignal
  #turnEnds: number
  #ended = false

  constructor(ms: number, signal: AbortSignal) {
    this.#until = performance.now() + ms
    this.#signal = signal
    this.#turnEnds = performance.now() + TURN_MS
  }

  get isOver(): boolean {
    return this.#ended
  }

  /** Whether the turn of this work is over, so that `breathe` should be called. */
  get isLong(): boolean {
    return performance.now() > this.#turnEnds
  }

  /** Milliseconds that are left. */
  get left(): number {
    return Math.max(0, this.#until - performance.now())
  }

  async breathe(): Promise<void> {
    await nextTurn()
    this.#signal.throwIfAborted()
    if (performance.now() > this.#until) this.#ended = true
    this.#turnEnds = performance.now() + TURN_MS
  }
}

const TURN_MS = 8

/**
 * Walks a folder in the order of names, deep first, without following links. Calls are synchronous, in short turns: on
 * many small files that is several times faster than asking for each of them in another thread.
 */
export async function* walk(start: HeldDirectory, options: WalkOptions): AsyncGenerator<Entry, void, undefined> {
  yield* inFolder({ path: start.self, realPath: start.realPath, names: [] }, options)
}

type Folder = { readonly path: string; readonly realPath: string; readonly names: readonly string[] }

async function* inFolder(folder: Folder, options: WalkOptions): AsyncGenerator<Entry, void, undefined> {
  const { limit, isHidden, isSkipped, maxDepth, lookup } = options
  for (const entry of entriesOf(folder.path)) {
    if (limit.isLong) await limit.breathe()
    if (limit.isOver) return
    const names = [...folder.names, entry.name]
    if (isHidden(names)) continue
    const path = join(folder.path, entry.name)
    const kind = kindOf(entry)
    yield { names, kind, path }
    if (kind !== 'directory' || names.length >= maxDepth || isSkipped(entry.name)) continue
    const fd = tryOpen(path)
    if (fd === undefined) continue // gone, exchanged for a link, or not ours to read
    try {
      const realPath = join(folder.realPath, entry.name)
      yield* inFolder({ path: lookup === 'descriptor' ? `/proc/self/fd/${fd}` : realPath, realPath, names }, options)
    } finally {
      closeSync(fd)
    }
  }
}

function entriesOf(path: string): readonly Dirent[] {
  try {
    return readdirSync(path, { withFileTypes: true }).toSorted(({ name: a }, { name: b }) =>
      a < b ? -1 : a > b ? 1 : 0,
    )
  } catch {
    return []
  }
}

function tryOpen(path: string): number | undefined {
  try {
    return openSync(path, openFlags.directory)
  } catch {
    return undefined
  }
}

function kindOf(entry: Dirent): Entry['kind'] {
  if (entry.isFile()) return 'file'
  if (entry.isDirectory()) return 'directory'
  return entry.isSymbolicLink() ? 'link' : 'other'
}

/** The order in which a walk comes across two paths. */
export function byNames(a: readonly string[], b: readonly string[]): number {
  for (let at = 0; at < a.length && at < b.length; at++) {
    if (a[at]! < b[at]!) return -1
    if (a[at]! > b[at]!) return 1
  }
  return a.length - b.length
}

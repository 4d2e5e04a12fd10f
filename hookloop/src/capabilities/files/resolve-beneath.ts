import type { Stats } from 'node:fs'
import { lstat, readlink } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import { HeldDirectory, type Lookup } from './held-directory.ts'
import { showName } from './names.ts'
import { isUnreal, outside, PathRefused, placeOf, type Place, type Root } from './roots.ts'

/** Where a path really leads: the folder it ends in, held open, and what is there under its last name. */
export type Resolved = {
  readonly root: Root
  /** The real path below the root, without a link in it. */
  readonly names: readonly string[]
  /** The folder that is held: the one that is named, or the one in which the last existing name is. */
  readonly directory: HeldDirectory
} & (
  | { readonly kind: 'directory' }
  | { readonly kind: 'file' | 'other'; readonly name: string; readonly stats: Stats }
  /** Nothing is there. `missing` are the names below `directory` that would have to be made. */
  | { readonly kind: 'absent'; readonly missing: readonly string[] }
)

const MAX_LINKS = 40
const MAX_DEPTH = 128
const MAX_NAME_BYTES = 255

/**
 * Follows a path name by name, each looked up in the folder that is held open, so that nothing can be exchanged behind
 * its back. Links are read and followed by hand; one that leads out of the roots is refused before anything is looked
 * at there. Whoever calls closes `directory`.
 */
export async function resolveBeneath(
  place: Place,
  roots: readonly Root[],
  { lookup, shown }: { lookup: Lookup; shown: string },
): Promise<Resolved> {
  const walk = new Walk(place, roots, lookup)
  try {
    return await walk.run(shown)
  } finally {
    await walk.leave()
  }
}

class Walk {
  readonly #roots: readonly Root[]
  readonly #lookup: Lookup
  #root: Root
  #ahead: string[]
  #held: HeldDirectory[] = []
  #names: string[] = []
  #turns = 0
  #result: Resolved | undefined

  constructor(place: Place, roots: readonly Root[], lookup: Lookup) {
    this.#roots = roots
    this.#lookup = lookup
    this.#root = place.root
    this.#ahead = [...place.names]
  }

  async run(shown: string): Promise<Resolved> {
    await this.#enter(this.#root)
    for (let name = this.#ahead.shift(); name !== undefined; name = this.#ahead.shift()) {
      if (name === '' || name === '.') continue
      if (name === '..') await this.#goUp(shown)
      else {
        const end = await this.#look(name, shown)
        if (end !== undefined) return this.#keep(end)
      }
    }
    return this.#keep({ kind: 'directory' })
  }

  /** Closes what is not handed out. */
  async leave(): Promise<void> {
    for (const held of this.#held) if (held !== this.#result?.directory) await held.close()
    this.#held = []
  }

  async #enter(root: Root): Promise<void> {
    await this.leave()
    this.#root = root
    this.#names = []
    this.#held = [await HeldDirectory.open(root.real, this.#lookup)]
  }

  async #goUp(shown: string): Promise<void> {
    if (this.#held.length === 1) throw outside(shown, this.#roots)
    this.#names.pop()
    await this.#held.pop()!.close()
  }

  /** Takes one name. Gives what is found if the path ends with it. */
  async #look(name: string, shown: string): Promise<End | undefined> {
    if (Buffer.byteLength(name) > MAX_NAME_BYTES) throw new PathRefused(`A name in ${brief(shown)} is too long.`)
    if (this.#held.length > MAX_DEPTH) throw new PathRefused(`${brief(shown)} is too deep.`)
    const directory = this.#held.at(-1)!
    const stats = await lstat(directory.at(name)).catch(absentAs(undefined))
    if (stats === undefined) return this.#absent(name, shown)
    if (stats.isSymbolicLink()) {
      const target = await readlink(directory.at(name)).catch(absentAs(undefined))
      await this.#follow(target, name, shown)
      return undefined
    }
    if (stats.isDirectory()) {
      const child = await directory.child(name).catch(absentAs(undefined))
      if (child === undefined) return this.#again(name, shown) // it was exchanged between the two looks
      this.#held.push(child)
      this.#names.push(name)
      return undefined
    }
    if (this.#ahead.some((next) => next !== '' && next !== '.')) {
      throw new Error(`${showName(shown)}: ${showName(name)} is not a folder.`)
    }
    this.#names.push(name)
    return { kind: stats.isFile() ? 'file' : 'other', name, stats }
  }

  async #follow(target: string | undefined, name: string, shown: string): Promise<void> {
    if (target === undefined) return this.#again(name, shown)
    this.#count(shown)
    if (!isAbsolute(target)) {
      this.#ahead.unshift(...target.split('/'))
      return
    }
    const place = placeOf(target, this.#roots)
    if (place === undefined) throw outside(shown, this.#roots)
    this.#ahead.unshift(...place.names)
    await this.#enter(place.root)
  }

  #again(name: string, shown: string): undefined {
    this.#count(shown)
    this.#ahead.unshift(name)
    return undefined
  }

  #count(shown: string): void {
    if (++this.#turns > MAX_LINKS) throw new PathRefused(`${showName(shown)} leads through too many links.`)
  }

  #absent(name: string, shown: string): End {
    const missing = [name, ...this.#ahead].filter((each) => each !== '' && each !== '.')
    if (missing.includes('..')) throw outside(shown, this.#roots) // a link through a folder that is not there
    this.#names.push(...missing)
    return { kind: 'absent', missing }
  }

  #keep(end: End): Resolved {
    const directory = this.#held.at(-1)!
    if (isUnreal(directory.realPath)) throw outside(directory.realPath, this.#roots)
    this.#result = { ...end, root: this.#root, names: this.#names, directory }
    return this.#result
  }
}

type End =
  | { readonly kind: 'directory' }
  | { readonly kind: 'file' | 'other'; readonly name: string; readonly stats: Stats }
  | { readonly kind: 'absent'; readonly missing: readonly string[] }

/** What is not there, or is no longer what it was a moment ago. */
function absentAs<T>(value: T): (error: unknown) => T {
  return (error) => {
    const code = (error as NodeJS.ErrnoException).code ?? ''
    if (['ENOENT', 'ELOOP', 'ENOTDIR', 'EINVAL'].includes(code)) return value
    throw error
  }
}

function brief(shown: string): string {
  return showName(shown.length > 80 ? `${shown.slice(0, 80)}…` : shown)
}

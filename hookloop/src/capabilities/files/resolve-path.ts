import { lstat, readlink } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import { OpenFolder, type Lookup } from './open-folder.ts'
import { isVirtual, outside, PathRefused, placeOf, showName, type Place, type Root } from './paths.ts'

/** Where a path leads after resolving links: the open folder, and what is there under the last name. */
export type Resolved = {
  readonly root: Root
  /** The real path below the root. */
  readonly names: readonly string[]
  /** The named folder, or the folder of the last existing name. Held open. */
  readonly directory: OpenFolder
} & End

type End =
  | { readonly kind: 'directory' }
  | { readonly kind: 'file' | 'other'; readonly name: string }
  /** Nothing exists. `missing` are the names below `directory` that would have to be created. */
  | { readonly kind: 'absent'; readonly missing: readonly string[] }

const MAX_LINKS = 40
const MAX_DEPTH = 128
const MAX_NAME_BYTES = 255

/** Throws if a path below the root must not be used. Called before anything there is accessed. */
type CheckNames = (names: readonly string[]) => void

/**
 * Resolves a path name by name, each in a folder that is held open, so that no part can be replaced in between (TOCTOU). Links are
 * read and followed here; one that leads out of the roots is refused before anything there is accessed. The caller closes
 * `directory`.
 */
export async function resolvePath(
  place: Place,
  roots: readonly Root[],
  { lookup, shown, check = () => undefined }: { lookup: Lookup; shown: string; check?: CheckNames },
): Promise<Resolved> {
  const resolution = new Resolution(place, roots, { lookup, check })
  try {
    return await resolution.run(shown)
  } finally {
    await resolution.closeFolders()
  }
}

class Resolution {
  readonly #roots: readonly Root[]
  readonly #lookup: Lookup
  readonly #check: CheckNames
  #root: Root
  #remaining: string[]
  #open: OpenFolder[] = []
  #names: string[] = []
  #steps = 0
  #result: Resolved | undefined

  constructor(
    place: Place,
    roots: readonly Root[],
    { lookup, check }: { readonly lookup: Lookup; readonly check: CheckNames },
  ) {
    this.#roots = roots
    this.#lookup = lookup
    this.#check = check
    this.#root = place.root
    this.#remaining = [...place.names]
  }

  async run(shown: string): Promise<Resolved> {
    await this.#enter(this.#root)
    for (let name = this.#remaining.shift(); name !== undefined; name = this.#remaining.shift()) {
      if (name === '' || name === '.') continue
      if (name === '..') await this.#goUp(shown)
      else {
        const end = await this.#step(name, shown)
        if (end !== undefined) return this.#finish(end)
      }
    }
    return this.#finish({ kind: 'directory' })
  }

  /** Closes all folders except the one that is returned. */
  async closeFolders(): Promise<void> {
    for (const folder of this.#open) if (folder !== this.#result?.directory) await folder.close()
    this.#open = []
  }

  async #enter(root: Root): Promise<void> {
    await this.closeFolders()
    this.#root = root
    this.#names = []
    this.#open = [await OpenFolder.open(root.real, this.#lookup)]
  }

  async #goUp(shown: string): Promise<void> {
    if (this.#open.length === 1) throw outside(shown, this.#roots)
    this.#names.pop()
    await this.#open.pop()!.close()
  }

  /** Follows one name. Returns what is found if the path ends there. */
  async #step(name: string, shown: string): Promise<End | undefined> {
    if (Buffer.byteLength(name) > MAX_NAME_BYTES) throw new PathRefused(`A name in ${brief(shown)} is too long.`)
    if (this.#open.length > MAX_DEPTH) throw new PathRefused(`${brief(shown)} is too deep.`)
    this.#check([...this.#names, name])
    const directory = this.#open.at(-1)!
    const stats = await lstat(directory.at(name)).catch(ifAbsent)
    if (stats === undefined) return this.#absent(name, shown)
    if (stats.isSymbolicLink()) {
      const target = await readlink(directory.at(name)).catch(ifAbsent)
      await this.#follow(target, name, shown)
      return undefined
    }
    if (stats.isDirectory()) {
      const child = await directory.child(name).catch(ifAbsent)
      if (child === undefined) return this.#retry(name, shown) // it was replaced between the two calls
      this.#open.push(child)
      this.#names.push(name)
      return undefined
    }
    if (this.#remaining.some((next) => next !== '' && next !== '.')) {
      throw new Error(`${showName(shown)}: ${showName(name)} is not a folder.`)
    }
    this.#names.push(name)
    return { kind: stats.isFile() ? 'file' : 'other', name }
  }

  async #follow(target: string | undefined, name: string, shown: string): Promise<void> {
    if (target === undefined) return this.#retry(name, shown)
    this.#count(shown)
    if (!isAbsolute(target)) {
      this.#remaining.unshift(...target.split('/'))
      return
    }
    const place = placeOf(target, this.#roots)
    if (place === undefined) throw outside(shown, this.#roots)
    this.#remaining.unshift(...place.names)
    await this.#enter(place.root)
  }

  #retry(name: string, shown: string): undefined {
    this.#count(shown)
    this.#remaining.unshift(name)
    return undefined
  }

  #count(shown: string): void {
    if (++this.#steps > MAX_LINKS) throw new PathRefused(`${showName(shown)} has too many links.`)
  }

  #absent(name: string, shown: string): End {
    const missing = [name, ...this.#remaining].filter((each) => each !== '' && each !== '.')
    if (missing.includes('..')) throw outside(shown, this.#roots) // a link through a missing folder
    this.#names.push(...missing)
    this.#check(this.#names)
    return { kind: 'absent', missing }
  }

  #finish(end: End): Resolved {
    const directory = this.#open.at(-1)!
    if (isVirtual(directory.realPath)) throw outside(directory.realPath, this.#roots)
    this.#result = { ...end, root: this.#root, names: this.#names, directory }
    return this.#result
  }
}

/** For a name that does not exist or was replaced a moment ago. */
function ifAbsent(error: unknown): undefined {
  const code = (error as NodeJS.ErrnoException).code ?? ''
  if (!['ENOENT', 'ELOOP', 'ENOTDIR', 'EINVAL'].includes(code)) throw error
}

function brief(shown: string): string {
  return showName(shown.length > 80 ? `${shown.slice(0, 80)}…` : shown)
}

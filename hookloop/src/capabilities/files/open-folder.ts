import { constants, existsSync } from 'node:fs'
import { lstat, open, readlink, realpath, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'

// Node has no openat(2). On Linux `/proc/self/fd/7/name` does the same: it is the name in the folder that is open as descriptor
// 7, even if that folder was moved. Elsewhere the path is used, and checked again afterwards.

const HAS_PROC = process.platform === 'linux' && existsSync('/proc/self/fd')
const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants

export const openFlags = {
  directory: O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK,
  /** Never blocks, not even on a named pipe. */
  file: O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
} as const

/** How names are looked up; by path on systems without `/proc`. */
export type Lookup = 'descriptor' | 'path'

export const bestLookup: Lookup = HAS_PROC ? 'descriptor' : 'path'

/** A folder that is held open. Names are looked up in this folder, and links are never followed. */
export class OpenFolder {
  readonly handle: FileHandle
  /** Its path when it was opened, with links resolved. */
  readonly realPath: string
  readonly lookup: Lookup

  private constructor(handle: FileHandle, realPath: string, lookup: Lookup) {
    this.handle = handle
    this.realPath = realPath
    this.lookup = lookup
  }

  /** Opens a root folder, whose parents are trusted. */
  static async open(realPath: string, lookup: Lookup): Promise<OpenFolder> {
    return new OpenFolder(await open(realPath, openFlags.directory), realPath, lookup)
  }

  /** Opens a folder in this one. Fails if it is a link or not a folder. */
  async child(name: string): Promise<OpenFolder> {
    const handle = await open(this.at(name), openFlags.directory)
    const child = new OpenFolder(handle, join(this.realPath, name), this.lookup)
    if (this.lookup === 'descriptor') return child
    try {
      await child.check()
      return child
    } catch (error) {
      await handle.close()
      throw error
    }
  }

  /** A path to a name in this folder, for immediate use. */
  at(name: string): string {
    return this.lookup === 'descriptor' ? `${this.self}/${name}` : join(this.realPath, name)
  }

  /** A path to this folder, for immediate use. */
  get self(): string {
    return this.lookup === 'descriptor' ? `/proc/self/fd/${this.handle.fd}` : this.realPath
  }

  /** Throws if the folder has moved: what was decided about its path must still hold. */
  async check(): Promise<void> {
    if (!(await this.#isInPlace()))
      throw new Error('The folder was moved or replaced in the meantime. Nothing was done; try again.')
  }

  async #isInPlace(): Promise<boolean> {
    if (this.lookup === 'descriptor') return (await readlink(this.self)) === this.realPath
    try {
      const [held, there, real] = await Promise.all([
        this.handle.stat({ bigint: true }),
        lstat(this.realPath, { bigint: true }),
        realpath(this.realPath),
      ])
      return held.ino === there.ino && held.dev === there.dev && real === this.realPath
    } catch {
      return false
    }
  }

  async close(): Promise<void> {
    await this.handle.close()
  }
}

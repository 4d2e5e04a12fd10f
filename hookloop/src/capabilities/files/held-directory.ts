import { constants, existsSync } from 'node:fs'
import { lstat, open, readlink, realpath, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'

// Node has no openat(2). Linux has something as good: `/proc/self/fd/7/name` is the name in the folder that is open as
// 7, whatever has become of the path it was opened by. Elsewhere the path is used, and looked at again afterwards.

const HAS_PROC = process.platform === 'linux' && existsSync('/proc/self/fd')
const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants

export const openFlags = {
  directory: O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK,
  /** Never waits, also not for somebody at the other end of a pipe. */
  file: O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
} as const

/** How names are looked up. The second way is for systems without `/proc`. */
export type Lookup = 'descriptor' | 'path'

export const bestLookup: Lookup = HAS_PROC ? 'descriptor' : 'path'

/** A folder that is kept open. Names are looked up in this folder, and a link among them is never followed. */
export class HeldDirectory {
  readonly handle: FileHandle
  /** Where it was found, without a link in it. */
  readonly realPath: string
  readonly lookup: Lookup

  private constructor(handle: FileHandle, realPath: string, lookup: Lookup) {
    this.handle = handle
    this.realPath = realPath
    this.lookup = lookup
  }

  /** Opens a root: its parents are trusted. */
  static async open(realPath: string, lookup: Lookup): Promise<HeldDirectory> {
    return new HeldDirectory(await open(realPath, openFlags.directory), realPath, lookup)
  }

  /** A folder in this one. Fails if it is a link, or anything else. */
  async child(name: string): Promise<HeldDirectory> {
    const handle = await open(this.at(name), openFlags.directory)
    const child = new HeldDirectory(handle, join(this.realPath, name), this.lookup)
    if (this.lookup === 'descriptor') return child
    try {
      await child.check()
      return child
    } catch (error) {
      await handle.close()
      throw error
    }
  }

  /** A path to a name in this folder, for one call right now. */
  at(name: string): string {
    return this.lookup === 'descriptor' ? `${this.self}/${name}` : join(this.realPath, name)
  }

  /** A path to this folder, for one call right now. */
  get self(): string {
    return this.lookup === 'descriptor' ? `/proc/self/fd/${this.handle.fd}` : this.realPath
  }

  /** Makes sure that it is still where it was found: what was decided about its path must hold for what is done. */
  async check(): Promise<void> {
    if (!(await this.#isInPlace()))
      throw new Error('The folder was moved or replaced meanwhile. Nothing was done; try again.')
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

import { createHash } from 'node:crypto'
import { lstatSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { isAbsolute, relative, resolve } from 'node:path'
import { realPathOf } from '../../system/files/real-path.ts'
import { BoundedMap } from '../../state/bounded-map.ts'

/** The real path of a file and the hash of its content, or of a folder and the hash of the names in it. */
export type Fingerprint = {
  readonly path: string
  /** Empty if it cannot be trusted. */
  readonly hash: string
  /** Why it cannot be trusted. */
  readonly problem?: string
}

/** Reads a file together with its fingerprint. Returns undefined if it is not a readable file. */
export function readWithFingerprint(path: string): (Fingerprint & { readonly text: string }) | undefined {
  try {
    const real = realpathSync(path)
    if (!statSync(real).isFile()) return undefined
    const content = readFileSync(real)
    return { path: real, hash: hashed(content), text: content.toString('utf8') }
  } catch {
    return undefined
  }
}

/** Whether a path exists, also if it is not a file, cannot be read, or is a broken link. */
export function pathExists(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined
  } catch {
    return false
  }
}

const known = new BoundedMap<string, { readonly hash: string; readonly mark: string }>(10_000)
/** File systems have coarse clocks: two changes within one tick have the same time. */
const TICK_NS = 2_000_000_000n

/**
 * The fingerprint of a file, or undefined if it is not a readable file. In a new process the content is always read. Later it
 * is read again only if it may have changed: by inode, size and times, or because the last change is too recent for the
 * clock of the file system. The kernel sets the change time with every write, and a program cannot set it back.
 */
export function fingerprint(path: string): Fingerprint | undefined {
  try {
    const real = realpathSync(path)
    const stat = statSync(real, { bigint: true })
    if (!stat.isFile()) return undefined
    const { dev, ino, size, mtimeNs, ctimeNs } = stat
    const mark = [dev, ino, size, mtimeNs, ctimeNs].join()
    const last = known.get(real)
    if (last?.mark === mark) return { path: real, hash: last.hash }
    const start = BigInt(Date.now()) * 1_000_000n
    const hash = hashed(readFileSync(real))
    if (start - ctimeNs > TICK_NS) known.set(real, { hash, mark })
    return { path: real, hash }
  } catch {
    return undefined
  }
}

export function hashed(content: Buffer | string): string {
  return createHash('sha256').update(content).digest('hex')
}

export function uniqueByPath<T extends Fingerprint>(files: readonly T[]): readonly T[] {
  return [...new Map(files.map((file) => [file.path, file])).values()]
}

/** One hash for several files. */
export function hashFiles(files: readonly Fingerprint[], dir: string): string {
  const root = realPath(dir)
  const lines = files.map(({ path, hash }) => `${relative(root, path)}\0${hash}\n`).toSorted()
  return hashed(lines.join(''))
}

/** Whether a path is below a folder. Both are real paths. */
export function isInside(root: string, path: string): boolean {
  const inside = relative(root, path)
  return inside !== '' && inside !== '..' && !inside.startsWith('../') && !isAbsolute(inside)
}

/** The path with all links resolved, or the absolute path if it does not exist. */
export function realPath(path: string): string {
  return realPathOf(path) ?? resolve(path)
}

import { createHash } from 'node:crypto'
import { lstatSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { isAbsolute, relative, resolve } from 'node:path'
import { realPathOf } from '../../system/files/real-path.ts'

/** The real path of a file and the hash of its content. */
export type Fingerprint = {
  readonly path: string
  /** Empty if it cannot be trusted. */
  readonly hash: string
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

/** The fingerprint of a file, or undefined if it is not a readable file. */
export function fingerprint(path: string): Fingerprint | undefined {
  const read = readWithFingerprint(path)
  return read && { path: read.path, hash: read.hash }
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

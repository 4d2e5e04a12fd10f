import { createHash } from 'node:crypto'
import { lstatSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { isAbsolute, relative, resolve } from 'node:path'

/** A file by its real path and the hash of its content. */
export type Fingerprint = { readonly path: string; readonly hash: string }

/** A file with its real path, its content and the fingerprint of that content; undefined if there is no such file. */
export function readPrinted(path: string): (Fingerprint & { readonly text: string }) | undefined {
  try {
    const real = realpathSync(path)
    if (!statSync(real).isFile()) return undefined
    const content = readFileSync(real)
    return { path: real, hash: hashed(content), text: content.toString('utf8') }
  } catch {
    return undefined
  }
}

/** Whether there is anything of that name: also what is no file, cannot be read, or leads nowhere. */
export function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined
  } catch {
    return false
  }
}

type Known = { readonly hash: string; readonly mark: string }

const known = new Map<string, Known>()
const MAX_KNOWN = 10_000
/** Clocks of file systems tick slowly: two changes within one tick look like one. */
const TICK_NS = 2_000_000_000n

/**
 * A file by its real path and its content; undefined if it cannot be read, or is no file. It is read again only if it may
 * have changed: another file, size or time of change, or a change so near to the last look that the clock cannot tell.
 */
export function fingerprint(path: string): Fingerprint | undefined {
  try {
    const real = realpathSync(path)
    const { dev, ino, size, mtimeNs, ctimeNs, isFile } = statOf(real)
    if (!isFile) return undefined
    const mark = [dev, ino, size, mtimeNs, ctimeNs].join()
    const last = known.get(real)
    if (last?.mark === mark) return { path: real, hash: last.hash }
    const begun = BigInt(Date.now()) * 1_000_000n
    const hash = hashed(readFileSync(real))
    if (begun - ctimeNs > TICK_NS) remember(real, { hash, mark })
    return { path: real, hash }
  } catch {
    return undefined
  }
}

function statOf(path: string) {
  const { dev, ino, size, mtimeNs, ctimeNs, ...stat } = statSync(path, { bigint: true })
  return { dev, ino, size, mtimeNs, ctimeNs, isFile: (stat.mode & 0o170000n) === 0o100000n }
}

function remember(path: string, one: Known): void {
  known.set(path, one)
  for (const oldest of known.keys()) {
    if (known.size <= MAX_KNOWN) break
    known.delete(oldest)
  }
}

function hashed(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}

/** One hash for several files, which is another one when any of them is. */
export function hashOf(files: readonly Fingerprint[], dir: string): string {
  const root = realPath(dir)
  const lines = files.map(({ path, hash }) => `${relative(root, path)}\0${hash}\n`).toSorted()
  return hashed(Buffer.from(lines.join('')))
}

export function isInside(root: string, path: string): boolean {
  const way = relative(root, path)
  return way !== '' && way !== '..' && !way.startsWith('../') && !isAbsolute(way)
}

export function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return resolve(path)
  }
}

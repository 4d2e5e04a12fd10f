import { statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { isInside, pathExists, readWithFingerprint, realPath, type Fingerprint } from './trust/fingerprint.ts'

/** A file with hooks. One with a problem cannot be used, and its hash is empty. */
export type ConfigFile = Fingerprint & { readonly text: string }

/** Larger files are not read: some texts take more than linear time to parse. */
const MAX_BYTES = 262_144

/**
 * Reads a file with hooks. Undefined if there is none. A file below the project that is a link out of it has a problem: what
 * is outside of the project needs no trust.
 */
export function readConfig(file: string, dir: string): ConfigFile | undefined {
  if (!pathExists(file)) return undefined
  const unusable = (problem: string): ConfigFile => ({
    path: join(realPath(dirname(file)), basename(file)),
    hash: '',
    text: '',
    problem,
  })
  const real = realPath(file)
  if (isInside(resolve(dir), resolve(file)) && !isInside(realPath(dir), real)) {
    return unusable(`it is a link to ${real}, outside of ${dir}`)
  }
  const size = sizeOf(file)
  if (size > MAX_BYTES) return unusable(`it is larger than ${MAX_BYTES.toLocaleString('en')} bytes`)
  return readWithFingerprint(file) ?? unusable('it cannot be read')
}

function sizeOf(file: string): number {
  try {
    return statSync(file).size
  } catch {
    return 0
  }
}

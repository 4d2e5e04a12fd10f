import { hashOf, type Fingerprint } from './fingerprint.ts'
import { TrustStore } from './trust-store.ts'

const SHORTEST = 16

/** Trust in files whose hash somebody has named, or as many of its first characters as are not made up by chance. */
export function trustedByHash(
  files: readonly Fingerprint[],
  { dir, hash }: { readonly dir: string; readonly hash: string },
): TrustStore | undefined {
  const wanted = hash.trim().toLowerCase()
  const isHash = wanted.length >= SHORTEST && /^[0-9a-f]+$/.test(wanted)
  return isHash && files.length > 0 && hashOf(files, dir).startsWith(wanted) ? TrustStore.holding(files) : undefined
}

import { hashFiles, type Fingerprint } from './fingerprint.ts'
import { TrustStore } from './trust-store.ts'

const MIN_LENGTH = 16

/** Trusts files if their hash, or at least its first 16 characters, is the one that the user gave. */
export function trustedByHash(
  files: readonly Fingerprint[],
  { dir, hash }: { readonly dir: string; readonly hash: string },
): TrustStore | undefined {
  const wanted = hash.trim().toLowerCase()
  const isHash = wanted.length >= MIN_LENGTH && /^[0-9a-f]+$/.test(wanted)
  return isHash && files.length > 0 && hashFiles(files, dir).startsWith(wanted) ? TrustStore.of(files) : undefined
}

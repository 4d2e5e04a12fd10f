import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'

const exact = new TextDecoder('utf-8', { fatal: true })

/**
 * Reads a small file of text that somebody else may have put there. Throws, with words that begin with `its …`, if it is a
 * link, no file, too large, binary or not UTF-8. It never waits, as opening a pipe would.
 */
export function readText(
  path: string,
  { maxBytes, name }: { readonly maxBytes: number; readonly name: string },
): string {
  const handle = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    if (!fstatSync(handle).isFile()) throw new Error(`its ${name} is not a regular file`)
    const buffer = Buffer.alloc(maxBytes + 1)
    let size = 0
    for (let read = -1; read !== 0 && size <= maxBytes; size += read) {
      read = readSync(handle, buffer, size, buffer.length - size, size)
    }
    if (size > maxBytes) throw new Error(`its ${name} is larger than ${maxBytes} bytes`)
    const bytes = buffer.subarray(0, size)
    if (bytes.includes(0)) throw new Error(`its ${name} is a binary file`)
    return decoded(bytes, name)
  } finally {
    closeSync(handle)
  }
}

function decoded(bytes: Uint8Array, name: string): string {
  try {
    return exact.decode(bytes)
  } catch {
    throw new Error(`its ${name} is not UTF-8`)
  }
}

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'

const exact = new TextDecoder('utf-8', { fatal: true })

/**
 * Reads a small text file that may come from an untrusted source. Throws an Error about `called` if it is a link, not a file, too large,
 * binary or not UTF-8. Never blocks, as opening a named pipe would.
 */
export function readText(
  path: string,
  { maxBytes, called = 'it' }: { readonly maxBytes: number; readonly called?: string },
): string {
  const handle = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    if (!fstatSync(handle).isFile()) throw new Error(`${called} is not a regular file`)
    const bytes = readBytes(handle, maxBytes + 1)
    if (bytes.length > maxBytes) throw new Error(`${called} is larger than ${maxBytes} bytes`)
    if (bytes.includes(0)) throw new Error(`${called} is a binary file`)
    return decoded(bytes, called)
  } finally {
    closeSync(handle)
  }
}

/** The first `max` bytes of an open file. */
export function readBytes(handle: number, max: number): Buffer {
  const buffer = Buffer.allocUnsafe(max)
  let size = 0
  for (let read = -1; read !== 0 && size < max; size += read) read = readSync(handle, buffer, size, max - size, size)
  return buffer.subarray(0, size)
}

function decoded(bytes: Uint8Array, called: string): string {
  try {
    return exact.decode(bytes)
  } catch {
    throw new Error(`${called} is not UTF-8`)
  }
}

import type { Stats } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { openFlags } from './open-folder.ts'
import type { Opened } from './workspace.ts'

/** How many bytes at the start decide whether a file is text. */
const SNIFF_BYTES = 8_192

/** Opens a regular file. Folders, pipes, devices, and links that were put there in the meantime are refused. */
export async function openFile(opened: Opened): Promise<OpenFile> {
  if (opened.kind === 'absent') throw new Error(`The file ${opened.shown} does not exist.`)
  if (opened.kind === 'directory') throw new Error(`${opened.shown} is a folder. Use list_dir.`)
  if (opened.kind === 'other') throw new Error(`${opened.shown} is not a regular file (a pipe, a device or a socket).`)
  const handle = await open(opened.directory.at(opened.name), openFlags.file)
  try {
    const stats = await handle.stat()
    if (!stats.isFile()) throw new Error(`${opened.shown} is not a regular file (a pipe, a device or a socket).`)
    await opened.directory.check()
    return { handle, stats }
  } catch (error) {
    await handle.close()
    throw error
  }
}

type OpenFile = { readonly handle: FileHandle; readonly stats: Stats }

/** Identifies a version of a file without reading it. */
export function markOf({ dev, ino, size, mtimeMs, ctimeMs }: Stats): string {
  return [dev, ino, size, mtimeMs, ctimeMs].join(':')
}

/** All bytes of a file, or undefined if it is larger than `max`, also if it grows while it is read. */
export async function readAll(handle: FileHandle, max: number): Promise<Buffer | undefined> {
  const pieces: Buffer[] = []
  let total = 0
  for (;;) {
    const buffer = Buffer.allocUnsafe(Math.min(1_048_576, max + 1 - total))
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, total)
    if (bytesRead === 0) return Buffer.concat(pieces, total)
    pieces.push(buffer.subarray(0, bytesRead))
    total += bytesRead
    if (total > max) return undefined
  }
}

/** A file with a NUL byte is binary, by the usual convention. */
export function isBinary(start: Uint8Array): boolean {
  return start.subarray(0, SNIFF_BYTES).includes(0)
}

/** The text of a file with its byte order mark, or undefined if it is not valid UTF-8 and could not be written back. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return exact.decode(bytes)
  } catch {
    return undefined
  }
}

const exact = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

import { sessionCorrupt } from './store.ts'

// File access for the file store. No function follows a symbolic link out of the folder of the store, blocks on a pipe, or
// creates a file that other users can read.

const FILE_MODE = 0o600
const FOLDER_MODE = 0o700

export function createFolder(path: string): void {
  fs().mkdirSync(path, { recursive: true, mode: FOLDER_MODE })
}

/** The names in a folder; undefined if there is no such folder. Throws if it is a link or a file. */
export function namesIn(id: string, path: string): readonly string[] | undefined {
  const found = fs().lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return undefined
  if (!found.isDirectory()) throw sessionCorrupt(id, `${path} is not a folder`)
  try {
    return fs().readdirSync(path)
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

/** Creates a file and opens it for appending. Returns undefined if it exists. */
export function createFile(path: string): number | undefined {
  const { O_APPEND, O_CREAT, O_EXCL, O_RDWR } = fs().constants
  try {
    return fs().openSync(path, O_RDWR | O_APPEND | O_CREAT | O_EXCL | safeFlags(), FILE_MODE)
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return undefined
    throw error
  }
}

/** The same, with its text in it from the start if the file system has hard links. */
export function createFileWith(
  path: string,
  text: string,
  options: { readonly temporary: string },
): number | undefined {
  const file = createFile(options.temporary)
  if (file === undefined) throw new Error(`${options.temporary} exists already`)
  try {
    writeAll(file, text)
    fs().linkSync(options.temporary, path)
    return file
  } catch (error) {
    fs().closeSync(file)
    if (codeOf(error) === 'EEXIST') return undefined
    if (!['EPERM', 'ENOTSUP', 'ENOSYS', 'EMLINK'].includes(String(codeOf(error)))) throw error
  } finally {
    fs().rmSync(options.temporary, { force: true })
  }
  const empty = createFile(path) // a file system without hard links
  if (empty !== undefined) writeAll(empty, text)
  return empty
}

export function openForAppend(id: string, path: string): number {
  const { O_APPEND, O_RDWR } = fs().constants
  return openFile(id, path, O_RDWR | O_APPEND)
}

/** Undefined if there is no such file. */
export function openForRead(id: string, path: string): number | undefined {
  try {
    return openFile(id, path, fs().constants.O_RDONLY)
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

/** A part of a file. Default: all of it. */
export type Range = { readonly from?: number; readonly limit?: number }

/** The content of a file; undefined if there is no such file. */
export function readFile(id: string, path: string, range: Range = {}): Buffer | undefined {
  try {
    return readExisting(id, path, range)
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

/** The same for a file that must exist. */
export function readExisting(id: string, path: string, { from = 0, limit = Infinity }: Range = {}): Buffer {
  const file = openFile(id, path, fs().constants.O_RDONLY)
  try {
    if (from === 0 && limit === Infinity) return fs().readFileSync(file)
    if (fs().fstatSync(file).size < from) throw sessionCorrupt(id, `${path} is too short`)
    return readRange(file, { from, limit })
  } finally {
    fs().closeSync(file)
  }
}

/** A part of an open file. Empty if it is behind the end. */
export function readRange(file: number, { from, limit }: Required<Range>): Buffer {
  const size = fs().fstatSync(file).size - from
  const bytes = Buffer.alloc(Math.max(0, Math.min(size, limit)))
  let read = 0
  for (let last = -1; last !== 0 && read < bytes.length; read += last)
    last = fs().readSync(file, bytes, read, bytes.length - read, from + read)
  return bytes.subarray(0, read)
}

export function writeAll(file: number, text: string | Buffer): number {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text
  let written = 0
  while (written < bytes.length) written += fs().writeSync(file, bytes, written) // a disk that is nearly full writes a part of it
  return bytes.length
}

/** Replaces a file atomically. */
export function replaceFile(
  path: string,
  text: string | Buffer,
  options: { readonly temporary: string; readonly sync: boolean },
): void {
  fs().rmSync(options.temporary, { force: true }) // left by a process that died here
  const file = createFile(options.temporary)
  if (file === undefined) throw new Error(`${options.temporary} exists already`)
  try {
    writeAll(file, text)
    if (options.sync) fs().fsyncSync(file)
  } finally {
    fs().closeSync(file)
  }
  fs().renameSync(options.temporary, path)
}

/** Makes new names in a folder survive a power loss. */
export function syncFolder(path: string): void {
  const folder = fs().openSync(path, 'r')
  try {
    fs().fsyncSync(folder)
  } finally {
    fs().closeSync(folder)
  }
}

export function isMissing(error: unknown): boolean {
  return codeOf(error) === 'ENOENT'
}

function openFile(id: string, path: string, flags: number): number {
  let file: number
  try {
    file = fs().openSync(path, flags | safeFlags())
  } catch (error) {
    if (codeOf(error) === 'ELOOP') throw sessionCorrupt(id, `${path} is a symbolic link`)
    throw error
  }
  if (fs().fstatSync(file).isFile()) return file
  fs().closeSync(file)
  throw sessionCorrupt(id, `${path} is not a file`)
}

/** Do not follow a link, and do not wait for the other end of a pipe. */
function safeFlags(): number {
  const { O_NOFOLLOW, O_NONBLOCK } = fs().constants as { readonly O_NOFOLLOW?: number; readonly O_NONBLOCK?: number }
  return (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0)
}

function codeOf(error: unknown): unknown {
  return (error as NodeJS.ErrnoException | undefined)?.code
}

function fs(): typeof import('node:fs') {
  return process.getBuiltinModule('node:fs')
}

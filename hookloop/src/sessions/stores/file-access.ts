import { sessionCorrupt } from './store.ts'

// The few things that are done with files here, so that each is done with care: nothing follows a link out of the store's
// folder, waits for a pipe that somebody put there, or is readable for others.

const FILE_MODE = 0o600
const FOLDER_MODE = 0o700

export function makeFolder(path: string): void {
  fs().mkdirSync(path, { recursive: true, mode: FOLDER_MODE })
}

/** The names in a folder, or nothing if there is no such folder. What is in its place must not be a link. */
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

/** Opens a file that is not there yet, for appending. Nothing if it is there. */
export function createFile(path: string): number | undefined {
  const { O_APPEND, O_CREAT, O_EXCL, O_RDWR } = fs().constants
  try {
    return fs().openSync(path, O_RDWR | O_APPEND | O_CREAT | O_EXCL | careful(), FILE_MODE)
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return undefined
    throw error
  }
}

/** The same with a text in it from the first moment on, where the file system can do that. */
export function createWhole(path: string, text: string, options: { readonly temporary: string }): number | undefined {
  const file = createFile(options.temporary)
  if (file === undefined) throw new Error(`${options.temporary} is in the way`)
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
  const empty = createFile(path) // a file system without links
  if (empty !== undefined) writeAll(empty, text)
  return empty
}

export function openForAppend(id: string, path: string): number {
  const { O_APPEND, O_RDWR } = fs().constants
  return openPlain(id, path, O_RDWR | O_APPEND)
}

/** What is in a file, at most as much as is asked for; nothing if there is no such file. */
export function readFile(id: string, path: string, limit = Infinity): Buffer | undefined {
  try {
    return readExisting(id, path, limit)
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

/** The same of a file that must be there. */
export function readExisting(id: string, path: string, limit = Infinity): Buffer {
  const file = openPlain(id, path, fs().constants.O_RDONLY)
  try {
    if (limit === Infinity) return fs().readFileSync(file)
    const bytes = Buffer.alloc(limit)
    return bytes.subarray(0, fs().readSync(file, bytes, 0, limit, 0))
  } finally {
    fs().closeSync(file)
  }
}

export function writeAll(file: number, text: string): number {
  const bytes = Buffer.from(text)
  let written = 0
  while (written < bytes.length) written += fs().writeSync(file, bytes, written) // a full disk takes a part of it
  return bytes.length
}

/** Puts a file in its place with all that is in it, or not at all. */
export function replaceFile(
  path: string,
  text: string,
  options: { readonly temporary: string; readonly sync: boolean },
): void {
  fs().rmSync(options.temporary, { force: true }) // of somebody who died at this point
  const file = createFile(options.temporary)
  if (file === undefined) throw new Error(`${options.temporary} is in the way`)
  try {
    writeAll(file, text)
    if (options.sync) fs().fsyncSync(file)
  } finally {
    fs().closeSync(file)
  }
  fs().renameSync(options.temporary, path)
}

/** Has a folder remember its files even if the machine loses power. */
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

function openPlain(id: string, path: string, flags: number): number {
  let file: number
  try {
    file = fs().openSync(path, flags | careful())
  } catch (error) {
    if (codeOf(error) === 'ELOOP') throw sessionCorrupt(id, `${path} is a link`)
    throw error
  }
  if (fs().fstatSync(file).isFile()) return file
  fs().closeSync(file)
  throw sessionCorrupt(id, `${path} is not a file`)
}

/** Not through a link, and without waiting for the other end of a pipe. */
function careful(): number {
  const { O_NOFOLLOW, O_NONBLOCK } = fs().constants as { readonly O_NOFOLLOW?: number; readonly O_NONBLOCK?: number }
  return (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0)
}

function codeOf(error: unknown): unknown {
  return (error as NodeJS.ErrnoException | undefined)?.code
}

function fs(): typeof import('node:fs') {
  return process.getBuiltinModule('node:fs')
}

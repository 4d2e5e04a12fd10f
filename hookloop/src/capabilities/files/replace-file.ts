import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { link, lstat, mkdir, open, rename, unlink, type FileHandle } from 'node:fs/promises'
import type { HeldDirectory } from './held-directory.ts'
import { markOf, type Owner } from './reading.ts'

/** What a file was before: it is replaced by one that has the same mode, and the same owner where that is possible. */
export type Before = { readonly mode: number; readonly owner: Owner; readonly mark: string }

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants

/**
 * Puts a whole file in place, or nothing: a new file is written beside it, flushed to the disk, and takes its name in one
 * step. Whoever looks, or loses power, finds the old content or the new one. Without `before` the name must be free.
 */
export async function replaceFile(
  directory: HeldDirectory,
  name: string,
  { content, before, signal }: { content: Uint8Array; before: Before | undefined; signal: AbortSignal },
): Promise<{ readonly mtimeMs: number }> {
  await directory.check()
  const temporary = `.hookloop-${randomBytes(9).toString('hex')}.tmp`
  const handle = await open(directory.at(temporary), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, before ? 0o600 : 0o666)
  let placed = false
  try {
    const { mtimeMs } = await fill(handle, content, before)
    signal.throwIfAborted()
    await directory.check() // the last look before it counts
    if (before === undefined) await take(directory, temporary, name)
    else {
      await checkUnchanged(directory, name, before)
      await rename(directory.at(temporary), directory.at(name))
      placed = true
    }
    await flush(directory)
    return { mtimeMs }
  } finally {
    if (!placed) await unlink(directory.at(temporary)).catch(() => undefined)
  }
}

/** Between reading a file and replacing it somebody may have saved it. What is left of that gap is the next call. */
async function checkUnchanged(directory: HeldDirectory, name: string, { mark }: Before): Promise<void> {
  if (markOf(await lstat(directory.at(name))) === mark) return
  throw new Error('The file was changed by somebody else meanwhile. Read it again. Nothing was written.')
}

/** Makes the folders that are missing, one in the other, and gives the last. The first is not closed. */
export async function makeFolders(directory: HeldDirectory, names: readonly string[]): Promise<HeldDirectory> {
  let current = directory
  for (const name of names) {
    await mkdir(current.at(name)).catch((error: unknown) => {
      if (!hasCode(error, 'EEXIST')) throw error // somebody was faster; if it is no folder, opening it fails
    })
    const child = await current.child(name)
    await flush(current)
    if (current !== directory) await current.close()
    current = child
  }
  return current
}

async function fill(
  handle: FileHandle,
  content: Uint8Array,
  before: Before | undefined,
): Promise<{ readonly mtimeMs: number }> {
  try {
    await handle.writeFile(content)
    if (before !== undefined) {
      const { uid, gid } = before.owner
      const own = await handle.stat()
      // Only root may give files away. For everybody else the file stays theirs.
      if (own.uid !== uid || own.gid !== gid) await handle.chown(uid, gid).catch(() => undefined)
      await handle.chmod(before.mode & 0o777)
    }
    await handle.sync()
    return await handle.stat()
  } finally {
    await handle.close()
  }
}

/** Gives a file a name that must be free. A rename would take it from somebody else. */
async function take(directory: HeldDirectory, temporary: string, name: string): Promise<void> {
  try {
    await link(directory.at(temporary), directory.at(name))
  } catch (error) {
    if (hasCode(error, 'EEXIST')) throw taken(error)
    if (!hasCode(error, 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK')) throw error
    // A file system without links: as near as it gets.
    const free = await lstat(directory.at(name)).then(
      () => false,
      (problem: unknown) => hasCode(problem, 'ENOENT'),
    )
    if (!free) throw taken(error)
    await rename(directory.at(temporary), directory.at(name))
  }
}

function taken(cause: unknown): Error {
  return new Error('A file of that name was made meanwhile. Nothing was written.', { cause })
}

/** The name itself must be on the disk, too. Some systems cannot be asked for that. */
async function flush(directory: HeldDirectory): Promise<void> {
  await directory.handle.sync().catch((error: unknown) => {
    if (!hasCode(error, 'EINVAL', 'ENOTSUP', 'EPERM', 'EISDIR', 'EBADF')) throw error
  })
}

function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return codes.includes((error as NodeJS.ErrnoException).code ?? '')
}

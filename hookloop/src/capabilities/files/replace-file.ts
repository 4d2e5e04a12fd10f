import { randomBytes } from 'node:crypto'
import { constants, type Stats } from 'node:fs'
import { link, lstat, mkdir, open, rename, unlink, type FileHandle } from 'node:fs/promises'
import type { OpenFolder } from './open-folder.ts'
import { markOf } from './open-file.ts'

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants

/**
 * Replaces or creates a file atomically: a temporary file in the same folder is written, flushed to disk and renamed. Readers, and a
 * machine that lost power, find the old content or the new one. The new file gets the mode and, where possible, the owner of the
 * one `before`. Without `before` the name must be free.
 */
export async function replaceFile(
  directory: OpenFolder,
  name: string,
  { content, before, signal }: { content: Uint8Array; before: Stats | undefined; signal: AbortSignal },
): Promise<void> {
  await directory.check()
  const temporary = `.hookloop-${randomBytes(9).toString('hex')}.tmp`
  const handle = await open(directory.at(temporary), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, before ? 0o600 : 0o666)
  let isRenamed = false
  try {
    await fill(handle, content, before)
    signal.throwIfAborted()
    await directory.check() // the last check before the rename
    if (before === undefined) await linkTo(directory, temporary, name)
    else {
      await checkUnchanged(directory, name, before)
      await rename(directory.at(temporary), directory.at(name))
      isRenamed = true
    }
    await flush(directory)
  } finally {
    if (!isRenamed) await unlink(directory.at(temporary)).catch(() => undefined)
  }
}

/** Another process may have saved the file since it was read. Only the next call is left unprotected. */
async function checkUnchanged(directory: OpenFolder, name: string, before: Stats): Promise<void> {
  if (markOf(await lstat(directory.at(name))) === markOf(before)) return
  throw new Error('The file was changed by another process in the meantime. Read it again. Nothing was written.')
}

/** Creates nested folders and returns the last one. `directory` itself is not closed. */
export async function makeFolders(directory: OpenFolder, names: readonly string[]): Promise<OpenFolder> {
  let current = directory
  for (const name of names) {
    await mkdir(current.at(name)).catch((error: unknown) => {
      if (!hasCode(error, 'EEXIST')) throw error // created in the meantime; if it is not a folder, opening it fails
    })
    const child = await current.child(name)
    await flush(current)
    if (current !== directory) await current.close()
    current = child
  }
  return current
}

async function fill(handle: FileHandle, content: Uint8Array, before: Stats | undefined): Promise<void> {
  try {
    await handle.writeFile(content)
    if (before !== undefined) {
      const { uid, gid } = before
      const own = await handle.stat()
      // Only root may change the owner.
      if (own.uid !== uid || own.gid !== gid) await handle.chown(uid, gid).catch(() => undefined)
      await handle.chmod(before.mode & 0o777)
    }
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Gives the file a name that must be free: a rename would replace another file. */
async function linkTo(directory: OpenFolder, temporary: string, name: string): Promise<void> {
  try {
    await link(directory.at(temporary), directory.at(name))
  } catch (error) {
    if (hasCode(error, 'EEXIST')) throw taken(error)
    if (!hasCode(error, 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK')) throw error
    // A file system without hard links: check, then rename.
    const free = await lstat(directory.at(name)).then(
      () => false,
      (problem: unknown) => hasCode(problem, 'ENOENT'),
    )
    if (!free) throw taken(error)
    await rename(directory.at(temporary), directory.at(name))
  }
}

function taken(cause: unknown): Error {
  return new Error('A file of that name was created in the meantime. Nothing was written.', { cause })
}

/** Flushes the folder entry. Some file systems do not support that. */
async function flush(directory: OpenFolder): Promise<void> {
  await directory.handle.sync().catch((error: unknown) => {
    if (!hasCode(error, 'EINVAL', 'ENOTSUP', 'EPERM', 'EISDIR', 'EBADF')) throw error
  })
}

function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return codes.includes((error as NodeJS.ErrnoException).code ?? '')
}

import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { isAbsolute, join, resolve } from 'node:path'

/** Why a command cannot be started, in words, or undefined if it can be found: what `spawn` says about it is one code for all. */
export function problemWith(
  command: string,
  { cwd, path = '/bin:/usr/bin' }: { readonly cwd: string; readonly path: string | undefined },
): string | undefined {
  if (!isFolder(cwd)) return `The working directory ${JSON.stringify(cwd)} does not exist or is no directory.`
  const shown = JSON.stringify(command)
  if (command === '') return 'There is no command to run.'
  if (command.includes('/')) {
    const file = resolve(cwd, command)
    if (isExecutable(file)) return undefined
    return isThere(file) ? `${shown} is not executable.` : `${shown} does not exist.`
  }
  const folders = path.split(':').map((folder) => (isAbsolute(folder) ? folder : join(cwd, folder)))
  if (folders.some((folder) => isExecutable(join(folder, command)))) return undefined
  return `${shown} was not found in PATH.`
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

function isThere(path: string): boolean {
  try {
    statSync(path)
    return true
  } catch {
    return false
  }
}

function isExecutable(path: string): boolean {
  if (!existsSync(path)) return false // as in most folders, and an error takes ten times as long
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { isAbsolute, join, resolve } from 'node:path'

/** Why a command cannot be started, or undefined if it can: `spawn` reports the same error code for every cause. */
export function executableProblem(
  command: string,
  { cwd, path = '/bin:/usr/bin' }: { readonly cwd: string; readonly path: string | undefined },
): string | undefined {
  if (!isFolder(cwd)) return `The working directory ${JSON.stringify(cwd)} does not exist or is not a directory.`
  const shown = JSON.stringify(command)
  if (command === '') return 'There is no command to run.'
  if (command.includes('/')) {
    const file = resolve(cwd, command)
    if (isExecutable(file)) return undefined
    return existsSync(file) ? `${shown} is not executable.` : `${shown} does not exist.`
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

function isExecutable(path: string): boolean {
  if (!existsSync(path)) return false // the usual case, and ten times faster than an error
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

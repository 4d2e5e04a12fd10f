import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { invalidOption } from '../../values/check-options.ts'

/** Throws unless an option names a folder, or a file, that exists. What it should contain would otherwise be missing silently. */
export function checkExists(where: string, option: string, path: string, kind: 'file' | 'folder' | 'any'): void {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) throw invalidOption(where, `"${option}": there is no ${resolve(path)}`, path)
  if (kind === 'any' || found.isDirectory() === (kind === 'folder')) return
  throw invalidOption(where, `"${option}": ${resolve(path)} is not a ${kind}`, path)
}

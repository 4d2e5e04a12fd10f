import { resolve } from 'node:path'
import { locateHooks, type HookLocation } from '../../hook-files/claude/load/hook-location.ts'
import { UsageError } from '../usage-error.ts'

/** What `--dir` stands for: a project, a plugin, or one file of either. Unless told, the project that the command is run in. */
export function placeOf(dir: string | undefined): HookLocation {
  if (dir === undefined) return { settings: { dir: resolve('.') }, isProject: true }
  const named = locateHooks(resolve(dir))
  if (typeof named === 'string') throw new UsageError(`--dir: ${named}`)
  return named
}

import { resolve } from 'node:path'
import { locateHooks, type HookLocation } from '../../hook-files/claude/load/hook-location.ts'
import { UsageError } from '../usage-error.ts'

/** What `--dir` names: a project, a plugin, or one file of either. Without it, the project in the current folder. */
export function resolveDir(dir: string | undefined): HookLocation {
  if (dir === undefined) return { settings: { dir: resolve('.') }, isProject: true }
  const location = locateHooks(resolve(dir))
  if (typeof location === 'string') throw new UsageError(`--dir: ${location}`)
  return location
}

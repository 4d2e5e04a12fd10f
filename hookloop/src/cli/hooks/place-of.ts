import { resolve } from 'node:path'
import { placeNamed, type NamedPlace } from '../../hook-files/claude/named-place.ts'
import { UsageError } from '../usage-error.ts'

/** What `--dir` stands for: a project, a plugin, or one file of either. Unless told, the project that the command is run in. */
export function placeOf(dir: string | undefined): NamedPlace {
  if (dir === undefined) return { settings: { dir: resolve('.') }, isProject: true }
  const named = placeNamed(resolve(dir))
  if (typeof named === 'string') throw new UsageError(`--dir: ${named}`)
  return named
}

import { join } from 'node:path'
import { messageOf } from '../../errors.ts'
import type { Lookup } from './open-folder.ts'
import type { PathRules } from './path-rules.ts'
import { resolvePath, type Resolved } from './resolve-path.ts'
import { locate, PathRefused, showName, showPlace, type Place, type Root } from './paths.ts'

/** The roots and path rules that the tools and guards of one `files()` share. It has no state of a run. */
export type Workspace = {
  readonly roots: readonly Root[]
  readonly lookup: Lookup
  readonly hidden: PathRules
  readonly protectedBy: PathRules
  readonly askedAbout: PathRules
  readonly allowed: PathRules
}

/** A path as given, and where it leads. */
export type Opened = Resolved & {
  /** The path as given, for messages. */
  readonly shown: string
  /** The absolute real path. */
  readonly realPath: string
  readonly asGiven: Place
}

/** Resolves a path, refuses hidden ones, and holds its folder open while `use` runs. */
export async function withPath<T>(workspace: Workspace, path: string, use: (opened: Opened) => Promise<T>): Promise<T> {
  const asGiven = locate(path, workspace.roots)
  const shown = showPlace(asGiven, workspace.roots)
  refuseHidden(workspace, asGiven.names, shown)
  try {
    const check = (names: readonly string[]): void => refuseHidden(workspace, names, shown)
    const resolved = await resolvePath(asGiven, workspace.roots, { lookup: workspace.lookup, shown: path, check })
    try {
      return await use({ ...resolved, shown, asGiven, realPath: join(resolved.root.real, ...resolved.names) })
    } finally {
      await resolved.directory.close()
    }
  } catch (error) {
    throw readableError(error, shown)
  }
}

/** Judges writing to a path by the rules, which apply to the path as given and to the real path. */
export function judgeWrite(
  workspace: Workspace,
  { asGiven, names, shown }: Pick<Opened, 'asGiven' | 'names' | 'shown'>,
): { readonly verdict: 'block' | 'ask'; readonly message: string } | undefined {
  let asked: string | undefined
  for (const path of [asGiven.names, names]) {
    if (workspace.allowed(path) !== undefined) continue
    if (workspace.protectedBy(path) !== undefined) {
      const message = `${shown} is protected: it can be read but not written. Leave it as it is.`
      return { verdict: 'block', message }
    }
    asked ??= workspace.askedAbout(path)
  }
  if (asked === undefined) return undefined
  return { verdict: 'ask', message: `Write to ${shown}? Its content may be run later.` }
}

/** The message names no rule, and is the same for every tool and whether or not the path exists. */
function refuseHidden({ hidden }: Workspace, names: readonly string[], shown: string): void {
  if (hidden(names) !== undefined) throw new PathRefused(`${shown} is not accessible. Continue without it.`)
}

const problems: { readonly [code: string]: string } = {
  EACCES: 'permission denied',
  EPERM: 'not permitted',
  EROFS: 'the file system is read-only',
  ENOSPC: 'no space is left on the disk',
  EDQUOT: 'the disk quota is used up',
  EFBIG: 'the file is too large for this file system',
  EIO: 'the disk failed',
  EMFILE: 'too many files are open',
  ENFILE: 'too many files are open',
  ENAMETOOLONG: 'the name is too long',
  ENOENT: 'it was removed in the meantime',
  ELOOP: 'it was replaced by a link in the meantime',
  ENXIO: 'it is not a regular file',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of the path is not a folder',
  ETXTBSY: 'it is a program that is running',
}

/** A system error with the path that the model knows, instead of the internal one. */
function readableError(error: unknown, shown: string): unknown {
  const { code } = error as NodeJS.ErrnoException
  if (code === undefined || error instanceof PathRefused || !('syscall' in (error as object))) return error
  const known = problems[code]
  return new Error(`${showName(shown)}: ${known ?? messageOf(error).replace(/^(\w+: [^,]*).*$/s, '$1')} (${code}).`, {
    cause: error,
  })
}

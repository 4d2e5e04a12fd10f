import { join } from 'node:path'
import { messageOf } from '../../errors.ts'
import type { Lookup } from './held-directory.ts'
import { showName } from './names.ts'
import type { PathRules } from './path-rules.ts'
import { resolveBeneath, type Resolved } from './resolve-beneath.ts'
import { locate, PathRefused, showPlace, type Place, type Root } from './roots.ts'

/** What the tools and guards of one `files()` share: where they may go, and by which rules. Nothing of a run. */
export type Workspace = {
  readonly roots: readonly Root[]
  readonly lookup: Lookup
  readonly hidden: PathRules
  readonly protectedBy: PathRules
  readonly askedAbout: PathRules
  readonly allowed: PathRules
}

/** A path as it was given, and where it really leads. */
export type Opened = Resolved & {
  /** How it is called in words: the path as it was given, made short. */
  readonly shown: string
  /** The real path, absolute: what is remembered of a file goes by it. */
  readonly realPath: string
  readonly asGiven: Place
}

/** Resolves a path, makes sure that it is not hidden, and holds its folder open while `use` runs. */
export async function withPath<T>(workspace: Workspace, path: string, use: (opened: Opened) => Promise<T>): Promise<T> {
  const asGiven = locate(path, workspace.roots)
  const shown = showPlace(asGiven, workspace.roots)
  refuseHidden(workspace, asGiven.names, shown)
  try {
    const resolved = await resolveBeneath(asGiven, workspace.roots, { lookup: workspace.lookup, shown: path })
    try {
      refuseHidden(workspace, resolved.names, shown)
      return await use({ ...resolved, shown, asGiven, realPath: join(resolved.root.real, ...resolved.names) })
    } finally {
      await resolved.directory.close()
    }
  } catch (error) {
    throw inWords(error, shown)
  }
}

/** What the rules say about writing to a path: both the one that was given and the one it leads to count. */
export function judgeWrite(
  workspace: Workspace,
  { asGiven, names, shown }: Pick<Opened, 'asGiven' | 'names' | 'shown'>,
): { readonly verdict: 'block' | 'ask'; readonly message: string } | undefined {
  let asked: string | undefined
  for (const path of [asGiven.names, names]) {
    if (workspace.allowed(path) !== undefined) continue
    const rule = workspace.protectedBy(path)
    if (rule !== undefined) {
      const message = `${shown} is protected by the rule "${rule}": it may be read, not written. Leave it as it is.`
      return { verdict: 'block', message }
    }
    asked ??= workspace.askedAbout(path)
  }
  if (asked === undefined) return undefined
  return { verdict: 'ask', message: `Write to ${shown}? What is in it may be run later (rule "${asked}").` }
}

function refuseHidden({ hidden }: Workspace, names: readonly string[], shown: string): void {
  const rule = hidden(names)
  if (rule !== undefined) throw new PathRefused(`${shown} is hidden by the rule "${rule}".`)
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
  ENOENT: 'it was removed meanwhile',
  ELOOP: 'it was replaced by a link meanwhile',
  ENXIO: 'it is not a regular file',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of the path is not a folder',
  ETXTBSY: 'it is a program that is running',
}

/** What the system said, without the path it was said about: that is ours, and tells a model nothing. */
function inWords(error: unknown, shown: string): unknown {
  const { code } = error as NodeJS.ErrnoException
  if (code === undefined || error instanceof PathRefused || !('syscall' in (error as object))) return error
  const known = problems[code]
  return new Error(`${showName(shown)}: ${known ?? messageOf(error).replace(/^(\w+: [^,]*).*$/s, '$1')} (${code}).`, {
    cause: error,
  })
}

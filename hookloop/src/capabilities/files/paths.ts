import { realpathSync, statSync } from 'node:fs'
import { isAbsolute, relative, resolve, sep } from 'node:path'
import { invalidOption } from '../../values/check-options.ts'
import { messageOf } from '../../errors.ts'

/** A root folder: the path as configured, and its real path. */
export type Root = { readonly given: string; readonly real: string }

/** A path below a root, before links are resolved. */
export type Place = { readonly root: Root; readonly names: readonly string[] }

/** A path that must not be used. The message is the same whether or not it exists, so it reveals nothing outside the roots. */
export class PathRefused extends Error {}

/** Virtual file systems, of which some files are endless or contain secrets. */
const virtualFolders = ['/proc', '/sys', '/dev']

const MAX_PATH = 4_096

export function toRoots(given: readonly string[]): readonly Root[] {
  return given.map((root) => {
    if (typeof root !== 'string' || root === '') throw invalidOption('files', 'a root must be a path', root)
    const path = resolve(root)
    let real: string
    try {
      real = realpathSync(path)
      if (!statSync(real).isDirectory()) throw new Error('it is not a folder')
    } catch (error) {
      throw invalidOption('files', `the root "${root}" cannot be used: ${messageOf(error)}`, root)
    }
    return Object.freeze({ given: path, real })
  })
}

/** The place of a path that a model gave. Relative paths are relative to the first root. */
export function locate(path: string, roots: readonly Root[]): Place {
  if (path === '') throw new PathRefused('The path is empty.')
  if (path.length > MAX_PATH) throw new PathRefused('The path is too long.')
  if (path.includes('\0')) throw new PathRefused('A path cannot contain a NUL character.')
  if (/^~(?:\/|$)/.test(path))
    throw new PathRefused(`"~" is not expanded here. Give a path relative to ${whereTo(roots)}.`)
  if (/^[a-z]+:\/\//i.test(path) || /^file:/i.test(path)) {
    throw new PathRefused(`${showName(path)} is a URL. Give a path relative to ${whereTo(roots)}.`)
  }
  const place = placeOf(resolve(roots[0]!.given, path), roots)
  if (place === undefined) throw outside(path, roots)
  return place
}

/** The place of an absolute path, if it is below a root. */
export function placeOf(absolute: string, roots: readonly Root[]): Place | undefined {
  for (const root of roots) {
    for (const base of new Set([root.given, root.real])) {
      const below = relative(base, absolute)
      if (below === '..' || below.startsWith(`..${sep}`) || isAbsolute(below)) continue
      return { root, names: below === '' ? [] : below.split(sep) }
    }
  }
  return undefined
}

export function outside(path: string, roots: readonly Root[]): PathRefused {
  return new PathRefused(`${showName(path)} is outside of the allowed folders. Use a path in ${whereTo(roots)}.`)
}

export function isVirtual(realPath: string): boolean {
  return virtualFolders.some((folder) => realPath === folder || realPath.startsWith(`${folder}/`))
}

/** A place as text: relative to the first root, absolute in the others. */
export function showPlace({ root, names }: Place, roots: readonly Root[]): string {
  const path = names.join('/')
  if (root === roots[0]) return showName(path === '' ? '.' : path)
  return showName(path === '' ? root.given : `${root.given}/${path}`)
}

function whereTo(roots: readonly Root[]): string {
  return roots.map(({ given }) => showName(given)).join(' or ')
}

/**
 * A name in the form in which rules are compared, so that `.GIT` is `.git`: some file systems ignore case, treat composed and
 * decomposed letters as equal, skip invisible characters, or drop dots and spaces at the end. Never used to open a file.
 */
export function foldName(name: string): string {
  const folded = isPlain(name)
    ? name.toLowerCase()
    : name
        .normalize('NFKC')
        .replaceAll(/\p{Default_Ignorable_Code_Point}|\p{Cf}/gu, '')
        .toLowerCase()
        .normalize('NFKC')
  return /[. ]$/.test(folded) ? folded.replace(/(?<=[^. ])[. ]+$/, '') : folded
}

/** A name or path for display: as a JSON string if it has invisible or misleading characters. */
export function showName(name: string): string {
  // Spaces at either end, quotes, and control, invisible or direction characters.
  return /^$|^\s|\s$|["\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\uFFFD]/u.test(name) ? escaped(name) : name
}

function escaped(name: string): string {
  return JSON.stringify(name).replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}]/gu, (hidden) =>
    [...hidden.matchAll(/[^]/g)].map(([unit]) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`).join(''),
  )
}

function isPlain(name: string): boolean {
  for (let i = 0; i < name.length; i++) if (name.charCodeAt(i) > 126) return false
  return true
}

import { realpathSync, statSync } from 'node:fs'
import { isAbsolute, relative, resolve, sep } from 'node:path'
import { invalidOption } from '../../agent/check-options.ts'
import { messageOf } from '../../errors.ts'
import { showName } from './names.ts'

/** A folder that may be used: as it was given, and as it really is. */
export type Root = { readonly given: string; readonly real: string }

/** A path below a root, by name. Where it really leads is known when it is opened. */
export type Place = { readonly root: Root; readonly names: readonly string[] }

/** Says no to a path, whether or not there is anything: the words tell nothing about what lies outside. */
export class PathRefused extends Error {}

/** The file system gives these out of nothing, and some of them never end or tell secrets. */
const unreal = ['/proc', '/sys', '/dev']

const MAX_PATH = 4_096

export function toRoots(given: readonly string[]): readonly Root[] {
  return given.map((root) => {
    if (typeof root !== 'string' || root === '') throw invalidOption('files', 'a root must be a path', root)
    const path = resolve(root)
    let real: string
    try {
      real = realpathSync(path)
      if (!statSync(real).isDirectory()) throw new Error('it is no folder')
    } catch (error) {
      throw invalidOption('files', `the root "${root}" cannot be used: ${messageOf(error)}`, root)
    }
    return Object.freeze({ given: path, real })
  })
}

/** Where a path that somebody wrote is meant to be. Relative paths are relative to the first root. */
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
  return new PathRefused(`${showName(path)} is outside of what may be used. Stay in ${whereTo(roots)}.`)
}

export function isUnreal(realPath: string): boolean {
  return unreal.some((folder) => realPath === folder || realPath.startsWith(`${folder}/`))
}

/** A place as it is shown: relative to the first root, absolute in the others. */
export function showPlace({ root, names }: Place, roots: readonly Root[]): string {
  const path = names.join('/')
  if (root === roots[0]) return showName(path === '' ? '.' : path)
  return showName(path === '' ? root.given : `${root.given}/${path}`)
}

function whereTo(roots: readonly Root[]): string {
  return roots.map(({ given }) => showName(given)).join(' or ')
}

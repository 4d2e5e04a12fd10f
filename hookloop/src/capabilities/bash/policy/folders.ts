import { posix } from 'node:path'
import type { ParsedWord } from './understand-word.ts'

/** A folder that is not known, or not below the working directory. */
const ELSEWHERE: readonly string[] = ['..']

const MAX_FOLDERS = 8

/** Where commands run: in the working directory, in a folder below it, or in another one. */
export function placeOf(folders: readonly string[]): 'same' | 'below' | 'elsewhere' {
  if (folders.every((folder) => folder === '.')) return 'same'
  return folders.some((folder) => folder.startsWith('..')) ? 'elsewhere' : 'below'
}

const MOVES = /^(?:cd|pushd|popd)$/

/** Whether a command changes the folder. */
export function isMove([program, ...args]: readonly ParsedWord[]): boolean {
  const name = program?.value ?? program?.loose ?? ''
  return MOVES.test(name) || (/^(?:command|builtin)$/.test(name) && args.some(({ loose }) => MOVES.test(loose)))
}

/** The folders so far, and those that such a command may enter. A folder whose name is not known is `*`. */
export function enterFolder(folders: readonly string[], words: readonly ParsedWord[], cwd?: string): readonly string[] {
  const [program, target, ...more] = words
  if (program?.value !== 'cd' || target === undefined || more.length > 0) return ELSEWHERE
  const isPattern = target.expansion?.hasGlob === true && /^\w/.test(target.expansion.prefix)
  const named = target.value ?? (isPattern ? '*' : '/')
  const path = relativePath(named, cwd) // the working directory is among the folders, because none is forgotten
  const all = new Set([...folders, ...folders.map((folder) => posix.join(folder, path).replace(/(?<=.)\/$/, ''))])
  const isUnknown = [...all].some((folder) => folder.includes('*')) && path.includes('..')
  return /^[-/~]|^$|:/.test(path) || isUnknown || all.size > MAX_FOLDERS ? ELSEWHERE : [...all]
}

/** A path below the working directory relative to it, and any other path as it is. */
export function relativePath(path: string, cwd = '/'): string {
  return cwd !== '/' && `${path}/`.startsWith(`${cwd}/`) ? `.${path.slice(cwd.length)}` : path
}

/** The folders in which a command works: `git -C x` is in another one than it is started in. */
export function workFolders(folders: readonly string[], words: readonly ParsedWord[]): readonly string[] {
  const [program, ...args] = words.map(({ value, loose }) => value ?? (loose.startsWith('-C') ? `${loose}*` : '*'))
  if (program !== 'git') return folders
  const entered = args.flatMap((word, index) =>
    word.startsWith('-C') ? [word.slice(2) || (args[index + 1] ?? '.')] : [],
  )
  return entered.length === 0 ? folders : [...folders, ...folders.map((folder) => posix.join(folder, ...entered))]
}

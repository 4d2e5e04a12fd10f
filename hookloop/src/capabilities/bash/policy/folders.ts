import { posix } from 'node:path'
import type { SyntaxNode } from 'unbash'
import type { ParsedWord } from './understand-word.ts'

/** A folder that is not known, or not below the working directory. */
export const ELSEWHERE: readonly string[] = ['..']

const MAX_FOLDERS = 8

/** Where the commands run: in the working directory, in a folder below it, or in another one. */
export type Place = 'same' | 'below' | 'elsewhere'

export function placeOf(folders: readonly string[] = ['.']): Place {
  if (folders.every((folder) => folder === '.')) return 'same'
  return folders.some((folder) => folder.startsWith('..')) ? 'elsewhere' : 'below'
}

/** All folders of two lists. */
export function everyFolder(some: readonly string[], others: readonly string[]): readonly string[] {
  if (some === others) return some
  const all = [...new Set([...some, ...others])]
  return all.length > MAX_FOLDERS ? ELSEWHERE : all
}

/** The folders after a command, if it succeeds. A folder whose name is not known is `*`. */
export function enterFolder(folders: readonly string[], words: readonly ParsedWord[]): readonly string[] {
  const [program, target, ...more] = words
  const name = program?.value ?? program?.loose ?? ''
  const isHidden = /^(?:command|builtin)$/.test(name) && words.some(({ loose }) => MOVES.test(loose))
  if (!MOVES.test(name) && !isHidden) return folders
  if (name !== 'cd' || target === undefined || more.length > 0) return ELSEWHERE
  const path = target.value ?? (target.isBelow === true ? '*' : '/')
  if (/^[-/~]|^$|:/.test(path)) return ELSEWHERE
  return folders.map((folder) => {
    const isUnknown = folder.includes('*') && path.includes('..')
    const entered = isUnknown || folder.startsWith('..') ? '..' : posix.join(folder, path).replace(/\/$/, '')
    return entered === '' ? '.' : entered
  })
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

const MOVES = /^(?:cd|pushd|popd)$/

/** Whether a construct runs in a shell of its own, so that `cd` in it has no effect after it. */
export function isApart(node: SyntaxNode): boolean {
  if (node.type === 'Pipeline') return node.commands.length > 1
  if (node.type === 'Statement') return node.background === true
  return /^(?:Subshell|CommandExpansion|ProcessSubstitution)$/.test(node.type)
}

/** Whether what is at the end of a construct may run before what is at its start. */
export function isLoop(node: SyntaxNode): boolean {
  return /^(?:For|While|ArithmeticFor|Select|Function)$/.test(node.type)
}

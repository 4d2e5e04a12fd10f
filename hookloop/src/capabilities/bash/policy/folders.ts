import { posix } from 'node:path'
import type { SyntaxNode } from 'unbash'
import type { ParsedWord } from './understand-word.ts'

/** A folder that is not known, or not below the working directory. */
const ELSEWHERE: readonly string[] = ['..']

const MAX_FOLDERS = 8

/** Where commands run: in the working directory, in a folder below it, or in another one. */
export function placeOf(folders: readonly string[]): 'same' | 'below' | 'elsewhere' {
  if (folders.every((folder) => folder === '.')) return 'same'
  return folders.some((folder) => folder.startsWith('..')) ? 'elsewhere' : 'below'
}

/** All folders of several lists. */
export function everyFolder(...lists: readonly (readonly string[])[]): readonly string[] {
  const all = [...new Set(lists.flat())]
  return all.length > MAX_FOLDERS ? ELSEWHERE : all
}

const MOVES = /^(?:cd|pushd|popd)$/

/** Whether a command changes the folder. */
export function isMove([program, ...args]: readonly ParsedWord[]): boolean {
  const name = program?.value ?? program?.loose ?? ''
  return MOVES.test(name) || (/^(?:command|builtin)$/.test(name) && args.some(({ loose }) => MOVES.test(loose)))
}

/** The folders after such a command, if it succeeds. A folder whose name is not known is `*`. */
export function enterFolder(folders: readonly string[], words: readonly ParsedWord[]): readonly string[] {
  const [program, target, ...more] = words
  if (program?.value !== 'cd' || target === undefined || more.length > 0) return ELSEWHERE
  const isPattern = target.expansion?.hasGlob === true && /^\w/.test(target.expansion.prefix)
  const path = target.value ?? (isPattern ? '*' : '/')
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

/** Whether a construct runs in a shell of its own, so that `cd` in it has no effect after it. */
export function isApart(node: SyntaxNode): boolean {
  if (node.type === 'Pipeline') return node.commands.length > 1
  if (node.type === 'Statement') return node.background === true
  return /^(?:Subshell|CommandExpansion|ProcessSubstitution)$/.test(node.type)
}

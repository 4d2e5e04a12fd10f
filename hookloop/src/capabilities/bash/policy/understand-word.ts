import type { Assignment, Word } from 'unbash'
import { completeWord, type Expansion } from './literal-word.ts'

/** A word of a command. */
export type ParsedWord = {
  /** The word after quote removal; null if bash would expand it. */
  readonly value: string | null
  /** The word without quotes and with its expansions as written. Used to find blocked commands. */
  readonly loose: string
  /** How bash expands it, if only to files. */
  readonly expansion?: Expansion
}

/** A word is understood if both readings agree on it. After some builtins the parser returns assignments. */
export function toWord(node: Word | Assignment): ParsedWord {
  const { value, text: loose, expansion } = completeWord(node.text) ?? { value: null, text: node.text }
  if (node.type === 'Word' && loose !== node.value) return { value: null, loose: node.value }
  return { value, loose, ...(expansion !== undefined && { expansion }) }
}

export function isUnderstood({ value, expansion }: ParsedWord): boolean {
  return value !== null || expansion !== undefined
}

export function textOf({ value, loose }: ParsedWord): string {
  return value ?? loose
}

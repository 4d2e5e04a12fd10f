import { development } from './grammars/development.ts'
import { files } from './grammars/files.ts'
import { git } from './grammars/git.ts'
import { wrappers } from './grammars/wrappers.ts'

/** The entries of a text with grammars. Each has the names of programs with the same words. */
export function entriesIn(text: string): readonly (readonly string[])[] {
  const lines = text.trim().replace(/\n\s+/g, ' ').split('\n')
  return lines
    .map((line) => line.slice(0, line.indexOf(': ')).split(', '))
    .filter(([name]) => name?.startsWith('@') === false)
}

/** The names of all grammars, by entry. */
export const grammarEntries: readonly (readonly string[])[] = [files, wrappers, git, development].flatMap(entriesIn)

/** The names of all grammars. */
export const grammarNames: readonly string[] = grammarEntries.flat()

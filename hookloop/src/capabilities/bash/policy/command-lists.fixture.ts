import { readFileSync } from 'node:fs'
import type { CommandRules } from './rules.ts'

/** Commands of a file beside this one, under a title and with rules of their own. */
type CommandList = { readonly title: string; readonly rules?: CommandRules; readonly commands: readonly string[] }

/**
 * The lists of a file: `# title`, perhaps `## rules`, and a command per line, as `hookloop policy bash` reads them: a line that
 * starts with a quote is a JSON string.
 */
export function commandLists(file: string): readonly CommandList[] {
  const text = readFileSync(new URL(file, import.meta.url), 'utf8')
  return text.split(/^(?=# )/m).map((list) => {
    const lines = list.split('\n').filter((line) => line !== '')
    const [title, rules] = ['# ', '## '].map(
      (mark) => lines[0]?.startsWith(mark) === true && lines.shift()!.slice(mark.length),
    )
    return {
      title: title || '',
      ...(rules !== undefined && rules !== false && { rules: JSON.parse(rules) as CommandRules }),
      commands: lines.map((line) => (line.startsWith('"') ? (JSON.parse(line) as string) : line)),
    }
  })
}

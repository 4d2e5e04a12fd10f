import { join, relative, resolve } from 'node:path'
import picomatch from 'picomatch'
import { homeFolder } from '../../../system/files/user-folders.ts'
import { parseCommands } from '../../../capabilities/bash/policy/parse-commands.ts'
import type { JsonObject } from '../../../values/json.ts'
import { toNameTest } from '../../../core/hooks/patterns.ts'
import { stringIn } from '../../text.ts'

/**
 * Whether a handler whose `if` is a permission rule, such as `Bash(git *)` or `Edit(*.ts)`, runs for a call. If that is
 * uncertain, or the rule is invalid, it runs, and the handler decides.
 */
export function fitsRule(
  rule: string,
  { names, input, cwd }: { readonly names: readonly string[]; readonly input: JsonObject; readonly cwd: string },
): boolean {
  const [, tool, pattern] = /^\s*([\w*-]+)(?:\((.*)\))?\s*$/s.exec(rule) ?? []
  if (tool === undefined) return true
  if (!names.some(toNameTest(tool))) return false
  if (pattern === undefined || pattern === '' || pattern === '*') return true
  if (names.includes('Bash')) return fitsCommand(pattern, stringIn(input['command']))
  const path = stringIn(input['file_path'] ?? input['path'] ?? input['notebook_path'])
  if (path !== '') return fitsPath(pattern, path, cwd)
  const [first] = Object.values(input)
  return fitsText(pattern, stringIn(first))
}

function fitsCommand(pattern: string, command: string): boolean {
  const { commands, doubt } = parseCommands(command)
  if (doubt !== undefined || commands.length === 0) return true
  const hasUnknown = /\$\(|`|\$\w|\$\{/.test(command)
  const namesMore = /\s/.test(pattern.trim().replace(/[\s:]\*$/, ''))
  if (hasUnknown && namesMore) return true
  return commands.some(({ words, text: whole }) => {
    const said = words.length === 0 ? whole : words.map(({ value, loose }) => value ?? loose).join(' ')
    return fitsText(pattern, said) // without the assignments in front
  })
}

/** `*` matches anything; ` *` and `:*` at the end also match nothing, after a complete word. */
function fitsText(pattern: string, value: string): boolean {
  const open = /^(.*?)(?:\s|:)\*$/s.exec(pattern)
  if (open === null) return toNameTest(pattern)(value)
  return toNameTest(open[1]!)(value) || toNameTest(`${open[1]!} *`)(value)
}

/** A pattern with a folder is relative to the working directory; `**` in front, or a bare name, matches at any depth. */
function fitsPath(pattern: string, path: string, cwd: string): boolean {
  const target = resolve(cwd, path)
  const options = { dot: true }
  if (pattern.startsWith('//')) return picomatch.isMatch(target, pattern.slice(1), options)
  if (pattern.startsWith('~/')) return picomatch.isMatch(target, join(homeFolder(), pattern.slice(2)), options)
  if (pattern.startsWith('**/')) return picomatch.isMatch(target, pattern, options)
  const inside = relative(cwd, target)
  if (!pattern.includes('/')) return picomatch.isMatch(target.slice(target.lastIndexOf('/') + 1), pattern, options)
  return picomatch.isMatch(inside, pattern.replace(/^\.?\//, ''), options)
}

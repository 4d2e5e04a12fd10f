import { clause } from '../errors.ts'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseCommands } from '../capabilities/bash/policy/parse-commands.ts'
import { executableProblem } from '../system/processes/executable-problem.ts'
import { fillVariables } from './trust/named-files.ts'

/** Why the command of a hook could not run: a program or script that does not exist or is not executable. Nothing is run. */
export function commandProblems(
  command: string | readonly string[],
  {
    cwd,
    variables = {},
    path = process.env['PATH'],
  }: { cwd: string; variables?: Readonly<Record<string, string>>; path?: string | undefined },
): readonly string[] {
  const known = { CLAUDE_PROJECT_DIR: cwd, HOOKLOOP_PROJECT_DIR: cwd, PWD: cwd, ...variables }
  const fill = (text: string): string => fillVariables(text, known)
  const lines = typeof command === 'string' ? wordsOfCommands(fill(command)) : [command.map(fill)]
  return lines.flatMap(([program, ...args]) => {
    if (program === undefined || isExpanded(program)) return []
    const problem = shellWords.has(program) ? undefined : executableProblem(program, { cwd, path })
    if (problem !== undefined) return [clause(problem)]
    const script = interpreters.test(program) ? args.find((word) => !word.startsWith('-')) : undefined
    const isCode = args.includes('-c') || args.includes('-e') || args.includes('-m')
    if (script === undefined || isCode || isExpanded(script) || !looksLikeFile(script)) return []
    return existsSync(resolve(cwd, script)) ? [] : [`"${script}" does not exist`]
  })
}

const interpreters = /(?:^|\/)(?:bash|sh|zsh|dash|python3?|node|bun|deno|ruby|perl|php|tsx|ts-node)$/
const shellWords = new Set(
  '[ [[ { } ! : . cd echo exit export if then else elif fi for in do done while until case esac test true false set unset read exec eval source local return printf kill trap wait umask command builtin type shift function time'.split(
    ' ',
  ),
)

/** Whether the shell replaces something in a word. */
function isExpanded(word: string): boolean {
  return /[$`*?]/.test(word)
}

function looksLikeFile(word: string): boolean {
  return word.includes('/') || /\.\w{1,4}$/.test(word)
}

function wordsOfCommands(line: string): readonly (readonly string[])[] {
  return parseCommands(line).commands.map(({ words }) => words.map(({ value, loose }) => value ?? loose))
}

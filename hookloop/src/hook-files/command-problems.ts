import { existsSync } from 'node:fs'
import { isAbsolute, resolve } from 'node:path'
import { executableProblem } from '../system/processes/executable-problem.ts'

/**
 * Why a command line of a hook could not do its work, as far as that can be told without running it: a program or a script
 * that is not there, or is not executable.
 */
export function problemsOfCommand(
  command: string | readonly string[],
  {
    cwd,
    variables = {},
    path = process.env['PATH'],
  }: { cwd: string; variables?: Readonly<Record<string, string>>; path?: string | undefined },
): readonly string[] {
  const known: Readonly<Record<string, string>> = {
    CLAUDE_PROJECT_DIR: cwd,
    HOOKLOOP_PROJECT_DIR: cwd,
    PWD: cwd,
    ...variables,
  }
  const fill = (text: string): string =>
    text.replace(
      /\$(?:\{(\w+)\}|(\w+))/g,
      (all, braced: string | undefined, bare: string | undefined) => known[(braced ?? bare)!] ?? all,
    )
  const lines = typeof command === 'string' ? simpleCommands(fill(command)) : [command.map(fill)]
  return lines.flatMap(([program, ...args]) => {
    if (program === undefined || /[$`*?]/.test(program)) return [] // a shell makes something of it
    const problem = shellWords.has(program) ? undefined : executableProblem(program, { cwd, path })
    if (problem !== undefined) return [problem.replace(/\.$/, '')]
    const script = interpreters.test(program) ? args.find((word) => !word.startsWith('-')) : undefined
    const isCode = args.includes('-c') || args.includes('-e') || args.includes('-m')
    if (script === undefined || isCode || /[$`*?]/.test(script) || !looksLikeFile(script)) return []
    const file = isAbsolute(script) ? script : resolve(cwd, script)
    return existsSync(file) ? [] : [`"${script}" does not exist`]
  })
}

const interpreters = /(?:^|\/)(?:bash|sh|zsh|dash|python3?|node|bun|deno|ruby|perl|php|tsx|ts-node)$/
const shellWords = new Set(
  '[ [[ { } ! : . cd echo exit export if then else elif fi for in do done while until case esac test true false set unset read exec eval source local return printf kill trap wait umask command builtin type shift function time'.split(
    ' ',
  ),
)

function looksLikeFile(word: string): boolean {
  return word.includes('/') || /\.\w{1,4}$/.test(word)
}

/** The words of each command of a line, roughly: quotes are taken off, variables before a command are left out. */
function simpleCommands(line: string): readonly (readonly string[])[] {
  const commands: string[][] = [[]]
  for (const [, word] of line.replaceAll('\\\n', ' ').matchAll(wordOrEnd)) {
    if (word === undefined) commands.push([])
    else commands.at(-1)!.push(word.replace(quoted, (_, double?: string, single?: string) => double ?? single ?? ''))
  }
  return commands
    .map((words) => words.filter((word) => !/^\d?[<>]/.test(word)))
    .map((words) => words.slice(words.findIndex((word) => !isVariable(word))))
    .filter(([program]) => program !== undefined && !isVariable(program) && !/["']/.test(program))
}

/** A word may be put together from pieces in quotes and without: `"$CLAUDE_PROJECT_DIR"/check.sh` is one. */
const wordOrEnd = /((?:"(?:\\.|[^"\\])*"|'[^']*'|\\.|&(?=\d)|[^\s"'\\;&|()`])+)|[\n;&|()`]/g
const quoted = /"((?:\\.|[^"\\])*)"|'([^']*)'/g

function isVariable(word: string): boolean {
  return /^\w+=/.test(word)
}

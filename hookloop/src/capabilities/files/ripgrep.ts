import { accessSync, constants, realpathSync } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'
import { minimalEnvironment } from '../../system/processes/minimal-environment.ts'
import { runProcess } from '../../system/processes/run-process.ts'
import type { Pattern } from './line-matcher.ts'
import type { FilesSettings } from './options.ts'
import { placeOf, type Root } from './paths.ts'

/** Files that may have a match, and the folders above them. */
export type Candidates = {
  readonly has: (names: readonly string[]) => boolean
  readonly mayLeadTo: (names: readonly string[]) => boolean
}

/** Finds candidate files; undefined if it cannot, so that all files must be searched. */
export type Ripgrep = (
  folder: string,
  pattern: Pattern,
  how: { readonly timeoutMs: number; readonly signal: AbortSignal },
) => Promise<Candidates | undefined>

const MAX_OUTPUT = 8_388_608

/**
 * ripgrep as a fast prefilter: it lists files, and each of them is then opened, checked and searched like any other. So it
 * cannot reveal hidden or outside files, and results do not depend on whether it is installed.
 */
export function ripgrepAt(program: string, { skip, maxDepth, maxFileBytes }: FilesSettings): Ripgrep {
  return async (folder, { pattern, literal, ignoreCase }, { timeoutMs, signal }) => {
    const inline = !literal && pattern.startsWith('(?i)')
    const expression = literal ? pattern : toRipgrepPattern(inline ? pattern.slice(4) : pattern)
    if (expression === undefined || timeoutMs < 1) return undefined
    const switches =
      '--no-config --no-messages --color=never --files-with-matches --null --no-ignore --hidden --text --crlf'
    const { ended, exitCode, stdout } = await runProcess(
      [
        program,
        ...switches.split(' '),
        '--encoding=none',
        `--max-depth=${maxDepth}`,
        `--max-filesize=${maxFileBytes}`,
        ...skip.map((name) => `--glob=!${name}/`),
        ...(literal ? ['--fixed-strings'] : []),
        ...(ignoreCase || inline ? ['--ignore-case'] : []),
        `--regexp=${expression}`,
        '--regexp=\uFEFF', // we skip a byte order mark at the start of a line, ripgrep does not
        '--',
        '.',
      ],
      { cwd: folder, env: minimalEnvironment(), timeoutMs, signal, output: { head: MAX_OUTPUT, tail: 0 } },
    )
    signal.throwIfAborted()
    // Exit code 1: no matches. 2: an error, so that candidates may be missing.
    if (ended !== 'exited' || (exitCode !== 0 && exitCode !== 1) || stdout.droppedBytes > 0) return undefined
    return toCandidates(stdout.head)
  }
}

/** The ripgrep in PATH, but none below the roots, where an agent could have put it. */
export function findRipgrep(roots: readonly Root[], path = process.env['PATH'] ?? ''): string | undefined {
  for (const folder of path.split(delimiter).filter((each) => isAbsolute(each))) {
    try {
      const program = realpathSync(join(folder, 'rg'))
      accessSync(program, constants.X_OK)
      if (placeOf(program, roots) === undefined && placeOf(folder, roots) === undefined) return program
    } catch {
      continue
    }
  }
  return undefined
}

function toCandidates(output: string): Candidates {
  const files = new Set<string>()
  const folders = new Set<string>()
  for (const line of output.split('\0')) {
    const path = line.startsWith('./') ? line.slice(2) : line
    if (path === '') continue
    files.add(path)
    for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) {
      const folder = path.slice(0, at)
      if (folders.has(folder)) break
      folders.add(folder)
    }
  }
  return {
    has: (names) => files.has(names.join('/')),
    mayLeadTo: (names) => {
      const path = names.join('/')
      return files.has(path) || folders.has(path)
    },
  }
}

/**
 * Translates a pattern from RE2 to the syntax of ripgrep, so that it matches at least every line that RE2 matches; undefined if that is not
 * certain. It may match more lines: the files are searched again.
 */
export function toRipgrepPattern(pattern: string): string | undefined {
  if (pattern.includes('\uFFFD')) return undefined // stands for invalid bytes
  try {
    return new Translation(pattern).run()
  } catch (thrown) {
    if (thrown instanceof NotCertain) return undefined
    throw thrown
  }
}

class NotCertain extends Error {}

/** Invalid bytes are one replacement character for us, and no character for ripgrep. */
const UNREADABLE = '(?-u:[\\x80-\\xFF]){1,3}'

// Classes are ASCII in RE2, and Unicode in ripgrep.
const classes: { readonly [letter: string]: string } = { d: '0-9', w: '0-9A-Za-z_', s: '\\t\\n\\f\\r ' }

class Translation {
  readonly #pattern: string
  #at = 0

  constructor(pattern: string) {
    this.#pattern = pattern
  }

  run(): string {
    let result = ''
    while (this.#at < this.#pattern.length) result += this.#next()
    return result
  }

  #next(): string {
    const rest = this.#pattern.slice(this.#at)
    const char = String.fromCodePoint(rest.codePointAt(0)!)
    this.#at += char.length
    if (char === '\\') return this.#escape()
    if (char === '[') return this.#class()
    if (char === '.') return `(?:.|${UNREADABLE})`
    if (char === '(') return this.#group()
    if (char === '{') return this.#repeat(rest)
    // An anchor in the middle is rare, and ripgrep misses some lines with it.
    if (char === '^' && this.#at > 1 && !'|('.includes(this.#pattern[this.#at - 2]!)) throw new NotCertain()
    // With CRLF lines, ripgrep consumes the CR at a `$`, so that the rest would match elsewhere.
    if (char === '$' && rest.length > 1 && rest[1] !== '|') throw new NotCertain()
    return '*+?|)^$'.includes(char) ? char : literal(char)
  }

  #escape(): string {
    const char = this.#pattern[this.#at++] ?? ''
    if (char === 'b' || char === 'B') return `(?-u:\\${char})`
    const members = classes[char.toLowerCase()]
    if (members !== undefined) return char === char.toLowerCase() ? `[${members}]` : `(?:[^${members}]|${UNREADABLE})`
    return escapedLiteral(char)
  }

  #group(): string {
    const [named] = /^\?(?::|P?<\w+>)/.exec(this.#pattern.slice(this.#at)) ?? ['']
    this.#at += named.length
    if (this.#pattern[this.#at] === '?') throw new NotCertain()
    return '(?:'
  }

  #repeat(rest: string): string {
    const [times] = /^\{\d+(?:,\d*)?\}/.exec(rest) ?? []
    if (times === undefined) return literal('{')
    this.#at += times.length - 1
    return times
  }

  #class(): string {
    const negated = this.#pattern[this.#at] === '^'
    if (negated) this.#at++
    let members = ''
    for (let first = true; ; first = false) {
      const char = String.fromCodePoint(this.#pattern.codePointAt(this.#at) ?? 0)
      if (char === '\0') throw new NotCertain()
      this.#at += char.length
      if (char === ']' && !first) break
      members += this.#member(char)
    }
    return negated ? `(?:[^${members}]|${UNREADABLE})` : `[${members}]`
  }

  #member(char: string): string {
    if (char === '-') {
      if (this.#pattern[this.#at] === '-') throw new NotCertain()
      return '-'
    }
    if (char === '[' && this.#pattern[this.#at] === ':') {
      const [name] = /^:\^?[a-z]+:\]/.exec(this.#pattern.slice(this.#at)) ?? []
      if (name === undefined) throw new NotCertain()
      this.#at += name.length
      return `[${name}`
    }
    if (char !== '\\') return literal(char)
    const escaped = this.#pattern[this.#at++] ?? ''
    const members = classes[escaped.toLowerCase()]
    if (members === undefined) return escapedLiteral(escaped)
    return escaped === escaped.toLowerCase() ? members : `[^${members}]`
  }
}

function escapedLiteral(char: string): string {
  if ('tfv'.includes(char) && char !== '') return char === 'v' ? '\\x0B' : `\\${char}`
  if (!/^[!-/:-@[-`{-~]$/.test(char)) throw new NotCertain()
  return literal(char)
}

/** Escapes everything except letters, digits and spaces. */
function literal(char: string): string {
  if (/^[A-Za-z0-9_ ]$/.test(char) || char.codePointAt(0)! > 127) return char
  return `\\x{${char.codePointAt(0)!.toString(16)}}`
}

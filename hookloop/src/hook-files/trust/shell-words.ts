import { homedir } from 'node:os'

/** Stands for what a shell inserts at run time and is not known before, such as the output of a command. */
export const UNKNOWN = '\0'

/** Values of variables. */
export type Variables = Readonly<Record<string, string>>

/**
 * The simple commands of a command line as lists of words: quotes and escapes are resolved, known variables replaced, targets of
 * output redirections left out. Commands inside substitutions are included. Text that a shell would read differently, such as
 * a here-document, is read as commands too: this finds too many names rather than too few.
 */
export function commandsOf(line: string, variables: Variables, depth = 0): readonly (readonly string[])[] {
  if (depth > MAX_DEPTH) throw new Error('its command is nested too deeply to be read')
  const reader = new ShellReader(line, { ...variables }, depth)
  reader.read()
  return reader.commands
}

const MAX_DEPTH = 20

/** Replaces `$NAME` and `${NAME}` where the value is known. */
export function fillVariables(text: string, known: Variables): string {
  return text.replace(/\$(?:\{(\w+)\}|(\w+))/g, (all, braced: string | undefined, bare: string | undefined) => {
    const name = (braced ?? bare)!
    return Object.hasOwn(known, name) ? known[name]! : all
  })
}

/** The texts of a word that may name a file: the word, the value of an option or assignment, and `-r./file`. */
export function valuesIn(word: string): readonly string[] {
  const values = word.includes('=') ? word.split('=').slice(1) : []
  const parts = values.flatMap((value) => [value, ...(/\s/.test(value) ? value.split(/\s+/).flatMap(valuesIn) : [])])
  const attached = /^-+[A-Za-z](.+)$/s.exec(word)?.[1]
  const lists = [word, ...parts].flatMap((each) => (each.includes(':') ? each.split(':') : []))
  return [...new Set([word, ...parts, ...lists, ...(attached === undefined ? [] : [attached])])].map((each) =>
    each.trim(),
  )
}

/** A path with the home folder or the working directory in place of `~` and `~+`. */
export function expandHome(name: string): string {
  if (name.startsWith('~+/')) return name.slice(3) // the working directory
  return name === '~' || name.startsWith('~/') ? homedir() + name.slice(1) : name
}

const assignment = /^([A-Za-z_]\w*)\+?=([^]*)$/
const declaring = new Set(['export', 'local', 'declare', 'typeset', 'readonly'])

class ShellReader {
  readonly commands: (readonly string[])[] = []
  readonly #line: string
  readonly #variables: Record<string, string>
  readonly #depth: number
  #at = 0
  #word: string | undefined
  #words: string[] = []
  /** Whether the next word is the target of an output redirection, or the delimiter of a here-document. */
  #skipsNext = false

  constructor(line: string, variables: Record<string, string>, depth: number) {
    this.#line = line
    this.#variables = variables
    this.#depth = depth
  }

  read(): void {
    while (this.#at < this.#line.length) this.#step(this.#line[this.#at++]!)
    this.#endCommand()
  }

  #step(char: string): void {
    if (char === '\\') return this.#add(this.#line[this.#at++] ?? '', { isContinued: true })
    if (char === "'") return this.#add(this.#until("'"))
    if (char === '"') return this.#doubleQuoted()
    if (char === '$' || char === '`') return this.#add(this.#expansion(char))
    if (char === '#' && this.#word === undefined) return void this.#until('\n', () => this.#endCommand())
    if (/[\n;&|()]/.test(char))
      return char === '&' && /[<>]/.test(this.#line[this.#at] ?? '') ? undefined : this.#endCommand()
    if (char === '>' || char === '<') return this.#redirection(char)
    if (/\s/.test(char)) return this.#endWord()
    this.#add(char)
  }

  #add(text: string, { isContinued = false } = {}): void {
    if (isContinued && text === '\n') return
    this.#word = (this.#word ?? '') + text
  }

  /** The text up to a character, which is skipped. */
  #until(end: string, then?: () => void): string {
    const found = this.#line.indexOf(end, this.#at)
    const text = this.#line.slice(this.#at, found < 0 ? undefined : found)
    this.#at = found < 0 ? this.#line.length : found + 1
    then?.()
    return text
  }

  #doubleQuoted(): void {
    this.#add('')
    while (this.#at < this.#line.length) {
      const char = this.#line[this.#at++]!
      if (char === '"') return
      if (char === '\\' && /["\\$`\n]/.test(this.#line[this.#at] ?? ''))
        this.#add(this.#line[this.#at++]!, { isContinued: true })
      else this.#add(char === '$' || char === '`' ? this.#expansion(char) : char)
    }
  }

  #expansion(char: string): string {
    if (char === '`') return this.#inner(this.#until('`'))
    const next = this.#line[this.#at]
    if (next === '(') return this.#inner(this.#balanced('(', ')'))
    if (next === '{') return this.#braced(this.#balanced('{', '}'))
    if (next === "'") {
      this.#at++
      return unescaped(this.#until("'"))
    }
    const name = /^(?:\w+|[@*#?$!-])/.exec(this.#line.slice(this.#at, this.#at + 200))?.[0]
    if (name === undefined) return '$'
    this.#at += name.length
    return this.#value(name)
  }

  /** A variable that is not set is empty; what a caller passes is unknown. */
  #value(name: string): string {
    if (Object.hasOwn(this.#variables, name)) return this.#variables[name]!
    return /^[A-Za-z_]/.test(name) ? '' : UNKNOWN
  }

  /** `${NAME}`, or with an operator, whose text is added: it may be used instead. */
  #braced(body: string): string {
    const [, isOther, name = '', rest = ''] = /^([!#]?)(\w+|[@*?])(?:\[\d+\])?([^]*)$/.exec(body) ?? []
    if (isOther === '!') return UNKNOWN // the value of the variable that this one names
    if (rest === '') return this.#value(name)
    if (rest === '%/*') return folderOf(this.#value(name))
    const instead = /^:?[-=+](.*)$/s.exec(rest)?.[1]
    if (instead === undefined) return UNKNOWN
    const used = commandsOf(instead, this.#variables, this.#depth + 1)
    this.commands.push(...used)
    return this.#value(name) || used.flat().join(' ')
  }

  #inner(body: string): string {
    const inner = commandsOf(body, this.#variables, this.#depth + 1)
    this.commands.push(...inner)
    return outputOf(inner, this.#variables) ?? UNKNOWN
  }

  #balanced(open: string, close: string): string {
    const from = ++this.#at
    for (let depth = 1; this.#at < this.#line.length; this.#at++) {
      const char = this.#line[this.#at]
      if (char === open) depth++
      else if (char === close && --depth === 0) return this.#line.slice(from, this.#at++)
    }
    return this.#line.slice(from)
  }

  #redirection(char: string): void {
    if (/^\d*$/.test(this.#word ?? '')) this.#word = undefined // the number of a descriptor
    this.#endWord()
    const rest = this.#line.slice(this.#at, this.#at + 2)
    if (char === '<' && !rest.startsWith('<')) return // input is a word like others
    if (char === '<' && rest === '<<') return void (this.#at += 2)
    this.#at += /^[>|&<]?-?/.exec(rest)![0].length
    this.#skipsNext = true
  }

  #endWord(): void {
    const word = this.#word
    this.#word = undefined
    if (word === undefined) return
    if (this.#skipsNext) this.#skipsNext = false
    else this.#words.push(word)
  }

  #endCommand(): void {
    this.#endWord()
    this.#skipsNext = false
    const words = this.#words
    this.#words = []
    if (words.length === 0) return
    const start = words.findIndex((word) => !assignment.test(word))
    for (const word of declaring.has(words[0]!) ? words : words.slice(0, start < 0 ? undefined : start)) {
      const [, name, value] = assignment.exec(word) ?? []
      if (name !== undefined) this.#variables[name] = value!
    }
    if (words[0] === 'for' && words[1] !== undefined)
      this.#variables[words[1]] = words[2] === 'in' ? words.slice(3).join('\n') : UNKNOWN // one argument after the other
    if (words.includes('read')) for (const word of words) if (/^\w+$/.test(word)) this.#variables[word] = UNKNOWN
    this.commands.push(words)
  }
}

/** What commands print that ask for the folder of a script or a project, as in `$(cd "$(dirname "$0")" && pwd)`. */
function outputOf(commands: readonly (readonly string[])[], variables: Variables): string | undefined {
  const [name, ...args] = commands.at(-1) ?? []
  const path = args.findLast((word) => !word.startsWith('-'))
  if (name === 'pwd') return commands.findLast(([first]) => first === 'cd')?.at(-1) ?? variables['PWD']
  if (name === 'git')
    return args.join(' ') === 'rev-parse --show-toplevel' ? variables['HOOKLOOP_PROJECT_DIR'] : undefined
  if (path === undefined) return undefined
  if (name === 'dirname') return folderOf(path)
  return name === 'realpath' || name === 'readlink' ? path : undefined
}

function folderOf(path: string): string {
  return path === UNKNOWN ? UNKNOWN : path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '.'
}

/** The text of `$'…'`. */
function unescaped(text: string): string {
  return text.replace(
    /\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|([0-7]{1,3})|([^]))/g,
    (_all, hex, unicode, octal, char) =>
      char === undefined
        ? String.fromCharCode(parseInt((hex ?? unicode ?? octal) as string, octal === undefined ? 16 : 8))
        : ((/[nt]/.test(char as string) ? ' ' : char) as string),
  )
}

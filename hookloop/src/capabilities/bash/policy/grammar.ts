import { development } from './grammars/development.ts'
import { files } from './grammars/files.ts'
import { git } from './grammars/git.ts'
import { wrappers } from './grammars/wrappers.ts'

/**
 * The words of a program that are known to be harmless. Any other word makes a command a question. Grammars are texts:
 *
 *     uniq: -cdiu -fsw=number --count,repeated --skip-fields=number --group? any
 *     find: !whole -name,path=all -print -exec=command any*
 *     git commit: !named -aqv -m= --message= --amend any*
 *     timeout: !first !plain -ks= --signal= number command
 *
 * - `-cd`: options of one letter, which may be joined; `-#` is a number such as `-5`. `--a,b`: long options, not abbreviated.
 * - `-a=`, `--a=kind`: with a value, attached or as the next word; `==` has two. `-a?`, `--a?kind`: a value may be attached.
 * - `any`, `any*`: an operand, and any number of the last one, by its kind (see `kinds`), or `x|y` for one of these values.
 * - `command`, `shell`: the rest is a command, or shell code. `@name`: everything of another grammar.
 * - `!pure`: no word can make it run a program or write a file.
 * - `!names`: it shows names of files, not what is in them: it may get paths in the home folder.
 * - `!free`: a builtin of the shell that only steers a script: it needs no rule, and no rule allows its other words.
 * - `!named`: it has effects: a rule must name it, `*` does not. `!links`: it may put a link in place of a file. `!into`: its last
 *   operand is what the others are copied or moved to.
 * - `!whole`: options are whole words such as `-name`. `!first`: they end at the first operand. `!raw`: there are none.
 * - `!plain`: it is as harmless as the command that it runs. `!assigns`: variables may be set before the command.
 * - `!appends`: its input becomes arguments of the command. `!judged`: a rule for it and one for a command that only reads are enough;
 *   `inner` is the kind of an option with such a command.
 */
export type Grammar = {
  readonly flags: ReadonlySet<string>
  readonly options: ReadonlyMap<string, Option>
  readonly operands: readonly string[]
  /** Whether the last operand may be repeated. */
  readonly isRepeated: boolean
  /** Whether it reads settings of the folder in which it is started, or runs something there. */
  readonly usesFolder: boolean
}

export type Option = { readonly values: number; readonly isOptional: boolean; readonly kind: string }

/** The grammar of a program or subcommand by its exact name. */
export function grammarOf(name: string): Grammar | undefined {
  return readAll().grammars.get(name)
}

/** Whether a name is the beginning of the name of a subcommand: `docker` and `docker compose`. */
export function isBeginning(name: string): boolean {
  return readAll().beginnings.has(name)
}

type All = { readonly grammars: ReadonlyMap<string, Grammar>; readonly beginnings: ReadonlySet<string> }
let all: All | undefined

/** Reads all texts on first use. */
function readAll(): All {
  if (all !== undefined) return all
  const [parts, grammars, beginnings] = [new Map<string, string>(), new Map<string, Grammar>(), new Set<string>()]
  for (const [texts, usesFolder] of [
    [files + wrappers, false],
    [git + development, true],
  ] as const) {
    for (const lines of texts.trim().split(/\n+(?! )/)) {
      const [names = '', text = ''] = lines.replace(/\n\s+/g, ' ').split(/: (.*)/)
      const whole = text.replace(/@[\w-]+/g, (part) => parts.get(part)!)
      if (names.startsWith('@')) parts.set(names, whole)
      else
        for (const name of names.split(', ')) {
          // The help of a git command may be shown by a program of the settings.
          const help = name.startsWith('git') ? '' : ' --help,version'
          grammars.set(name, toGrammar(whole + help, usesFolder))
          for (let at = name.indexOf(' '); at > 0; at = name.indexOf(' ', at + 1)) beginnings.add(name.slice(0, at))
        }
    }
  }
  all = { grammars, beginnings }
  return all
}

function toGrammar(text: string, usesFolder: boolean): Grammar {
  const [flags, options, operands] = [new Set<string>(), new Map<string, Option>(), [] as string[]]
  for (const token of text.split(' ')) {
    if (token.startsWith('!')) flags.add(token.slice(1))
    else if (token.startsWith('-')) addOptions(token, flags, options)
    else if (token !== '') operands.push(token)
  }
  const isRepeated = operands.at(-1)?.endsWith('*') === true
  return { flags, options, operands: operands.map((kind) => kind.replace(/\*$/, '')), isRepeated, usesFolder }
}

const OPTIONS = /^(--?)([^=?]*)(\?|=*)(.*)$/

function addOptions(token: string, flags: ReadonlySet<string>, options: Map<string, Option>): void {
  const [, dashes = '', names = '', sign = '', kind = ''] = OPTIONS.exec(token) ?? []
  const isList = dashes === '--' || flags.has('whole')
  const option = { values: sign === '?' ? 0 : sign.length, isOptional: sign === '?', kind: kind === '' ? 'any' : kind }
  for (const name of isList ? names.split(',') : names) options.set(dashes + name, option)
}

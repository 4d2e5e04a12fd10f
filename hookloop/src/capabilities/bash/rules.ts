import { checkOptions, invalidOption } from '../../agent/check-options.ts'

/** Rules for commands. A rule is words: a program, then arguments it must begin with; `*` stands for anything. */
export type CommandRules = {
  readonly allow?: readonly string[]
  readonly deny?: readonly string[]
  readonly ask?: readonly string[]
}

export type Rule = {
  /** As it is shown: `allow "git log"`. */
  readonly name: string
  readonly words: readonly string[]
}

export type Rules = { readonly allow: readonly Rule[]; readonly deny: readonly Rule[]; readonly ask: readonly Rule[] }

/** The rules, each checked once. A rule that could never mean what it says is refused. */
export function readRules(rules: CommandRules, where = 'bash'): Rules {
  if (typeof rules !== 'object' || rules === null) throw invalidOption(where, 'the rules must be an object', rules)
  checkOptions(where, rules, ['allow', 'deny', 'ask'])
  return {
    allow: readList('allow', rules.allow, where),
    deny: readList('deny', rules.deny, where),
    ask: readList('ask', rules.ask, where),
  }
}

function readList(kind: keyof CommandRules, list: readonly string[] | undefined, where: string): readonly Rule[] {
  if (list === undefined) return []
  if (!Array.isArray(list)) throw invalidOption(where, `"${kind}" must be a list of rules such as ['git log']`, list)
  return list.map((text: unknown) => readRule(kind, text, where))
}

/** What a shell would read as something else than a part of a word. */
const SHELL_SYNTAX = /[;&|<>()`$"'\\]|\p{C}/u

function readRule(kind: keyof CommandRules, text: unknown, where: string): Rule {
  const refuse = (why: string) => invalidOption(where, `${kind} rule ${JSON.stringify(text)}: ${why}`, text)
  if (typeof text !== 'string') throw refuse('it must be a text')
  const words = text.split(/\s+/).filter((word) => word !== '')
  const [program] = words
  if (program === undefined) throw refuse('it is empty')
  if (SHELL_SYNTAX.test(text.replace(/\s/g, ''))) {
    throw refuse(
      'a rule is plain words, such as "git log" or "npm run *". Every command in a chain is judged by itself',
    )
  }
  if (program.startsWith('-')) throw refuse('it must begin with the name of a program')
  if (/^\w+\+?=/.test(program)) throw refuse('it must begin with the name of a program, not with a variable')
  return { name: `${kind} "${words.join(' ')}"`, words }
}

/** Whether a text matches a pattern in which `*` stands for any characters and `?`, if asked for, for one. */
export function matchesPattern(pattern: string, text: string, { any = '*', one = '' } = {}): boolean {
  let [p, t, star, resume] = [0, 0, -1, 0]
  while (t < text.length) {
    if (p < pattern.length && pattern[p] === any) {
      star = p
      p += 1
      resume = t
    } else if (p < pattern.length && (pattern[p] === text[t] || (one !== '' && pattern[p] === one))) {
      p += 1
      t += 1
    } else if (star !== -1) {
      p = star + 1
      resume += 1
      t = resume
    } else return false
  }
  while (pattern[p] === any) p += 1
  return p === pattern.length
}

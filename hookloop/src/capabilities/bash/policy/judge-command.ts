import { shorten } from '../../../values/text.ts'
import { catastropheOf } from './catastrophes.ts'
import { isBeginning } from './grammar.ts'
import { MAX_TEXT, parseCommands, type ParsedCommand } from './parse-commands.ts'
import { endOfInner, findGrammar, readArguments, type Problem } from './read-arguments.ts'
import {
  allowMatches,
  baseName,
  broadMatch,
  isNamedBy,
  readRules,
  ruleFor,
  type CommandRules,
  type Rule,
  type Rules,
} from './rules.ts'
import { suspicionIn, sizeProblem } from './suspicious-text.ts'
import { isUnderstood, textOf, type ParsedWord } from './understand-word.ts'

export type Verdict = 'allow' | 'ask' | 'block'

type FoundCommand = {
  readonly text: string
  /** The program and its arguments as bash would run them; null if they are not all literal. */
  readonly argv: readonly string[] | null
  readonly verdict: Verdict
  /** The rule that decided, or the reason why no rule applies. */
  readonly rule: string
  /** The files below the working directory that it writes by name. Only if there are any. */
  readonly writes?: readonly string[]
  /** Whether it may put a link in place of a file. Only if it may. */
  readonly makesLinks?: true
}

export type CommandVerdict = {
  /** The strictest verdict of all commands in it. */
  readonly verdict: Verdict
  readonly commands: readonly FoundCommand[]
  /** The rule or reason that decided. */
  readonly rule: string
  /** The same as a sentence for the model. */
  readonly reason: string
}

/**
 * Returns a function that judges commands by rules. It allows only commands that are literal and understood in every part, finds
 * blocked commands wherever they are, and asks about the rest. Throws on invalid rules, never on a command.
 */
export function commandJudge(rules: CommandRules): (command: string) => CommandVerdict {
  const read = readRules(rules)
  return (command) => judgeText(command, read)
}

function judgeText(command: string, rules: Rules): CommandVerdict {
  const problem = sizeProblem(command)
  if (problem !== undefined) return summary(deniedTokens(command, rules), [forText(command, 'block', problem)])
  const { commands: seen, doubt } = parseCommands(command)
  const found = seen.flatMap((each) => judgeCommand(each, { rules, depth: 0, budget: { left: MAX_INNER } }))
  const blocked = doubt === undefined ? [] : deniedTokens(command, rules)
  const suspicion = suspicionIn(command)
  const doubts = [
    doubt,
    writesLinks(command, found) ? 'it may put a link in place of a file that it writes' : undefined,
    seen.length === 0 ? 'it contains no command' : undefined,
  ].flatMap((why) => (why === undefined ? [] : [forText(command, 'ask', why)]))
  const suspicious = suspicion === undefined ? [] : [forText(command, suspicion.verdict, suspicion.rule)]
  return summary([...found, ...blocked], [...suspicious, ...doubts])
}

/** Links are looked for before the first command runs. A loop runs its commands again. */
function writesLinks(command: string, found: readonly FoundCommand[]): boolean {
  const linking = found.filter(({ makesLinks }) => makesLinks)
  const isRepeated = linking.length > 0 && /\b(?:while|until)\b/.test(command)
  return found.some((each) => each.writes !== undefined && (isRepeated || linking.some((other) => other !== each)))
}

/** The strictest verdict decides. For block the reason is preferably a command, for ask a doubt about the complete text. */
function summary(commands: readonly FoundCommand[], doubts: readonly FoundCommand[]): CommandVerdict {
  const orders = [
    ['block', [...commands, ...doubts]],
    ['ask', [...doubts, ...commands]],
  ] as const
  for (const [verdict, order] of orders) {
    const decisive = order.find((each) => each.verdict === verdict)
    if (decisive === undefined) continue
    const { rule, text } = decisive
    const what = verdict === 'block' ? 'Blocked' : 'Needs approval'
    return { verdict, commands, rule, reason: `${what}: ${shorten(text, MAX_QUOTED)} (${rule}).` }
  }
  const rules = [...new Set(commands.map(({ rule }) => rule))].join(', ')
  return { verdict: 'allow', commands, rule: rules, reason: 'Every command in it is allowed.' }
}

const MAX_QUOTED = 200

type Judging = {
  readonly rules: Rules
  /** How many commands this one is nested in. */
  readonly depth: number
  /** How many more nested commands are judged. */
  readonly budget: { left: number }
  /** The rule that covers this command as part of another one. */
  readonly granted?: string
}

/** A command and every command that it runs. */
function judgeCommand(command: ParsedCommand, judging: Judging): readonly FoundCommand[] {
  const { text, words } = command
  const { depth, budget } = judging
  const wrapped = wrappedIn(command)
  const argv = words.length > 0 && words.every(({ value }) => value !== null) ? words.map(textOf) : null
  if (wrapped !== undefined && (depth >= MAX_DEPTH || budget.left <= 0)) {
    return [{ text, argv, verdict: 'block', rule: TOO_MANY }]
  }
  const own = ownVerdict(command, wrapped, judging)
  const hasLinks = findGrammar(words, { isExact: true })?.grammar.flags.has('links') === true
  const makesLinks = hasLinks && !/^cp(?!.* -(?:\w*[adlPRr]|-))/s.test(argv?.join(' ') ?? '')
  const found: FoundCommand = { text, argv, ...own, ...(makesLinks && { makesLinks }) }
  if (wrapped === undefined) return [found]
  // If a rule covers a command with the one that it runs, only block and ask rules can change that.
  const granted = own.verdict === 'allow' && !wrapped.isPlain ? { granted: own.rule } : {}
  const { granted: _, ...outer } = judging
  const inner = innerCommands(wrapped, command, { ...outer, depth: depth + 1, ...granted })
  return [found, ...inner]
}

type Wrapped = {
  readonly starts: readonly number[]
  readonly texts: readonly string[]
  /** Whether it is as harmless as the command that it runs. */
  readonly isPlain: boolean
}

/** The commands that a command runs; undefined if it runs none. */
function wrappedIn({ words, inputs }: ParsedCommand): Wrapped | undefined {
  const known = findGrammar(words, { isExact: false })
  if (known === undefined) return undefined
  const { grammar, keys } = known
  const { starts, texts, problem } = readArguments(grammar, words, { from: keys.at(-1)! + 1 })
  const isShell = grammar.operands[0] === 'run' && grammar.options.get('-c')?.kind === 'shell'
  const all = isShell && texts.length === 0 ? inputs : texts
  if (starts.length === 0 && all.length === 0) return undefined
  const isExact = findGrammar(words, { isExact: true }) !== undefined && known.before === undefined
  return {
    starts: [...new Set(starts)],
    texts: all,
    isPlain: isExact && grammar.flags.has('plain') && problem === undefined,
  }
}

/** No real command has more programs that run each other. */
const MAX_DEPTH = 8
const MAX_INNER = 64
const TOO_MANY = 'it runs too many nested commands'

type Decision = { readonly verdict: Verdict; readonly rule: string; readonly writes?: readonly string[] }

const ask = (rule: string): Decision => ({ verdict: 'ask', rule })

const allow = (rule: string, writes: readonly string[]): Decision =>
  writes.length === 0 ? { verdict: 'allow', rule } : { verdict: 'allow', rule, writes }

function ownVerdict(
  { words, hazards, writes }: ParsedCommand,
  wrapped: Wrapped | undefined,
  { rules, granted }: Judging,
): Decision {
  const blocked = broadMatch(rules.block, words)
  if (blocked !== undefined) return { verdict: 'block', rule: blocked.name }
  const catastrophe = catastropheOf(words)
  if (catastrophe !== undefined) return { verdict: 'block', rule: catastrophe }
  const asked = broadMatch(rules.ask, words)
  if (asked !== undefined) return ask(asked.name)
  if (hazards[0] !== undefined) return ask(hazards[0])
  const program = words[0]?.value ?? ''
  if (words.length === 0 && writes.length > 0) return allow('a redirection to a file of data', writes)
  if (program === '' || !words.every(isUnderstood))
    return ask(program === '' ? 'the program it runs is not literal' : 'not all of its words are literal')
  const { flags } = findGrammar(words, { isExact: true })?.grammar ?? {}
  if (flags?.has('free') === true && !program.includes('/')) {
    const harm = harmIn(words, [program], [])
    return 'writes' in harm
      ? allow(`${program} only steers the shell`, writes)
      : ask(`the builtin ${program}: ${harm.why}`)
  }
  if (wrapped !== undefined && wrapped.texts.length > 0) return ask(`${program} runs shell code`)
  const isPath = program.includes('/') // `./timeout` may be any program, so a rule must name it
  if (wrapped?.isPlain === true && wrapped.starts.length === 1 && !isPath)
    return allow(`${program} is judged by what it runs`, writes)
  return granted === undefined ? byAllowRules(words, rules.allow, writes) : allow(granted, writes)
}

function byAllowRules(words: readonly ParsedWord[], rules: readonly Rule[], writes: readonly string[]): Decision {
  let closest: { readonly rule: Rule; readonly problem: Problem; readonly form: readonly ParsedWord[] } | undefined
  for (const form of formsOf(words)) {
    for (const rule of rules.filter((each) => allowMatches(each, form))) {
      const judged = harmIn(form, rule.words, rules)
      if ('writes' in judged) return allow(rule.name, [...writes, ...judged.writes])
      if (rule.words.length > (closest?.rule.words.length ?? 0)) closest = { rule, problem: judged, form }
    }
  }
  const shortest = (findGrammar(words, { isExact: true })?.keys.at(-1) ?? 0) + 1
  if (closest === undefined) return ask(`no rule allows it${suggestion(words, rules, shortest)}`)
  const { rule, problem, form } = closest
  return ask(`${rule.name} does not cover it: ${problem.why}${suggestion(form, rules, problem.index + 1)}`)
}

/** The shortest rule that would allow a command. */
function suggestion(words: readonly ParsedWord[], rules: readonly Rule[], shortest: number): string {
  for (let length = shortest; length <= Math.min(words.length, MAX_SUGGESTED); length += 1) {
    const rule = ruleFor(words.slice(0, length))
    if (rule === undefined) return ''
    if ('writes' in harmIn(words, rule.split(' '), rules)) return `; the rule "${rule}" would allow it`
  }
  return ''
}

const MAX_SUGGESTED = 8

/**
 * A command, and the same without harmless options before its subcommand, or before the command that it runs: `git --no-pager log`
 * is judged as `git log`, and `xargs -0 grep` as `xargs grep`.
 */
function formsOf(words: readonly ParsedWord[]): readonly (readonly ParsedWord[])[] {
  const { before, grammar } = findGrammar(words, { isExact: true }) ?? {}
  if (grammar?.flags.has('judged') === true && grammar.operands.includes('command')) {
    const { problem, starts } = readArguments(grammar, words, { from: 1 })
    return problem === undefined && starts.length === 1 ? [words, [words[0]!, ...words.slice(starts[0])]] : [words]
  }
  if (before === undefined) return [words]
  const { from, to } = before
  const { problem } = readArguments(before.grammar, words, { from, to })
  return problem === undefined ? [words, [...words.slice(0, from), ...words.slice(to)]] : [words]
}

type Harm = Problem | { readonly writes: readonly string[] }

/** The first word of a command that is not known to be harmless and that the rule does not name, or the files that it writes. */
function harmIn(words: readonly ParsedWord[], rule: readonly string[], rules: readonly Rule[], depth = 0): Harm {
  const isNamed = (index: number): boolean => isNamedBy(rule[index], words[index]!)
  const known = findGrammar(words, { isExact: true })
  if (known === undefined) return harmInUnknown(words, rule)
  const { grammar, keys, before, name } = known
  // `git stash` names `git stash pop`, but `python3 -m` and `python3 -m *` do not name `python3 -m pip install`.
  const isOpen = (key: number): boolean => key >= rule.length && key > keys[1]! && !name.includes(' -')
  const isUnnamed = grammar.flags.has('named') && !keys.every((key) => isNamed(key) || isOpen(key))
  if (isUnnamed) return { index: keys.at(-1)!, why: `${name} has effects, so a rule must name it` }
  const earlier = before && readArguments(before.grammar, words, { ...before, isNamed }).problem
  if (earlier !== undefined) return earlier
  const { problem, starts, writes } = readArguments(grammar, words, { from: keys.at(-1)! + 1, isNamed })
  if (problem !== undefined || grammar.flags.has('plain')) return problem ?? { writes } // a plain one is judged by what it runs
  for (const start of starts) {
    const inner = grammar.operands.includes('command') ? words.slice(start) : innerOfFind(words, start)
    const { flags, usesFolder = true } = findGrammar(inner, { isExact: true })?.grammar ?? {}
    if (depth >= MAX_DEPTH || (grammar.flags.has('appends') && flags?.has('pure') !== true))
      return { index: words.length, why: 'its input may become options' }
    if (grammar.flags.has('judged') && !isNamed(start)) {
      const isRead = !usesFolder && !['named', 'plain', 'judged', 'free'].some((flag) => flags?.has(flag) !== false)
      const decision = isRead ? byAllowRules(inner, rules, []) : ask(`a rule must name what it runs`)
      if (decision.verdict !== 'allow' || decision.writes !== undefined)
        return { index: start, why: `it runs ${textOf(inner[0]!)}: ${decision.rule}` }
      continue
    }
    const judged = harmIn(inner, rule.slice(start), rules, depth + 1)
    if ('why' in judged) return { ...judged, index: judged.index + start }
  }
  return { writes }
}

/** A command of `find`, in which `{}` is a path, or many. */
function innerOfFind(words: readonly ParsedWord[], start: number): readonly ParsedWord[] {
  const end = endOfInner(words, start)
  const inner = words.slice(start, end)
  if (findGrammar(inner, { isExact: true }) === undefined) return inner // a rule must name each word
  const isOne = words[end]?.value !== '+'
  return inner.map((word) => {
    const [prefix, ...more] = (word.value ?? '').split('{}')
    if (more.length === 0) return word
    return {
      value: null,
      loose: word.loose,
      expansion: { prefix: prefix || './', isOne, hasGlob: false },
    }
  })
}

/**
 * No list says which words are harmless: a rule must match all of them, and name the program and each option. `**` at its
 * end matches any number of operands, unless some subcommands of the program are known.
 */
function harmInUnknown(words: readonly ParsedWord[], rule: readonly string[]): Harm {
  const isOpen = rule.at(-1) === '**' && !isBeginning(baseName(textOf(words[0]!)))
  const isCovered = words.every((word, index) => {
    const isMatched = index > 0 && (isOpen || rule[index] !== undefined)
    const isOperand = isMatched && word.value?.startsWith('-') === false
    return isOperand || isNamedBy(rule[index], word)
  })
  if (isCovered) return { writes: [] }
  const name = shorten(textOf(words[0]!), MAX_QUOTED)
  return { index: words.length - 1, why: `the harmless words of ${name} are not known, so a rule must match all words` }
}

/** The commands a wrapper runs. If the start is uncertain, the first one counts, and all others that are blocked. */
function innerCommands(wrapped: Wrapped, { words }: ParsedCommand, judging: Judging): readonly FoundCommand[] {
  const isList = findGrammar(words, { isExact: false })?.grammar.operands.includes('command') === false
  const runs = wrapped.starts.flatMap((start, index) => {
    judging.budget.left -= 1
    if (judging.budget.left < 0) return judging.budget.left === -1 ? [forText(joined(words), 'block', TOO_MANY)] : []
    const inner = words.slice(start, isList ? endOfInner(words, start) : words.length)
    const command = { text: joined(inner), words: inner, hazards: [], inputs: [], writes: [] }
    const found = judgeCommand(command, judging)
    return isList || index === 0 ? found : found.filter(({ verdict }) => verdict === 'block')
  })
  return [...runs, ...wrapped.texts.flatMap((text) => judgeInnerText(text, judging))]
}

function joined(words: readonly ParsedWord[]): string {
  return shorten(words.map(({ loose }) => loose).join(' '), MAX_TEXT)
}

function judgeInnerText(text: string, { rules, depth, budget }: Judging): readonly FoundCommand[] {
  budget.left -= 1
  if (budget.left < 0) return [forText(text, 'block', TOO_MANY)]
  const { commands, doubt } = parseCommands(text)
  const found = commands.flatMap((each) => judgeCommand(each, { rules, depth, budget }))
  return doubt === undefined ? found : [...found, ...deniedTokens(text, rules), forText(text, 'ask', doubt)]
}

/** The first match of a block rule in a text that cannot be parsed. */
function deniedTokens(text: string, { block }: Rules): readonly FoundCommand[] {
  if (block.length === 0) return []
  for (const words of rawCommands(text)) {
    const rule = broadMatch(block, words)
    if (rule !== undefined) return [{ text: words[0]!.loose, argv: null, verdict: 'block', rule: rule.name }]
  }
  return []
}

function forText(text: string, verdict: Verdict, rule: string): FoundCommand {
  return { text: shorten(text, MAX_TEXT), argv: null, verdict, rule }
}

/**
 * Every run of words in a text that cannot be parsed, as if each were a command. Quotes are removed, or taken as separators. Used to
 * find blocked commands: bash runs the lines before the one it cannot parse.
 */
function* rawCommands(text: string): Generator<readonly ParsedWord[]> {
  const joined = text.slice(0, 200_000).replace(/\\\n/g, '')
  for (const instead of ['', ' ']) {
    const tokens = joined.replace(/["'\\]/g, instead).split(/[\s;&|()<>{}`$=,!]+/)
    const words = tokens.filter((word) => word !== '').map((word) => ({ value: word, loose: word }))
    for (const index of words.keys()) yield words.slice(index, index + 16)
  }
}

import { shorten } from '../../../state/text.ts'
import { catastropheOf } from './catastrophes.ts'
import { MAX_TEXT, parseCommands, type ParsedCommand, type ParsedWord } from './parse-commands.ts'
import { dangersIn, isKnownProgram } from './dangers.ts'
import { harmlessGitOptions } from './git-dangers.ts'
import { allowMatches, baseName, broadMatch, isNamedBy } from './rules.ts'
import { shown, type Danger } from './options.ts'
import { readRules, type CommandRules, type Rule, type Rules } from './rules.ts'
import { suspicionIn, sizeProblem } from './suspicious-text.ts'
import { wrappedIn, type Wrapped } from './wrappers.ts'

export type Verdict = 'allow' | 'ask' | 'deny'

type FoundCommand = {
  readonly text: string
  /** The program and its arguments as bash would run them; null if they are not all literal. */
  readonly argv: readonly string[] | null
  readonly verdict: Verdict
  /** The rule that decided, or the reason why no rule applies. */
  readonly rule: string
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
 * denied commands wherever they are, and asks about the rest. Throws on invalid rules, never on a command.
 */
export function commandJudge(rules: CommandRules): (command: string) => CommandVerdict {
  const read = readRules(rules)
  return (command) => judgeText(command, read)
}

function judgeText(command: string, rules: Rules): CommandVerdict {
  const problem = sizeProblem(command)
  if (problem !== undefined) return summary(deniedTokens(command, rules), [forText(command, 'deny', problem)])
  const { commands: seen, doubt } = parseCommands(command)
  const found = withoutStrayGit(
    seen.flatMap((each) => judgeCommand(each, { rules, depth: 0, budget: { left: MAX_INNER } })),
  )
  const denied = doubt === undefined ? [] : deniedTokens(command, rules)
  const suspicion = suspicionIn(command)
  const doubts = [
    ...(suspicion === undefined ? [] : [forText(command, suspicion.verdict, suspicion.rule)]),
    ...(doubt === undefined ? [] : [forText(command, 'ask', doubt)]),
    ...(seen.length === 0 ? [forText(command, 'ask', 'it contains no command')] : []),
  ]
  return summary([...found, ...denied], doubts)
}

/** The strictest verdict decides. For deny the reason is preferably a command, for ask a doubt about the complete text. */
function summary(commands: readonly FoundCommand[], doubts: readonly FoundCommand[]): CommandVerdict {
  const orders = [
    ['deny', [...commands, ...doubts]],
    ['ask', [...doubts, ...commands]],
  ] as const
  for (const [verdict, order] of orders) {
    const decisive = order.find((each) => each.verdict === verdict)
    if (decisive === undefined) continue
    const { rule, text } = decisive
    const what = verdict === 'deny' ? 'Denied' : 'Needs approval'
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
function judgeCommand({ text, words, hazards, inputs }: ParsedCommand, judging: Judging): readonly FoundCommand[] {
  const { rules, depth, budget } = judging
  const wrapped = wrappedIn(words, inputs)
  const argv = literalArgv(words)
  if (wrapped !== undefined && (depth >= MAX_DEPTH || budget.left <= 0)) {
    return [{ text, argv, verdict: 'deny', rule: TOO_MANY }]
  }
  const own = ownVerdict({ words, argv, hazards, wrapped }, judging)
  const granted = own.verdict === 'allow' && wrapped?.isPlain === false ? { granted: own.rule } : {}
  const inner =
    wrapped === undefined ? [] : innerCommands(wrapped, words, { rules, depth: depth + 1, budget, ...granted })
  return [{ text, argv, ...own }, ...inner]
}

/** No real command has more programs that run each other. */
const MAX_DEPTH = 8
const MAX_INNER = 64
const TOO_MANY = 'it runs too many nested commands'

function literalArgv(words: readonly ParsedWord[]): readonly string[] | null {
  const argv = words.map(({ value }) => value)
  return argv.length > 0 && argv.every((word) => word !== null) ? argv : null
}

type Judged = {
  readonly words: readonly ParsedWord[]
  readonly argv: readonly string[] | null
  readonly hazards: readonly string[]
  readonly wrapped: Wrapped | undefined
}

type Decision = { readonly verdict: Verdict; readonly rule: string }

const ask = (rule: string): Decision => ({ verdict: 'ask', rule })

function ownVerdict({ words, argv, hazards, wrapped }: Judged, { rules, granted }: Judging): Decision {
  const denied = broadMatch(rules.deny, words)
  if (denied !== undefined) return { verdict: 'deny', rule: denied.name }
  const catastrophe = catastropheOf(words)
  if (catastrophe !== undefined) return { verdict: 'deny', rule: catastrophe }
  const asked = broadMatch(rules.ask, words)
  if (asked !== undefined) return ask(asked.name)
  if (hazards[0] !== undefined) return ask(hazards[0])
  if (argv === null) return ask(notLiteral(words))
  if (evaluators.has(argv[0]!)) return ask(`${argv[0]!} is a builtin that changes the shell or evaluates text`)
  if (wrapped !== undefined && wrapped.texts.length > 0) return ask(`${argv[0]!} runs shell code`)
  if (wrapped?.isPlain === true && wrapped.starts.length === 1) {
    return { verdict: 'allow', rule: `${argv[0]!} is judged by what it runs` }
  }
  return granted === undefined ? byAllowRules(argv, words, rules) : { verdict: 'allow', rule: granted }
}

/** Builtins that evaluate their arguments, or change the meaning of later commands. */
const evaluators: ReadonlySet<string> = new Set(
  `eval source . trap let read unset declare typeset local export readonly mapfile readarray enable bind alias unalias
  set shopt hash complete compgen compopt exec history fc getopts builtin umask ulimit disown suspend logout shift caller
  coproc`.split(/\s+/),
)

function notLiteral([program]: readonly ParsedWord[]): string {
  if (program === undefined) return 'it is not a command'
  return program.value === null ? 'the program it runs is not literal' : 'not all of its words are literal'
}

function byAllowRules(
  argv: readonly string[],
  words: readonly ParsedWord[],
  { allow, deny, ask: asks }: Rules,
): Decision {
  const plain = withoutGitOptions(argv)
  const matching = allow.filter((rule) => allowMatches(rule, plain))
  if (matching.length === 0) return ask('no rule allows it')
  const skipped = argv.length - plain.length
  const dangers = dangersOf(skipped === 0 ? words : words.toSpliced(1, skipped), 0)
  const covering = matching.find((rule) => dangers.every(({ index }) => isNamedBy(rule, plain, index)))
  const isUnknown = covering?.words[0]!.includes('*') === true && !isKnownProgram(argv[0]!)
  const mentioned = isUnknown ? mentionedIn(words, [...deny, ...asks]) : undefined
  if (mentioned !== undefined) return ask(`it may run ${shown(mentioned)}, which another rule is about`)
  if (covering !== undefined) return { verdict: 'allow', rule: covering.name }
  return ask(`${matching[0]!.name} does not cover it: ${dangers[0]!.why}`)
}

/** A word that would be denied or need approval if it were run: an unknown program may run its arguments. */
function mentionedIn(words: readonly ParsedWord[], rules: readonly Rule[]): string | undefined {
  if (rules.length === 0) return undefined
  const at = words.slice(0, MAX_MENTIONS).findIndex((_, index) => {
    return index > 0 && broadMatch(rules, words.slice(index, index + MAX_MENTIONS)) !== undefined
  })
  return at === -1 ? undefined : words[at]!.loose
}

const MAX_MENTIONS = 64

/** `git --no-pager log` is judged as `git log`. */
function withoutGitOptions(argv: readonly string[]): readonly string[] {
  if (argv[0] !== 'git') return argv
  const first = argv.findIndex((word, index) => index > 0 && !harmlessGitOptions.has(word))
  return first <= 1 ? argv : ['git', ...argv.slice(first)]
}

/** The dangers of a literal command and of the commands it runs, by index. */
function dangersOf(words: readonly ParsedWord[], depth: number): readonly Danger[] {
  const own = dangersIn(words.map(({ value }) => value ?? ''))
  const starts = depth < MAX_DEPTH ? (wrappedIn(words)?.starts ?? []) : []
  if (starts.length > 1 && !isList(words)) return [{ index: words.length, why: 'the command it runs is uncertain' }]
  const inner = starts
    .slice(0, MAX_INNER)
    .flatMap((start) => [
      { index: start, why: `it runs ${words[start]!.value ?? 'another program'}` },
      ...dangersOf(words.slice(start), depth + 1).map(({ index, why }) => ({ index: index + start, why })),
    ])
  return [...own, ...inner]
}

/** The commands a wrapper runs. If the start is uncertain, the first one counts, and all others that are denied. */
function innerCommands(wrapped: Wrapped, words: readonly ParsedWord[], judging: Judging): readonly FoundCommand[] {
  const isCertain = wrapped.starts.length === 1 || isList(words)
  const runs = wrapped.starts.flatMap((start, index) => {
    judging.budget.left -= 1
    if (judging.budget.left < 0) return judging.budget.left === -1 ? [forText(textOf(words), 'deny', TOO_MANY)] : []
    const inner = words.slice(start, endOfRun(words, start))
    const found = judgeCommand({ text: textOf(inner), words: inner, hazards: [] }, judging)
    return isCertain || index === 0 ? found : found.filter(({ verdict }) => verdict === 'deny')
  })
  return [...runs, ...wrapped.texts.flatMap((text) => judgeInnerText(text, judging))]
}

/** `find` may run several commands, each of which ends with a semicolon. */
function isList([program]: readonly ParsedWord[]): boolean {
  return baseName(program?.loose ?? '') === 'find'
}

function endOfRun(words: readonly ParsedWord[], start: number): number {
  if (!isList(words)) return words.length
  const length = words.slice(start).findIndex(({ value }) => value === ';' || value === '+')
  return length === -1 ? words.length : start + length
}

function textOf(words: readonly ParsedWord[]): string {
  return shorten(words.map(({ loose }) => loose).join(' '), MAX_TEXT)
}

function judgeInnerText(text: string, { rules, depth, budget }: Judging): readonly FoundCommand[] {
  budget.left -= 1
  if (budget.left < 0) return [forText(text, 'deny', TOO_MANY)]
  const { commands, doubt } = parseCommands(text)
  const found = commands.flatMap((each) => judgeCommand(each, { rules, depth, budget }))
  return doubt === undefined ? found : [...found, ...deniedTokens(text, rules), forText(text, 'ask', doubt)]
}

/** The first match of a deny rule in a text that cannot be parsed. */
function deniedTokens(text: string, { deny }: Rules): readonly FoundCommand[] {
  if (deny.length === 0) return []
  for (const words of rawCommands(text)) {
    const rule = broadMatch(deny, words)
    if (rule !== undefined) return [{ text: words[0]!.loose, argv: null, verdict: 'deny', rule: rule.name }]
  }
  return []
}

/** Git uses the configuration of its folder, and `cd` chose another folder. */
function withoutStrayGit(found: readonly FoundCommand[]): readonly FoundCommand[] {
  if (!found.some(({ argv }) => /^(?:cd|pushd|popd)$/.test(argv?.[0] ?? ''))) return found
  return found.map((each) =>
    each.argv?.[0] === 'git' && each.verdict === 'allow'
      ? { ...each, ...ask('git uses the configuration of the folder that cd enters') }
      : each,
  )
}

function forText(text: string, verdict: Verdict, rule: string): FoundCommand {
  return { text: shorten(text, MAX_TEXT), argv: null, verdict, rule }
}

/**
 * Every run of words in a text that cannot be parsed, as if each were a command. Quotes are removed, or taken as separators. Used to
 * find denied commands: bash runs the lines before the one it cannot parse.
 */
function* rawCommands(text: string): Generator<readonly ParsedWord[]> {
  const joined = text.slice(0, MAX_RAW_CHARS).replace(/\\\n/g, '')
  for (const instead of ['', ' ']) {
    const tokens = joined.replace(/["'\\]/g, instead).split(/[\s;&|()<>{}`$=,!]+/)
    const words = tokens.filter((word) => word !== '').map((word) => ({ value: word, loose: word }))
    for (const index of words.keys()) yield words.slice(index, index + MAX_RAW_WORDS)
  }
}

const MAX_RAW_CHARS = 200_000

const MAX_RAW_WORDS = 16

import { catastropheOf } from './catastrophes.ts'
import { commandsIn, type SeenCommand, type SeenWord } from './commands-in.ts'
import { dangersIn } from './dangers.ts'
import { harmlessGitOptions } from './git-dangers.ts'
import { allowMatches, baseName, broadMatch, isNamedBy } from './matching.ts'
import type { Danger } from './options.ts'
import { rawCommands } from './raw-tokens.ts'
import { readRules, type CommandRules, type Rules } from './rules.ts'
import { suspicionIn, tooMuch } from './suspicious-text.ts'
import { wrappedIn, type Wrapped } from './wrappers.ts'

export type Verdict = 'allow' | 'ask' | 'deny'

export type FoundCommand = {
  readonly text: string
  /** The program and its arguments as bash would run them; null when that is not literal. */
  readonly argv: readonly string[] | null
  readonly verdict: Verdict
  /** The rule that decided, or the reason why no rule could, in words. */
  readonly rule: string
}

export type CommandVerdict = {
  /** The strictest of all commands in it. */
  readonly verdict: Verdict
  readonly commands: readonly FoundCommand[]
  /** The rule or reason that decided. */
  readonly rule: string
  /** The same in a sentence for whoever wrote the command. */
  readonly reason: string
}

/**
 * Judges commands by rules. Allows only what is literal and understood in every part, finds what is denied wherever it
 * stands, and asks about the rest. Never throws on a command; wrong rules are refused here.
 */
export function commandJudge(rules: CommandRules): (command: string) => CommandVerdict {
  const read = readRules(rules)
  return (command) => judgeText(command, read)
}

function judgeText(command: string, rules: Rules): CommandVerdict {
  const excess = tooMuch(command)
  if (excess !== undefined) return summary(deniedTokens(command, rules), [whole(command, 'deny', excess)])
  const { commands: seen, doubt } = commandsIn(command)
  const found = withoutStrayGit(seen.flatMap((each) => judgeCommand(each, { rules, depth: 0 })))
  const denied = doubt === undefined ? [] : deniedTokens(command, rules)
  const suspicion = suspicionIn(command)
  const doubts = [
    ...(suspicion === undefined ? [] : [whole(command, suspicion.verdict, suspicion.rule)]),
    ...(doubt === undefined ? [] : [whole(command, 'ask', doubt)]),
    ...(seen.length === 0 ? [whole(command, 'ask', 'there is no command in it')] : []),
  ]
  return summary([...found, ...denied], doubts)
}

/** The strictest verdict decides. A denied command says more than a denied text, a text in doubt more than a command. */
function summary(commands: readonly FoundCommand[], doubts: readonly FoundCommand[]): CommandVerdict {
  const orders = [
    ['deny', [...commands, ...doubts]],
    ['ask', [...doubts, ...commands]],
  ] as const
  for (const [verdict, order] of orders) {
    const decisive = order.find((each) => each.verdict === verdict)
    if (decisive === undefined) continue
    const { rule, text } = decisive
    const said = text.length <= MAX_SAID ? text : `${text.slice(0, MAX_SAID)}…`
    return {
      verdict,
      commands,
      rule,
      reason: `${verdict === 'deny' ? 'Refused' : 'Not allowed by itself'}: ${said} (${rule}).`,
    }
  }
  const rules = [...new Set(commands.map(({ rule }) => rule))].join(', ')
  return { verdict: 'allow', commands, rule: rules, reason: 'Every command in it is allowed.' }
}

const MAX_SAID = 200

type Judging = {
  readonly rules: Rules
  /** How many commands this one is within. */
  readonly depth: number
  /** The rule that already named this command as part of another. */
  readonly granted?: string
}

/** A command and every command that it runs. */
function judgeCommand({ text, words, hazards }: SeenCommand, judging: Judging): readonly FoundCommand[] {
  const { rules, depth } = judging
  const wrapped = wrappedIn(words)
  const argv = literalArgv(words)
  if (wrapped !== undefined && depth >= MAX_DEPTH) {
    return [{ text, argv, verdict: 'deny', rule: `it is within more than ${MAX_DEPTH} other commands` }]
  }
  const own = ownVerdict({ words, argv, hazards, wrapped }, judging)
  const granted = own.verdict === 'allow' && wrapped?.isPlain === false ? { granted: own.rule } : {}
  const inner = wrapped === undefined ? [] : innerCommands(wrapped, words, { rules, depth: depth + 1, ...granted })
  return [{ text, argv, ...own }, ...inner]
}

/** More programs that run each other than this are a game. */
const MAX_DEPTH = 8

function literalArgv(words: readonly SeenWord[]): readonly string[] | null {
  const argv = words.map(({ value }) => value)
  return argv.length > 0 && argv.every((word) => word !== null) ? argv : null
}

type Judged = {
  readonly words: readonly SeenWord[]
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
  if (wrapped !== undefined && wrapped.texts.length > 0) return ask(`${argv[0]!} runs a text`)
  if (wrapped?.isPlain === true && wrapped.starts.length === 1) {
    return { verdict: 'allow', rule: `${argv[0]!} is judged by what it runs` }
  }
  return granted === undefined ? byAllowRules(argv, words, rules) : { verdict: 'allow', rule: granted }
}

/** Builtins that run or evaluate what they are given, or change what later commands mean. */
const evaluators: ReadonlySet<string> = new Set(
  `eval source . trap let read unset declare typeset local export readonly mapfile readarray enable bind alias unalias
  set shopt hash complete compgen compopt exec history fc getopts builtin umask ulimit disown suspend logout shift caller
  coproc`.split(/\s+/),
)

function notLiteral([program]: readonly SeenWord[]): string {
  if (program === undefined) return 'it is no command'
  return program.value === null ? 'which program it runs is not literal' : 'not all of its words are literal'
}

function byAllowRules(argv: readonly string[], words: readonly SeenWord[], { allow }: Rules): Decision {
  const plain = withoutGitOptions(argv)
  const matching = allow.filter((rule) => allowMatches(rule, plain))
  if (matching.length === 0) return ask('no rule allows it')
  const skipped = argv.length - plain.length
  const dangers = dangersOf(skipped === 0 ? words : words.toSpliced(1, skipped), 0)
  const covering = matching.find((rule) => dangers.every(({ index }) => isNamedBy(rule, plain, index)))
  if (covering !== undefined) return { verdict: 'allow', rule: covering.name }
  return ask(`${matching[0]!.name} does not cover it: ${dangers[0]!.why}`)
}

/** `git --no-pager log` is `git log`. */
function withoutGitOptions(argv: readonly string[]): readonly string[] {
  if (argv[0] !== 'git') return argv
  const first = argv.findIndex((word, index) => index > 0 && !harmlessGitOptions.has(word))
  return first <= 1 ? argv : ['git', ...argv.slice(first)]
}

/** The dangers of a literal command and of those that it runs, by their places in it. */
function dangersOf(words: readonly SeenWord[], depth: number): readonly Danger[] {
  const own = dangersIn(words.map(({ value }) => value ?? ''))
  const starts = depth < MAX_DEPTH ? (wrappedIn(words)?.starts ?? []) : []
  const inner = starts.flatMap((start) => [
    { index: start, why: `it runs ${words[start]!.value ?? 'another program'}` },
    ...dangersOf(words.slice(start), depth + 1).map(({ index, why }) => ({ index: index + start, why })),
  ])
  return [...own, ...inner]
}

/** What a wrapper runs. Where it may begin at several places, the first counts, and any at which something is denied. */
function innerCommands(wrapped: Wrapped, words: readonly SeenWord[], judging: Judging): readonly FoundCommand[] {
  const isCertain = wrapped.starts.length === 1 || isList(words)
  const runs = wrapped.starts.flatMap((start, index) => {
    const inner = words.slice(start, endOfRun(words, start))
    const found = judgeCommand({ text: textOf(inner), words: inner, hazards: [] }, judging)
    return isCertain || index === 0 ? found : found.filter(({ verdict }) => verdict === 'deny')
  })
  return [...runs, ...wrapped.texts.flatMap((text) => judgeInnerText(text, judging))]
}

/** `find` may run several commands, each until a semicolon. */
function isList([program]: readonly SeenWord[]): boolean {
  return baseName(program?.loose ?? '') === 'find'
}

function endOfRun(words: readonly SeenWord[], start: number): number {
  if (!isList(words)) return words.length
  const length = words.slice(start).findIndex(({ value }) => value === ';' || value === '+')
  return length === -1 ? words.length : start + length
}

function textOf(words: readonly SeenWord[]): string {
  return cut(words.map(({ loose }) => loose).join(' '))
}

function judgeInnerText(text: string, judging: Judging): readonly FoundCommand[] {
  if (judging.depth > MAX_DEPTH) return [whole(text, 'deny', `it is within more than ${MAX_DEPTH} other commands`)]
  const { commands, doubt } = commandsIn(text)
  const found = commands.flatMap((each) => judgeCommand(each, { rules: judging.rules, depth: judging.depth }))
  return doubt === undefined ? found : [...found, ...deniedTokens(text, judging.rules), whole(text, 'ask', doubt)]
}

/** In what cannot be parsed, the first word that a deny rule speaks of. */
function deniedTokens(text: string, { deny }: Rules): readonly FoundCommand[] {
  if (deny.length === 0) return []
  for (const words of rawCommands(text)) {
    const rule = broadMatch(deny, words)
    if (rule !== undefined) return [{ text: words[0]!.loose, argv: null, verdict: 'deny', rule: rule.name }]
  }
  return []
}

/** Git obeys the settings of the folder it is in, and `cd` chose another one. */
function withoutStrayGit(found: readonly FoundCommand[]): readonly FoundCommand[] {
  if (!found.some(({ argv }) => /^(?:cd|pushd|popd)$/.test(argv?.[0] ?? ''))) return found
  return found.map((each) =>
    each.argv?.[0] === 'git' && each.verdict === 'allow'
      ? { ...each, ...ask('git obeys the settings of the folder that cd goes to') }
      : each,
  )
}

function whole(text: string, verdict: Verdict, rule: string): FoundCommand {
  return { text: cut(text), argv: null, verdict, rule }
}

const MAX_TEXT = 2000

function cut(text: string): string {
  return text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT)}…`
}

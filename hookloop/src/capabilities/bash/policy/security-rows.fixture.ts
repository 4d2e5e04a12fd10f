import { commandLists } from './command-lists.fixture.ts'
import type { CommandRules } from './rules.ts'

/** The default policy of the rows. */
export const strictRules: CommandRules = {
  allow: ['ls', 'cat', 'echo', 'grep', 'find', 'sort', 'sed', 'true', 'git log', 'git status', 'git diff'],
  block: ['touch', 'rm', 'curl'],
}

type SecurityRow = {
  readonly title: string
  readonly rules: CommandRules
  /** The verdict of every command; `not allow` is ask or block. */
  readonly verdict: string
  readonly commands: readonly string[]
}

/** Commands that are hard to judge, by case of the security checklist. */
export const securityRows: readonly SecurityRow[] = [
  ...['security-rows.txt', 'verdict-rows.txt'].flatMap(commandLists).map(({ title, rules = strictRules, commands }) => {
    const [, id = '', verdict = '', words] = /^(B\d+ )?(allow|ask|block|not allow): (.*)$/.exec(title) ?? []
    return { title: `${id}${words}`, rules, verdict, commands }
  }),
  {
    title: 'B29: a blocked command is found after any number of others',
    rules: strictRules,
    verdict: 'block',
    commands: [`${'true;'.repeat(5_000)}touch $M`],
  },
  {
    title: 'B30: a text that is too large to parse is blocked',
    rules: { allow: ['*'] },
    verdict: 'block',
    commands: ['$('.repeat(20_000), `echo ${'a'.repeat(1_000_000)}`, `echo ${'{a,'.repeat(10_000)}`, '('.repeat(5_000)],
  },
  {
    title: 'B30: a large text with expansions is not allowed',
    rules: { allow: ['*'] },
    verdict: 'not allow',
    commands: [`echo ${'{a,b}'.repeat(10_000)}`, `echo ${'$(ls) '.repeat(5_000)}`],
  },
]

import type { CommandRules } from './rules.ts'
import { builtinRows } from './security-rows-builtins.fixture.ts'
import { shellRows } from './security-rows-grammar.fixture.ts'
import { programRows } from './security-rows-programs.fixture.ts'
import { tableRows } from './security-rows-tables.fixture.ts'

/** The default policy of the rows. */
export const strictRules: CommandRules = {
  allow: ['ls', 'cat', 'echo', 'grep', 'find', 'sort', 'sed', 'true', 'git log', 'git status', 'git diff'],
  deny: ['touch', 'rm', 'curl'],
}

export type SecurityRow = {
  readonly id: string
  readonly title: string
  readonly rules?: CommandRules
  /** The verdict of every command; `not allow` is ask or deny. */
  readonly verdict: 'allow' | 'deny' | 'not allow'
  readonly commands: readonly string[]
}

export const securityRows: readonly SecurityRow[] = [...shellRows, ...builtinRows, ...programRows, ...tableRows]

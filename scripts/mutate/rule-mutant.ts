/** A rule of the core that is turned off, and where the small world must notice it. */
export type RuleMutant = {
  readonly rule: string
  /** What happens without it. */
  readonly name: string
  /** Below `hookloop/src`. */
  readonly file: string
  /** Text that the file has exactly once, and what it becomes. */
  readonly from: string
  readonly to: string
  /** Which scenarios are run, every how many-th of them (default: all). */
  readonly agents: readonly string[]
  readonly kinds: readonly string[]
  readonly stride?: number
}

/** Where the text is, and which scenarios notice it: agents are separated by "&", kinds by a space. */
export const mutant = (
  [rule, name]: readonly [rule: string, name: string],
  [file, from, to]: readonly [file: string, from: string, to: string],
  [agents, kinds, stride]: readonly [agents: string, kinds: string, stride?: number],
): RuleMutant => ({
  rule,
  name,
  file,
  from,
  to,
  agents: agents.split(' & '),
  kinds: kinds.split(' '),
  ...(stride !== undefined && { stride }),
})

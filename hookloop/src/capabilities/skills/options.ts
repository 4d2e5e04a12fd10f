import { readOptions } from '../../values/check-options.ts'
import type { ModelSource } from '../../plugin.ts'
import type { Skill, SkillDefinition } from './skill.ts'

/** Options of `skills`. */
export type SkillsOptions = {
  /** Folders of skills, relative to `cwd`. Default `.claude/skills` and `.hookloop/skills`. */
  readonly dirs?: readonly string[]
  /** Skills defined in code. They override those of the same name on disk. Default none. */
  readonly skills?: readonly SkillDefinition[]
  /** The folder of the project, where commands of skills run. Default: the working directory of the process. */
  readonly cwd?: string
  /** Whether skills in the home folder of the user are included. They override those of the project. Default false. */
  readonly user?: boolean
  /** Which skills may run the commands in their text: hashes, or a function. Default none. */
  readonly trust?: readonly string[] | ((skill: Skill) => boolean)
  /** The models that skills may request, by name. Any other is ignored. Default none. */
  readonly models?: { readonly [name: string]: ModelSource }
  /** Tools that a skill can never disallow; `*` matches anything. Default `final_answer`. */
  readonly always?: readonly string[]
  /** Whether the input `/name arguments` uses a skill. Default true. */
  readonly commands?: boolean
  /** The number of skills. Default 100. */
  readonly maxSkills?: number
  /** The size of a SKILL.md. Default 65,536. */
  readonly maxSkillBytes?: number
  /** The length of the list of names and descriptions, which is part of every request. Default 16,000. */
  readonly maxListChars?: number
  /** The length of the arguments of a skill. Default 10,000. */
  readonly maxArgumentChars?: number
  /** The number of files that are listed for a skill. Default 100. */
  readonly maxResources?: number
  /** The number of bytes read of one file. Default 65,536. */
  readonly maxResourceBytes?: number
  /** The number of commands in the text of a skill. Default 10. */
  readonly maxCommands?: number
  /** The time a command may take. Default 10,000. */
  readonly commandTimeoutMs?: number
  /** The size of the output of a command. Default 16,384. */
  readonly maxCommandOutputBytes?: number
}

export const skillsDefaults = Object.freeze({
  dirs: Object.freeze(['.claude/skills', '.hookloop/skills'] as readonly string[]),
  skills: Object.freeze([] as readonly SkillDefinition[]),
  cwd: undefined,
  user: false,
  trust: Object.freeze([] as readonly string[]),
  models: Object.freeze({} as { readonly [name: string]: ModelSource }),
  always: Object.freeze(['final_answer'] as readonly string[]),
  commands: true,
  maxSkills: 100,
  maxSkillBytes: 65_536,
  maxListChars: 16_000,
  maxArgumentChars: 10_000,
  maxResources: 100,
  maxResourceBytes: 65_536,
  maxCommands: 10,
  commandTimeoutMs: 10_000,
  maxCommandOutputBytes: 16_384,
})

/** Checked options with the defaults filled in. */
export type SkillsPolicy = ReturnType<typeof readSkillsOptions>

export function readSkillsOptions(options: SkillsOptions) {
  const { cwd = process.cwd(), ...rest } = readOptions('skills', options, skillsDefaults)
  return { ...rest, cwd, isTrusted: trustOf(rest.trust) }
}

/** Anything but `true` means that the commands do not run. */
function trustOf(trust: NonNullable<SkillsOptions['trust']>): (skill: Skill) => boolean {
  if (typeof trust !== 'function') return ({ hash }) => trust.includes(hash)
  return (skill) => {
    try {
      const trusted: unknown = trust(skill)
      return trusted === true
    } catch {
      return false
    }
  }
}

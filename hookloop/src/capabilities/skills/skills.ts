import type { Capability, SlashCommand } from '../../agent/capability.ts'
import { checkOptions, checkPositiveIntegers, definedOptions, invalidOption } from '../../agent/check-options.ts'
import type { AgentState } from '../../state/agent-state.ts'
import type { ModelSource } from '../../state/inference.ts'
import { activeIn } from './active.ts'
import { readSkillFolders, type FoundSkills } from './find-skills.ts'
import { commandRunner } from './run-commands.ts'
import { toDeclaredSkill, type Skill, type SkillDefinition } from './skill.ts'
import { skillHooks } from './skill-hooks.ts'
import { skillTools } from './skill-tools.ts'

export type SkillsOptions = {
  /** Folders of skills, relative to `cwd`. */
  readonly dirs?: readonly string[]
  /** Skills that are declared in code. They go before those of the same name on disk. */
  readonly skills?: readonly SkillDefinition[]
  /** Where the project is, and where commands of skills run. By default where the process is. */
  readonly cwd?: string
  /** Whether the user's skills, in the home folder, are used as well. They go before those of the project. */
  readonly user?: boolean
  /** Which skills may run the commands in their text: by their hash, or as a function says. By default none. */
  readonly trust?: readonly string[] | ((skill: Skill) => boolean)
  /** The models that skills may ask for, by the names they call them by. A skill that asks for another gets none. */
  readonly models?: { readonly [name: string]: ModelSource }
  /** Tools that are never taken away by a skill, by name; `*` stands for anything. */
  readonly always?: readonly string[]
  /** Whether an input such as `/name arguments` uses a skill. */
  readonly commands?: boolean
  readonly maxSkills?: number
  /** Bytes of a SKILL.md. */
  readonly maxSkillBytes?: number
  /** Characters of all names and descriptions together, which are in every request. */
  readonly maxListChars?: number
  readonly maxArgumentChars?: number
  /** Files that are listed of one skill. */
  readonly maxResources?: number
  /** Bytes that are read of one of them. */
  readonly maxResourceBytes?: number
  /** Commands in the text of one skill. */
  readonly maxCommands?: number
  readonly commandTimeoutMs?: number
  /** Bytes of what one command writes. */
  readonly maxCommandOutput?: number
}

export const skillsPolicy = Object.freeze({
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
  maxCommandOutput: 16_384,
})

/**
 * Skills: instructions in folders, of which the model sees names and descriptions, and loads what it needs. They are read
 * once, here; what is on disk later is not looked at, except for resources.
 */
export function skills(options: SkillsOptions = {}): Capability {
  const policy = checkedPolicy(options)
  const { skills: found, problems } = readSkills(policy)
  const library = new Map(found.map((skill) => [skill.name, skill]))
  const rendering = { ...policy, isTrusted: trustOf(policy.trust), runCommand: commandRunner(policy) }
  const { load, read } = skillTools(library, { ...policy, rendering })
  return {
    name: 'skills',
    hooks: skillHooks(library, { ...policy, rendering, load, read }),
    tools: [load, read],
    models: Object.values(policy.models),
    slashCommands: policy.commands ? found.filter(({ userInvocable }) => userInvocable).map(toCommand) : [],
    notes: [describe(found, policy), ...problems, ...unknownModels(found, policy)],
  }
}

function toCommand({ name, description, scope }: Skill): SlashCommand {
  return { name, description, source: scope }
}

/** The skills that would be used with these options, for whoever shows them to people, and what is wrong with others. */
export function findSkills(options: SkillsOptions = {}): FoundSkills {
  return readSkills(checkedPolicy(options))
}

/** The names of the skills that are in force in a state. */
export function getActiveSkills(state: AgentState): readonly string[] {
  return activeIn(state).map(({ name }) => name)
}

type Policy = ReturnType<typeof checkedPolicy>

const whole = [
  ...(['maxSkills', 'maxSkillBytes', 'maxListChars', 'maxArgumentChars', 'maxResources'] as const),
  ...(['maxResourceBytes', 'maxCommands', 'commandTimeoutMs', 'maxCommandOutput'] as const),
]

function checkedPolicy(options: SkillsOptions) {
  checkOptions('skills', options, Object.keys(skillsPolicy))
  const { cwd = process.cwd(), ...given } = definedOptions(options)
  const policy = { ...skillsPolicy, ...given, cwd }
  checkPositiveIntegers('skills', policy, whole)
  for (const name of ['dirs', 'always'] as const) {
    if (!isTexts(policy[name])) throw invalidOption('skills', `"${name}" must be a list of texts`, policy[name])
  }
  if (typeof policy.trust !== 'function' && !isTexts(policy.trust)) {
    throw invalidOption('skills', '"trust" must be a list of hashes, or a function of a skill', policy.trust)
  }
  return policy
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string')
}

function readSkills(policy: Policy): FoundSkills {
  const declared = policy.skills.map((definition) => {
    const read = toDeclaredSkill(definition)
    if ('skill' in read) return read.skill
    throw invalidOption(
      'skills',
      `the skill ${JSON.stringify(definition.name)} cannot be used: ${read.problem}`,
      definition,
    )
  })
  const twice = declared.find(({ name }, i) => declared.findIndex((other) => other.name === name) !== i)
  if (twice !== undefined) throw invalidOption('skills', `two skills are called "${twice.name}"`, twice.name)
  return readSkillFolders(policy, declared)
}

/** Only a plain yes is one: whatever else comes of asking, the commands do not run. */
function trustOf(trust: Policy['trust']): (skill: Skill) => boolean {
  if (typeof trust !== 'function') return ({ hash }) => trust.includes(hash)
  return (skill) => {
    try {
      const said: unknown = trust(skill)
      return said === true
    } catch {
      return false
    }
  }
}

function describe(found: readonly Skill[], { trust }: Policy): string {
  const names = found.map(({ name }) => name).join(', ') || 'none'
  const nobody = typeof trust !== 'function' && trust.length === 0
  return `Skills: ${names}. Commands in their text ${nobody ? 'are not run' : 'are run for those that are trusted, without a sandbox'}.`
}

function unknownModels(found: readonly Skill[], { models }: Policy): readonly string[] {
  return found.flatMap(({ name, model }) => {
    if (model === undefined || Object.hasOwn(models, model)) return []
    return [`The skill "${name}" asks for the model "${model}", which "models" does not have: it gets the agent's own.`]
  })
}

import type { AgentState, Capability, SlashCommand } from '../../plugin.ts'
import { invalidOption } from '../../values/check-options.ts'
import { activeIn } from './active.ts'
import { readSkillFolders, type FoundSkills } from './find-skills.ts'
import { readSkillsOptions, type SkillsOptions, type SkillsPolicy } from './options.ts'
import { toDeclaredSkill, type Skill } from './skill.ts'
import { skillHooks } from './skill-hooks.ts'
import { skillTools } from './skill-tools.ts'

/**
 * Adds skills: folders with instructions in a SKILL.md. The model sees their names and descriptions, and loads the ones it
 * needs. They are read once, when this function is called; only their resources are read later.
 *
 * @example
 * createAgent({ model, use: [skills({ dirs: ['./skills'], user: true })] })
 */
export function skills(options: SkillsOptions = {}): Capability {
  const policy = readSkillsOptions(options)
  const { skills: found, problems } = readSkills(policy)
  const library = new Map(found.map((skill) => [skill.name, skill]))
  const { load, read } = skillTools(library, policy)
  return {
    name: 'skills',
    hooks: skillHooks(library, policy, { load, read }),
    tools: [load, read],
    models: Object.values(policy.models),
    slashCommands: policy.commands ? found.filter(({ userInvocable }) => userInvocable).map(toCommand) : [],
    notes: [describe(found, policy), ...problems, ...unknownModels(found, policy)],
    warnings: problems,
  }
}

function toCommand({ name, description, scope }: Skill): SlashCommand {
  return { name, description, source: scope }
}

/** Finds the skills that `skills` would use with the same options, and the problems of those it would not. */
export function findSkills(options: SkillsOptions = {}): FoundSkills {
  return readSkills(readSkillsOptions(options))
}

/** The names of the skills that are active in a state. */
export function getActiveSkills(state: AgentState): readonly string[] {
  return activeIn(state).map(({ name }) => name)
}

function readSkills(policy: SkillsPolicy): FoundSkills {
  const declared = policy.skills.map((definition) => {
    const read = toDeclaredSkill(definition)
    if ('skill' in read) return read.skill
    throw invalidOption(
      'skills',
      `the skill ${JSON.stringify(definition.name)} is invalid: ${read.problem}`,
      definition,
    )
  })
  const twice = declared.find(({ name }, i) => declared.findIndex((other) => other.name === name) !== i)
  if (twice !== undefined) throw invalidOption('skills', `two skills have the name "${twice.name}"`, twice.name)
  return readSkillFolders(policy, declared)
}

function describe(found: readonly Skill[], { trust }: SkillsPolicy): string {
  const names = found.map(({ name }) => name).join(', ') || 'none'
  const none = typeof trust !== 'function' && trust.length === 0
  return `Skills: ${names}. Commands in their text ${none ? 'do not run' : 'run for trusted skills, without a sandbox'}.`
}

function unknownModels(found: readonly Skill[], { models }: SkillsPolicy): readonly string[] {
  return found.flatMap(({ name, model }) => {
    if (model === undefined || Object.hasOwn(models, model)) return []
    return [`The model "${model}" of the skill "${name}" is not in "models": the model of the agent is used.`]
  })
}

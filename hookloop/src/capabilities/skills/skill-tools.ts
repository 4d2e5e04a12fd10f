import { tool, type Tool } from '../../plugin.ts'
import type { JsonObject } from '../../values/json.ts'
import type { SkillsPolicy } from './options.ts'
import { renderSkill } from './render-skill.ts'
import { readResource } from './resources.ts'
import type { Skill } from './skill.ts'
import { shorten } from '../../values/text.ts'
import { objectSchema } from '../../values/schema.ts'

export type SkillTool = Tool<JsonObject, JsonObject>
export type Library = ReadonlyMap<string, Skill>

/**
 * The tools for the model: one whose description lists the skills, and one for their files. The list is the same in every
 * request of an agent, so that the provider's prompt cache stays valid.
 */
export function skillTools(
  library: Library,
  policy: SkillsPolicy,
): { readonly load: SkillTool; readonly read: SkillTool } {
  const offered = [...library.values()].filter(({ modelInvocable }) => modelInvocable)
  return { load: loadTool(library, offered, policy), read: readTool(library, policy) }
}

function loadTool(library: Library, offered: readonly Skill[], policy: SkillsPolicy): SkillTool {
  const { maxListChars, maxArgumentChars } = policy
  return tool({
    name: 'load_skill',
    description:
      'Loads the instructions of a skill. If a task matches its description, load it once before you start. ' +
      `A skill is advice on how to work, not an instruction from the user.\n${listSkills(offered, maxListChars)}`,
    input: objectSchema(
      {
        skill_name: { type: 'string', description: 'One of the names in the list.' },
        arguments: { type: 'string', maxLength: maxArgumentChars, description: 'What to use the skill on.' },
      },
      ['skill_name'],
    ),
    maxOutputChars: 1_000_000, // large skills are rejected when read; a truncated instruction is a different one
    execute: (args, { signal }) => {
      const { skill_name, arguments: given = '' } = args as { readonly skill_name: string; readonly arguments?: string }
      const skill = library.get(skill_name)
      if (skill === undefined) throw unknownSkill(skill_name, offered)
      if (!skill.modelInvocable) throw new Error(`Only the user can invoke the skill "${skill_name}".`)
      return renderSkill(skill, given, { ...policy, signal })
    },
  })
}

function readTool(library: Library, { maxResourceBytes }: SkillsPolicy): SkillTool {
  return tool({
    name: 'read_skill_resource',
    description: 'Reads a file of a skill, by a path from the list that load_skill returned.',
    input: objectSchema(
      {
        skill_name: { type: 'string' },
        path: { type: 'string', maxLength: 1_000, description: 'For example "references/format.md".' },
      },
      ['skill_name', 'path'],
    ),
    concurrent: true,
    idempotent: true,
    maxOutputChars: maxResourceBytes + 1_000,
    execute: (args) => {
      const { skill_name, path } = args as { readonly skill_name: string; readonly path: string }
      const skill = library.get(skill_name)
      if (skill === undefined) throw unknownSkill(skill_name, [...library.values()])
      if (skill.folder === undefined) throw new Error(`The skill "${skill_name}" has no resources.`)
      return readResource(skill.folder, path, maxResourceBytes)
    },
  })
}

/** One line per skill. If the list is too long, every line is shortened and none is omitted. */
function listSkills(offered: readonly Skill[], maxChars: number): string {
  if (offered.length === 0) return 'There are no skills.'
  const lines = offered.map(describeSkill)
  const each = Math.max(80, Math.floor(maxChars / offered.length))
  const isLong = lines.join('\n').length > maxChars
  const shown = isLong ? lines.map((line) => shorten(line, each)) : lines
  return `Skills:\n${shown.join('\n')}`
}

function describeSkill({ name, description, argumentHint }: Skill): string {
  const hint = argumentHint === undefined ? '' : ` (arguments: ${argumentHint})`
  return `- ${name}: ${description}${hint}`
}

function unknownSkill(name: string, offered: readonly Skill[]): Error {
  const names = offered.map((skill) => skill.name).join(', ') || 'none: there are no skills'
  return new Error(`There is no skill ${JSON.stringify(name.slice(0, 80))}. Use one of: ${names}.`)
}

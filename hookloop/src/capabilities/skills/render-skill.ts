import { relative } from 'node:path'
import { fillArguments } from './fill-arguments.ts'
import { listResources } from './resources.ts'
import { outputOf, splitCommands, type CommandLimits, type RunCommand } from './run-commands.ts'
import type { Skill } from './skill.ts'

export type Rendering = CommandLimits & {
  readonly maxResources: number
  readonly isTrusted: (skill: Skill) => boolean
  readonly runCommand: RunCommand
}

/**
 * What is read of a skill when it is used: its text with arguments in it, what its commands wrote if it is trusted, and the
 * list of its resources. Everything is put in once: neither arguments nor output are looked at for places or commands.
 */
export async function renderSkill(
  skill: Skill,
  given: string,
  { signal, ...how }: Rendering & { readonly signal: AbortSignal },
): Promise<string> {
  const pieces = splitCommands(skill.body)
  const commands = (pieces.length - 1) / 2
  const runs = commands > 0 && commands <= how.maxCommands && how.isTrusted(skill)
  const rendered: string[] = []
  let used = given === ''
  for (const [i, piece] of pieces.entries()) {
    if (i % 2 === 0) {
      const filled = fillArguments(piece, given)
      used ||= filled.used
      rendered.push(filled.text)
    } else if (runs) {
      rendered.push(await outputOf(piece, how.runCommand(piece, { given, folder: skill.folder, signal })))
      used ||= /\$(?:ARGUMENTS|\d)/.test(piece)
    } else {
      rendered.push(`!\`${piece}\``)
    }
  }
  const notes = [
    ...(used ? [] : [`ARGUMENTS: ${given}`]),
    ...(commands > 0 && !runs ? [notRun(commands, how.maxCommands)] : []),
    ...(await resourceNotes(skill, how)),
  ]
  return [`# Skill: ${skill.name}`, rendered.join(''), ...notes].join('\n\n')
}

function notRun(commands: number, max: number): string {
  const why = commands > max ? `it has more than ${max}` : 'it is not trusted to run any'
  return `[The commands in this skill were not run: ${why}.]`
}

async function resourceNotes({ name, folder }: Skill, { cwd, maxResources }: Rendering): Promise<readonly string[]> {
  if (folder === undefined) return []
  const files = await listResources(folder, maxResources)
  const inside = relative(cwd, folder)
  const shown = inside.startsWith('..') ? folder : inside || '.'
  if (files.length === 0) return [`Folder of the skill: ${shown}`]
  const list = files.map((file) => `- ${file}`).join('\n')
  return [
    `Folder of the skill: ${shown}\nResources, to be read with read_skill_resource, skill_name "${name}":\n${list}`,
  ]
}

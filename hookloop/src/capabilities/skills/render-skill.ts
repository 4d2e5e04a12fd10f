import { relative } from 'node:path'
import { messageOf } from '../../errors.ts'
import { sanitizeText } from '../../system/sanitize-text.ts'
import { minimalEnvironment } from '../../system/processes/minimal-environment.ts'
import { runProcess } from '../../system/processes/run-process.ts'
import { fillArguments, splitArguments } from './fill-arguments.ts'
import type { SkillsPolicy } from './options.ts'
import { listResources } from './resources.ts'
import type { Skill } from './skill.ts'

type Use = SkillsPolicy & { readonly given: string; readonly folder: string | undefined; readonly signal: AbortSignal }

/**
 * The text of a skill when it is used: with its arguments, the output of its commands if it is trusted, and the list of its
 * resources. Everything is inserted once: neither arguments nor output are searched for placeholders or commands.
 */
export async function renderSkill(
  skill: Skill,
  given: string,
  options: SkillsPolicy & { readonly signal: AbortSignal },
): Promise<string> {
  const parts = skill.body.split(/!`([^`\n]+)`/) // text, command, text, …
  const commands = (parts.length - 1) / 2
  const runs = commands > 0 && commands <= options.maxCommands && options.isTrusted(skill)
  const rendered: string[] = []
  let used = given === ''
  for (const [i, part] of parts.entries()) {
    if (i % 2 === 0) {
      const filled = fillArguments(part, given)
      used ||= filled.used
      rendered.push(filled.text)
    } else if (runs) {
      rendered.push(await outputOf(part, { ...options, given, folder: skill.folder }))
      used ||= /\$(?:ARGUMENTS|\d)/.test(part)
    } else {
      rendered.push(`!\`${part}\``)
    }
  }
  const notes = [
    ...(used ? [] : [`ARGUMENTS: ${given}`]),
    ...(commands > 0 && !runs ? [notRun(commands, options.maxCommands)] : []),
    ...resourceNotes(skill, options),
  ]
  return [`# Skill: ${skill.name}`, rendered.join(''), ...notes].join('\n\n')
}

/** The output of a command, or a note that it failed: the skill is still useful without it. */
async function outputOf(command: string, use: Use): Promise<string> {
  try {
    return await runCommand(command, use)
  } catch (thrown) {
    return `[the command ${JSON.stringify(command)} failed: ${messageOf(thrown)}]`
  }
}

/**
 * Runs a command in a shell with a minimal environment. Arguments are passed as the variables `$ARGUMENTS`, `$0`, `$1`, … and
 * never as part of the command, so that text from a model is not executed.
 */
async function runCommand(command: string, { given, folder, signal, ...limits }: Use): Promise<string> {
  const { cwd, commandTimeoutMs, maxCommandOutputBytes } = limits
  const result = await runProcess(['/bin/sh', '-c', command, ...splitArguments(given)], {
    cwd,
    env: minimalEnvironment({ ARGUMENTS: given, ...(folder !== undefined && { SKILL_DIR: folder }) }, { cwd }),
    timeoutMs: commandTimeoutMs,
    signal,
    output: { head: maxCommandOutputBytes, tail: 0 },
  })
  if (result.ended === 'timedOut') throw new Error(`it did not end within ${commandTimeoutMs} ms`)
  if (result.ended !== 'exited') throw new Error(result.problem ?? 'it was cancelled')
  const { head, droppedBytes } = result.stdout
  const output = sanitizeText(head).trimEnd() + (droppedBytes > 0 ? `\n[${droppedBytes} more bytes]` : '')
  if (result.exitCode === 0) return output
  const details = sanitizeText(result.stderr.head).trim().slice(0, 500)
  throw new Error(`it ended with ${result.exitCode ?? result.signal}${details === '' ? '' : `: ${details}`}`)
}

function notRun(commands: number, max: number): string {
  const why = commands > max ? `it has more than ${max}` : 'it is not trusted to run commands'
  return `[The commands in this skill were not run: ${why}.]`
}

function resourceNotes({ name, folder }: Skill, { cwd, maxResources }: SkillsPolicy): readonly string[] {
  if (folder === undefined) return []
  const files = listResources(folder, maxResources)
  const inside = relative(cwd, folder)
  const shown = inside.startsWith('..') ? folder : inside || '.'
  if (files.length === 0) return [`Folder of the skill: ${shown}`]
  const list = files.map((file) => `- ${file}`).join('\n')
  return [
    `Folder of the skill: ${shown}\nResources, which read_skill_resource reads with skill_name "${name}":\n${list}`,
  ]
}

import { realpathSync } from 'node:fs'
import { basename, join, relative, sep } from 'node:path'
import type { SlashCommand } from '../../../core/agent/capability.ts'
import { isCommandName } from '../../../core/agent/slash-commands.ts'
import { clause, messageOf } from '../../../errors.ts'
import { readFrontMatter } from '../../../system/files/front-matter.ts'
import { sanitizeText } from '../../../system/sanitize-text.ts'
import { readText } from '../../../system/files/read-text.ts'
import { realPathOf } from '../../../system/files/real-path.ts'
import { HINT, markdownFiles } from '../../heads.ts'
import { stringIn } from '../../text.ts'
import { isInside, realPath } from '../../trust/fingerprint.ts'
import { userDir } from './read-settings.ts'

export type CommandFile = SlashCommand & { readonly body: string }

export type FoundCommands = {
  readonly commands: ReadonlyMap<string, CommandFile>
  /** Files that are not used, and why. */
  readonly problems: readonly string[]
}

const MAX_BYTES = 65_536
const MAX_DESCRIPTION = 200

/**
 * Reads the commands of the user and of a project. Never throws. If two have the same name, the first is used, so that a
 * project cannot replace a command of the user. Links of a project that lead out of its folder are not read.
 */
export function findCommands(dir: string, home: string | false | undefined): FoundCommands {
  const commands = new Map<string, CommandFile>()
  const problems: string[] = []
  const own = userDir(home)
  const places = [
    ...(own === undefined ? [] : [{ folder: join(own, 'commands'), source: 'user' as const, within: undefined }]),
    { folder: join(dir, '.claude', 'commands'), source: 'project' as const, within: dir },
  ]
  const seen = new Set<string>() // the home folder may be the project
  for (const { folder, source, within } of places) {
    const root = realPathOf(folder)
    if (root === undefined || seen.has(root)) continue
    seen.add(root)
    if (within !== undefined && !isInside(realPath(within), root)) {
      problems.push(`${folder} is a link to a folder outside the project: its commands are not used.`)
      continue
    }
    for (const file of commandFiles(root)) {
      const name = basename(file, '.md')
      const read = commands.has(name)
        ? `there is a ${commands.get(name)!.source} command with that name`
        : isCommandName(name)
          ? readCommand(file, within && root)
          : 'its name must have at most 64 letters, digits, "_" and "-"'
      if (typeof read !== 'string') commands.set(name, { name, source, ...read })
      else problems.push(`The command ${JSON.stringify(relative(root, file).slice(0, 80))} is not used: ${read}.`)
    }
  }
  return { commands, problems }
}

/** Reads a command, or says why it is not used. Its real path must be in `root`, if that is given. */
function readCommand(file: string, root: string | undefined): Pick<CommandFile, 'description' | 'body'> | string {
  try {
    const real = realpathSync(file)
    if (root !== undefined && !isInside(root, real)) return 'it is a link to a file outside the commands folder'
    const text = readText(real, { maxBytes: MAX_BYTES })
    const { fields, body } = readFrontMatter(text.replace(HINT, ''), { plainTexts: true })
    const prompt = sanitizeText(body).trim()
    const said = sanitizeText(stringIn(fields['description'])).replace(/\s+/g, ' ').trim()
    const description = said.slice(0, MAX_DESCRIPTION).toWellFormed()
    return prompt === '' ? 'it is empty' : { description, body: prompt }
  } catch (thrown) {
    return clause(messageOf(thrown))
  }
}

/** Files of outer folders first. Folders are only for order. */
function commandFiles(root: string): readonly string[] {
  const depth = (file: string): number => file.split(sep).length
  return markdownFiles(root).toSorted((a, b) => depth(a) - depth(b))
}

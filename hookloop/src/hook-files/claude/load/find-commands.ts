import { readdirSync, realpathSync, type Dirent } from 'node:fs'
import { basename, join, relative } from 'node:path'
import type { SlashCommand } from '../../../agent/capability.ts'
import { isCommandName } from '../../../agent/slash-commands.ts'
import { messageOf } from '../../../errors.ts'
import { readFrontMatter } from '../../../system/files/front-matter.ts'
import { sanitizeText } from '../../../system/sanitize-text.ts'
import { readText } from '../../../system/files/read-text.ts'
import { realPathOf } from '../../../system/files/real-path.ts'
import { isInside } from '../../trust/fingerprint.ts'
import { HINT } from './front-matter-hooks.ts'
import { userDir } from './read-settings.ts'

export type CommandFile = SlashCommand & { readonly body: string }

export type FoundCommands = {
  readonly commands: ReadonlyMap<string, CommandFile>
  /** What was left out, and why. */
  readonly problems: readonly string[]
}

const MAX_BYTES = 65_536
const MAX_ENTRIES = 1_000
const MAX_DESCRIPTION = 200

/**
 * Reads the commands of the user and of a project. Never throws. Of two of one name the first stays, so that a project
 * cannot put its own in place of the user's. What a link of a project leads out of its folder to is not read.
 */
export function findCommands(dir: string, home: string | false | undefined): FoundCommands {
  const commands = new Map<string, CommandFile>()
  const problems: string[] = []
  const own = userDir(home)
  const places = [
    ...(own === undefined ? [] : [{ folder: join(own, 'commands'), source: 'user' as const, within: undefined }]),
    { folder: join(dir, '.claude', 'commands'), source: 'project' as const, within: dir },
  ]
  const seen = new Set<string>() // a home may be a project
  for (const { folder, source, within } of places) {
    const root = realPathOf(folder)
    if (root === undefined || seen.has(root)) continue
    seen.add(root)
    if (within !== undefined && !isInside(realPathOf(within) ?? within, root)) {
      problems.push(`${folder} is a link that leads out of the project: its commands are not used.`)
      continue
    }
    for (const file of textsIn(root)) {
      const name = basename(file, '.md')
      const say = (problem: string): void =>
        void problems.push(`The command ${JSON.stringify(relative(root, file).slice(0, 80))} is not used: ${problem}.`)
      if (!isCommandName(name)) say('its name must be letters, digits, "_" and "-", 64 at most')
      else if (commands.has(name)) say(`there is one of that name (${commands.get(name)!.source})`)
      else read(file, { name, source, root: within && root, say, commands })
    }
  }
  return { commands, problems }
}

type Reading = {
  readonly name: string
  readonly source: 'user' | 'project'
  /** The folder that its real path must be in. */
  readonly root: string | undefined
  readonly say: (problem: string) => void
  readonly commands: Map<string, CommandFile>
}

function read(file: string, { name, source, root, say, commands }: Reading): void {
  try {
    const real = realpathSync(file)
    if (root !== undefined && !isInside(root, real)) return say('it is a link that leads out of the folder of commands')
    const text = readText(real, { maxBytes: MAX_BYTES })
    const { fields, body } = readFrontMatter(text.replace(HINT, ''), { plainTexts: true })
    const words = sanitizeText(body).trim()
    if (words === '') return say('it is empty')
    const said = typeof fields['description'] === 'string' ? fields['description'] : ''
    const description = sanitizeText(said).replace(/\s+/g, ' ').trim().slice(0, MAX_DESCRIPTION).toWellFormed()
    commands.set(name, { name, description, source, body: words })
  } catch (thrown) {
    say(messageOf(thrown).replace(/\.$/, ''))
  }
}

/** Every file `….md`, also in folders, which are only for order; those nearest first. Links to folders are not followed. */
function textsIn(root: string): readonly string[] {
  const files: string[] = []
  const folders = [root]
  for (let seen = 0; folders.length > 0 && seen < MAX_ENTRIES;) {
    const folder = folders.shift()!
    for (const entry of entriesOf(folder)) {
      if (++seen > MAX_ENTRIES) break
      const path = join(folder, entry.name)
      if (entry.isDirectory()) folders.push(path)
      else if (entry.name.endsWith('.md')) files.push(path)
    }
  }
  return files
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).toSorted((a, b) => (a.name < b.name ? -1 : 1))
  } catch {
    return []
  }
}

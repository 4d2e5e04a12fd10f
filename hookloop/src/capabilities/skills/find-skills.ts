import { readdirSync } from 'node:fs'
import { join, resolve, sep } from 'node:path'
import { homeFolder } from '../../system/files/user-folders.ts'
import { messageOf, clause } from '../../errors.ts'
import { readFrontMatter } from '../../system/files/front-matter.ts'
import { readText } from '../../system/files/read-text.ts'
import { realPathOf } from '../../system/files/real-path.ts'
import type { SkillsPolicy } from './options.ts'
import { toSkill, type ReadSkill, type Skill } from './skill.ts'

/** The skills that were found, and why others cannot be used. */
export type FoundSkills = { readonly skills: readonly Skill[]; readonly problems: readonly string[] }

const PLACES = ['.claude/skills', '.hookloop/skills'] as const
/** The number of entries of a folder that are read. */
const MAX_ENTRIES = 1_000

/**
 * Reads skills from folders, those of the user first. Never throws: invalid skills are reported in `problems`. Of two skills
 * with the same name the first is used, so that a project cannot replace a skill of the user.
 */
export function readSkillFolders(policy: SkillsPolicy, known: readonly Skill[] = []): FoundSkills {
  const found = new Map(known.map((skill) => [skill.name, skill]))
  const problems: string[] = []
  const folders = [
    ...(policy.user ? PLACES.map((dir) => ({ path: join(homeFolder(), dir), scope: 'user' as const })) : []),
    ...policy.dirs.map((dir) => ({ path: resolve(policy.cwd, dir), scope: 'project' as const })),
  ]
  const seen = new Set<string>()
  for (const { path, scope } of folders) {
    const root = realPathOf(path)
    if (root === undefined && scope === 'project' && !isDefault(path, policy))
      problems.push(`The folder ${path} does not exist.`)
    if (root === undefined || seen.has(root)) continue
    seen.add(root)
    for (const entry of namesIn(root, problems)) {
      if (found.size >= policy.maxSkills) {
        problems.push(
          `There are more than ${policy.maxSkills} skills: those from "${entry}" in ${path} on are skipped.`,
        )
        break
      }
      const read = readSkill(root, entry, { scope, maxBytes: policy.maxSkillBytes })
      if (read !== undefined)
        problems.push(
          ...add(found, read).map((problem) => `The skill ${JSON.stringify(entry.slice(0, 80))}${problem}.`),
        )
    }
  }
  return { skills: [...found.values()], problems }
}

/** A missing default folder is normal; a missing folder from the options is a mistake. */
function isDefault(path: string, { cwd }: SkillsPolicy): boolean {
  return PLACES.some((dir) => resolve(cwd, dir) === path)
}

/** Adds a skill, and returns its problems. */
function add(found: Map<string, Skill>, read: ReadSkill): readonly string[] {
  if ('problem' in read) return [` is ignored: ${read.problem}`]
  const { skill, remarks } = read
  const other = found.get(skill.name)
  if (other !== undefined)
    return [` of scope ${skill.scope} is ignored: scope ${other.scope} has one with the same name`]
  found.set(skill.name, skill)
  return remarks.map((remark) => `: ${remark}`)
}

function namesIn(root: string, problems: string[]): readonly string[] {
  try {
    const names = readdirSync(root).toSorted()
    if (names.length > MAX_ENTRIES)
      problems.push(`Only the first ${MAX_ENTRIES} entries of a folder of skills are read.`)
    return names.slice(0, MAX_ENTRIES)
  } catch (thrown) {
    problems.push(`A folder of skills cannot be read: ${clause(messageOf(thrown))}.`)
    return []
  }
}

/** Reads one folder with a SKILL.md in it. Any other entry is skipped. */
function readSkill(
  root: string,
  entry: string,
  { scope, maxBytes }: { scope: Skill['scope']; maxBytes: number },
): ReadSkill | undefined {
  const folder = realPathOf(join(root, entry))
  const file = folder && realPathOf(join(folder, 'SKILL.md'))
  if (folder === undefined || file === undefined) return undefined
  if (!folder.startsWith(root + sep)) return { problem: 'its folder is a link to outside the folder of skills' }
  if (!file.startsWith(folder + sep)) return { problem: 'its SKILL.md is a link to outside its folder' }
  try {
    const text = readText(file, { maxBytes, called: 'its SKILL.md' })
    const { fields, body } = readFrontMatter(text, { plainTexts: true })
    return toSkill({ fields, body, text, folder, folderName: entry, scope })
  } catch (thrown) {
    return { problem: clause(messageOf(thrown)) }
  }
}

import { readdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve, sep } from 'node:path'
import { messageOf } from '../../errors.ts'
import { readFrontMatter } from '../../system/files/front-matter.ts'
import { readText } from '../../system/files/read-text.ts'
import { realPathOf } from '../../system/files/real-path.ts'
import { toSkill, type ReadSkill, type Skill } from './skill.ts'

export type SkillPlaces = {
  /** Folders of skills, relative to `cwd`. */
  readonly dirs: readonly string[]
  readonly cwd: string
  /** Whether the skills of the user, in the home folder, are there as well. */
  readonly user: boolean
  readonly maxSkills: number
  readonly maxSkillBytes: number
}

export type FoundSkills = { readonly skills: readonly Skill[]; readonly problems: readonly string[] }

const PLACES = ['.claude/skills', '.hookloop/skills'] as const
/** Entries of a folder that are looked at. More than that is no folder of skills. */
const MAX_ENTRIES = 1_000

/**
 * Reads the skills in some folders, those of the user first. Never throws: what cannot be used is told in `problems`. Of two skills of
 * one name the first stays, so that a project cannot put its own in place of the user's.
 */
export function readSkillFolders(places: SkillPlaces, known: readonly Skill[] = []): FoundSkills {
  const found = new Map(known.map((skill) => [skill.name, skill]))
  const problems: string[] = []
  const folders = [
    ...(places.user ? PLACES.map((dir) => ({ path: join(homedir(), dir), scope: 'user' as const })) : []),
    ...places.dirs.map((dir) => ({ path: resolve(places.cwd, dir), scope: 'project' as const })),
  ]
  const seen = new Set<string>()
  for (const { path, scope } of folders) {
    const root = realPathOf(path)
    if (root === undefined && scope === 'project' && !isUsual(path, places))
      problems.push(`There is no folder ${path}.`)
    if (root === undefined || seen.has(root)) continue
    seen.add(root)
    for (const entry of namesIn(root, problems)) {
      if (found.size >= places.maxSkills) {
        problems.push(
          `There are more than ${places.maxSkills} skills: those from "${entry}" in ${path} on are left out.`,
        )
        break
      }
      const read = readSkill(root, entry, { scope, maxBytes: places.maxSkillBytes })
      if (read === undefined) continue
      take(read, { entry, found, problems })
    }
  }
  return { skills: [...found.values()], problems }
}

/** That one of the usual folders is not there is an ordinary thing; that one is not which somebody named is a mistake. */
function isUsual(path: string, { cwd }: SkillPlaces): boolean {
  return PLACES.some((usual) => resolve(cwd, usual) === path)
}

type Taking = { readonly entry: string; readonly found: Map<string, Skill>; readonly problems: string[] }

function take(read: ReadSkill, { entry, found, problems }: Taking): void {
  const shown = JSON.stringify(entry.slice(0, 80))
  if ('problem' in read) {
    problems.push(`The skill ${shown} is not used: ${read.problem}.`)
    return
  }
  const { skill, remarks } = read
  const other = found.get(skill.name)
  if (other !== undefined) {
    problems.push(`The skill ${shown} of scope ${skill.scope} is not used: there is one of that name (${other.scope}).`)
    return
  }
  found.set(skill.name, skill)
  for (const remark of remarks) problems.push(`The skill ${shown}: ${remark}.`)
}

function namesIn(root: string, problems: string[]): readonly string[] {
  try {
    const names = readdirSync(root).toSorted()
    if (names.length > MAX_ENTRIES)
      problems.push(`Of the entries of a folder of skills only ${MAX_ENTRIES} are looked at.`)
    return names.slice(0, MAX_ENTRIES)
  } catch (thrown) {
    problems.push(`A folder of skills cannot be read: ${messageOf(thrown)}.`)
    return []
  }
}

/** One folder with a SKILL.md in it. Whatever else lies there is not a skill, and not a problem either. */
function readSkill(
  root: string,
  entry: string,
  { scope, maxBytes }: { scope: Skill['scope']; maxBytes: number },
): ReadSkill | undefined {
  const folder = realPathOf(join(root, entry))
  const file = folder && realPathOf(join(folder, 'SKILL.md'))
  if (folder === undefined || file === undefined) return undefined
  if (!folder.startsWith(root + sep)) return { problem: 'its folder is a link that leads out of the folder of skills' }
  if (!file.startsWith(folder + sep)) return { problem: 'its SKILL.md is a link that leads out of its folder' }
  try {
    const text = readText(file, { maxBytes, called: 'its SKILL.md' })
    const { fields, body } = readFrontMatter(text, { plainTexts: true })
    return toSkill({ fields, body, text, folder, folderName: entry, scope })
  } catch (thrown) {
    return { problem: messageOf(thrown).replace(/\.$/, '') }
  }
}

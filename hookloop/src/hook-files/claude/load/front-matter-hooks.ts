import { basename, dirname, join, sep } from 'node:path'
import { isJsonObject, type Json, type JsonObject } from '../../../state/json.ts'
import { problemOf } from '../../../errors.ts'
import { readFrontMatter } from '../../../system/files/front-matter.ts'
import { entriesOf, markdownFiles } from '../../markdown-files.ts'
import { readWithFingerprint } from '../../trust/fingerprint.ts'
import type { ConfigProblem, HookSource } from './handlers.ts'

/** The settings of one file, or the hooks of one in the same shape. */
export type ReadFile = { readonly source: HookSource; readonly value: JsonObject }

/** Often written as `[issue] [priority]`, which is not YAML. */
export const HINT = /^argument-hint:.*$/m

/**
 * The hooks in the front matter of `skills/<name>/SKILL.md`, `commands/<name>.md` (skills of one file) and
 * `agents/<name>.md` in a `.claude` folder. Commands and agents may be in subfolders.
 */
export function readFrontMatterHooks(claudeDir: string, problems: ConfigProblem[]): readonly ReadFile[] {
  const skills = entriesOf(join(claudeDir, 'skills')).map(({ name }) => join(claudeDir, 'skills', name, 'SKILL.md'))
  const commands = markdownFiles(join(claudeDir, 'commands'), { followLinks: true })
  const agents = markdownFiles(join(claudeDir, 'agents'), { followLinks: true })
  return [...skills, ...commands, ...agents].flatMap((file) => readHead(headSource(file), problems))
}

/** Whether a file is a skill, a command or an agent, by its path. */
export function headSource(file: string): HookSource {
  const root = dirname(file)
  if (basename(file) === 'SKILL.md') return { kind: 'skill', file, root, name: basename(root) }
  const nearest = root.split(sep).findLast((name) => ['agents', 'commands', 'skills'].includes(name))
  return { kind: nearest === 'agents' ? 'agent' : 'skill', file, root, name: basename(file, '.md') }
}

/** The hooks in the front matter of one file. */
export function readHead(source: HookSource, problems: ConfigProblem[]): readonly ReadFile[] {
  const printed = readWithFingerprint(source.file)
  if (printed === undefined || !/^hooks:/m.test(printed.text)) return []
  const { text, path, hash } = printed
  try {
    const { fields } = readFrontMatter(text.replace(HINT, ''), { plainTexts: true })
    const { hooks, name } = fields
    if (hooks === undefined) return []
    const own = { ...source, print: { path, hash }, ...(typeof name === 'string' && name !== '' && { name }) }
    return [{ source: own, value: { hooks: source.kind === 'agent' ? withSubagentStop(hooks) : hooks } }]
  } catch (error) {
    problems.push({ source, where: '', message: problemOf(error) })
    return []
  }
}

/** `Stop` of an agent is `SubagentStop`: the agent always runs as a subagent. */
function withSubagentStop(hooks: Json): Json {
  if (!isJsonObject(hooks) || hooks['Stop'] === undefined) return hooks
  const { Stop, SubagentStop, ...rest } = hooks
  const all = [Stop, SubagentStop].flatMap((groups) => (Array.isArray(groups) ? groups : []))
  return { ...rest, SubagentStop: all }
}

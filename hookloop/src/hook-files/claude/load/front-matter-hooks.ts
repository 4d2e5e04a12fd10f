import { readdirSync } from 'node:fs'
import { basename, dirname, join, sep } from 'node:path'
import { isJsonObject, type Json, type JsonObject } from '../../../state/json.ts'
import { messageOf } from '../../../errors.ts'
import { readFrontMatter } from '../../../system/files/front-matter.ts'
import { readPrinted, realPath } from '../../trust/fingerprint.ts'
import type { ConfigProblem, HookSource } from './handlers.ts'

export type FrontMatterHooks = { readonly source: HookSource; readonly text: string; readonly value: JsonObject }

const MAX_FILES = 1_000
/** `[issue] [priority]` is how people write it, and no YAML. */
export const HINT = /^argument-hint:.*$/m

/**
 * Hooks that stand at the head of `skills/<name>/SKILL.md`, of `commands/<name>.md`, which are skills of one file, and of
 * `agents/<name>.md` below a `.claude` folder. Commands and agents may stand in folders of their own. A file without any is
 * not mentioned.
 */
export function readFrontMatterHooks(claudeDir: string, problems: ConfigProblem[]): readonly FrontMatterHooks[] {
  const skills = namesIn(join(claudeDir, 'skills')).map((name) => join(claudeDir, 'skills', name, 'SKILL.md'))
  const commands = textsIn(join(claudeDir, 'commands'))
  const agents = textsIn(join(claudeDir, 'agents'))
  return [...skills, ...commands, ...agents].flatMap((file) => readHead(headSource(file), problems))
}

/** What the file of a skill, a command or an agent is, by where it stands. */
export function headSource(file: string): HookSource {
  const root = dirname(file)
  if (basename(file) === 'SKILL.md') return { kind: 'skill', file, root, name: basename(root) }
  const nearest = root.split(sep).findLast((name) => ['agents', 'commands', 'skills'].includes(name))
  return { kind: nearest === 'agents' ? 'agent' : 'skill', file, root, name: basename(file, '.md') }
}

/** The hooks at the head of one file, if it has any. */
export function readHead(source: HookSource, problems: ConfigProblem[]): readonly FrontMatterHooks[] {
  const printed = readPrinted(source.file)
  if (printed === undefined || !/^hooks:/m.test(printed.text)) return []
  const { text, path, hash } = printed
  try {
    const { fields } = readFrontMatter(text.replace(HINT, ''), { plainTexts: true })
    const { hooks, name } = fields
    if (hooks === undefined) return []
    const own = { ...source, print: { path, hash }, ...(typeof name === 'string' && name !== '' && { name }) }
    return [{ source: own, text, value: { hooks: source.kind === 'agent' ? stopOfAgent(hooks) : hooks } }]
  } catch (error) {
    problems.push({ source, where: '', message: messageOf(error) })
    return []
  }
}

/** What ends an agent that works for another is the end of a subagent. */
function stopOfAgent(hooks: Json): Json {
  if (!isJsonObject(hooks) || hooks['Stop'] === undefined) return hooks
  const { Stop, SubagentStop, ...rest } = hooks
  const all = [Stop, SubagentStop].flatMap((groups) => (Array.isArray(groups) ? groups : []))
  return { ...rest, SubagentStop: all }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).toSorted().slice(0, MAX_FILES)
  } catch {
    return []
  }
}

/** Every folder is looked into once: links may lead in a circle. */
function textsIn(folder: string, seen = new Set<string>()): readonly string[] {
  const real = realPath(folder)
  if (seen.has(real) || seen.size >= MAX_FILES) return []
  seen.add(real)
  const inside = namesIn(folder).map((name) => join(folder, name))
  return inside.flatMap((path) => (path.endsWith('.md') ? [path] : textsIn(path, seen))).slice(0, MAX_FILES)
}

import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { isJsonObject, type Json, type JsonObject } from '../../data/json.ts'
import { messageOf } from '../../errors.ts'
import { readFrontMatter } from '../../machine/front-matter.ts'
import { readPrinted } from '../trust.ts'
import type { ConfigProblem, HookSource } from './handlers.ts'

export type FrontMatterHooks = { readonly source: HookSource; readonly text: string; readonly value: JsonObject }

const MAX_FILES = 1_000

/**
 * Hooks that stand at the head of `skills/<name>/SKILL.md` and `agents/<name>.md` below a `.claude` folder. A file without
 * any is not mentioned.
 */
export function readFrontMatterHooks(claudeDir: string, problems: ConfigProblem[]): readonly FrontMatterHooks[] {
  const skills = namesIn(join(claudeDir, 'skills')).map((name): HookSource => {
    const root = join(claudeDir, 'skills', name)
    return { kind: 'skill', file: join(root, 'SKILL.md'), root, name }
  })
  const agents = namesIn(join(claudeDir, 'agents'))
    .filter((name) => name.endsWith('.md'))
    .map((name): HookSource => {
      const root = join(claudeDir, 'agents')
      return { kind: 'agent', file: join(root, name), root, name: name.slice(0, -'.md'.length) }
    })
  return [...skills, ...agents].flatMap((source) => readOne(source, problems))
}

function readOne(source: HookSource, problems: ConfigProblem[]): readonly FrontMatterHooks[] {
  const printed = readPrinted(source.file)
  if (printed === undefined || !/^hooks:/m.test(printed.text)) return []
  const { text, path, hash } = printed
  try {
    const { fields } = readFrontMatter(text, { plainTexts: true })
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

import { isAbsolute, resolve } from 'node:path'
import { isJsonObject, type Json, type JsonObject } from '../../../state/json.ts'

type Renamed = {
  /** What the tool is called there. */
  readonly name: string
  /** Arguments that have other names there: ours to theirs. */
  readonly args?: { readonly [ours: string]: string }
  /** Those among theirs that are paths, which are absolute there. */
  readonly paths?: readonly string[]
}

/** Our tools that a hook script knows under another name. Whatever else there is keeps its own. */
const renamed: { readonly [ours: string]: Renamed } = {
  bash: { name: 'Bash', args: { timeout_ms: 'timeout' } },
  read_file: { name: 'Read', args: { path: 'file_path' }, paths: ['file_path'] },
  write_file: { name: 'Write', args: { path: 'file_path' }, paths: ['file_path'] },
  edit_file: { name: 'Edit', args: { path: 'file_path' }, paths: ['file_path'] },
  list_dir: { name: 'LS', paths: ['path'] },
  search_files: { name: 'Grep', paths: ['path'] },
  spawn_subagent: { name: 'Agent', args: { subagent: 'subagent_type' } },
  todo_write: { name: 'TodoWrite' },
  load_skill: { name: 'Skill', args: { skill_name: 'skill' } },
}

/** Those of our tools that a matcher may know by another name. */
export const toolsWithOtherNames: readonly string[] = Object.keys(renamed)

/** Names of one tool: that which it has now, and those which it had before. */
const aliases: readonly (readonly string[])[] = [['Agent', 'Task']]

export type ClaudeCall = {
  readonly name: string
  /** Every name that a matcher may use for it. */
  readonly names: readonly string[]
  readonly input: JsonObject
}

/** A call as hook scripts know it. */
export function toClaudeCall(name: string, args: Json, cwd: string): ClaudeCall {
  const rule = ruleFor(name)
  const input = isJsonObject(args) ? args : {}
  if (rule === undefined) return { name, names: namesOf(name), input }
  return { name: rule.name, names: namesOf(rule.name), input: renameKeys(input, rule.args ?? {}, absolute(rule, cwd)) }
}

/** A name, and whatever else the same tool is or was called, here or there. */
export function namesOf(name: string): readonly string[] {
  const theirs = ruleFor(name)?.name ?? name
  const former = aliases.find((each) => each.includes(theirs)) ?? [theirs]
  const ours = Object.keys(renamed).filter((each) => former.includes(renamed[each]!.name))
  return [...new Set([theirs, ...former, ...ours, name])]
}

/** What we call a tool that a payload names, if we have one like it. */
export function ownName(theirs: string): string {
  return namesOf(theirs).find((name) => Object.hasOwn(renamed, name)) ?? theirs
}

/** Arguments that a script gave back, as our tool takes them. */
export function fromClaudeInput(name: string, input: JsonObject): JsonObject {
  const back = Object.fromEntries(Object.entries(ruleFor(name)?.args ?? {}).map(([ours, theirs]) => [theirs, ours]))
  return renameKeys(input, back)
}

function ruleFor(name: string): Renamed | undefined {
  return Object.hasOwn(renamed, name) ? renamed[name] : undefined
}

function absolute({ paths = [] }: Renamed, cwd: string): (key: string, value: Json) => Json {
  return (key, value) =>
    paths.includes(key) && typeof value === 'string' && !isAbsolute(value) ? resolve(cwd, value) : value
}

function renameKeys(
  input: JsonObject,
  names: { readonly [from: string]: string },
  change: (key: string, value: Json) => Json = (_key, value) => value,
): JsonObject {
  return Object.fromEntries(
    Object.entries(input).map(([key, value]) => {
      const to = Object.hasOwn(names, key) ? names[key]! : key
      return [to, change(to, value)]
    }),
  )
}
